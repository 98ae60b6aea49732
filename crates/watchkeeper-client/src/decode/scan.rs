//! Search for the end of a JSON value without parsing it.
//!
//! A value is an object or array (brackets are counted outside strings), a string, or a bare word such as a
//! number. The search can span any sequence of slices, because its state is carried from one to the next. The
//! bytes in between are not validated; the parser does that later.

use wide::u8x16;

/// The number of bytes processed per step. The bit masks of a block are `u64`s, bit `i` for byte `i`.
const BLOCK: usize = 64;

/// The offset in the given slice at which a bracket exceeded the maximum depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooDeep(pub(super) usize);

/// A value whose first byte has been read and whose end is searched.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Container(Container),
    String(Text),
    /// A number, `true`, `false` or `null`, which ends before the next delimiter.
    Word,
}

impl Value {
    /// Returns the value that starts with `first`, or `None` if no value does.
    pub(super) fn begin(first: u8) -> Option<Self> {
        match first {
            b'{' | b'[' => Some(Self::Container(Container { depth: 1, in_string: 0, escaped: 0 })),
            b'"' => Some(Self::String(Text::default())),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Some(Self::Word),
            _ => None,
        }
    }

    /// Continues the search in `bytes`, which follow the bytes given before. Returns the offset after the
    /// value's last byte, or `None` if the value continues after `bytes`.
    pub(super) fn advance(&mut self, bytes: &[u8], max_depth: usize) -> Result<Option<usize>, TooDeep> {
        match self {
            Self::Container(container) => container.advance(bytes, max_depth),
            Self::String(text) => Ok(text.advance(bytes)),
            Self::Word => Ok(bytes.iter().position(|&byte| !is_word(byte))),
        }
    }
}

fn is_word(byte: u8) -> bool {
    !matches!(byte, b',' | b']' | b'}' | b':' | b'"' | b'[' | b'{') && !is_whitespace(byte)
}

/// Returns whether `byte` is JSON whitespace.
pub(super) fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// A string after its opening quote.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    escaped: bool,
}

impl Text {
    /// Continues the search as [`Value::advance`] does; the offset is after the closing quote.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        if self.escaped && !bytes.is_empty() {
            self.escaped = false;
            at = 1;
        }
        while let Some(hop) = memchr::memchr2(b'"', b'\\', bytes.get(at..)?) {
            at += hop;
            if bytes[at] == b'"' {
                return Some(at + 1);
            }
            at += 2;
            if at > bytes.len() {
                self.escaped = true;
                return None;
            }
        }
        None
    }
}

/// An object or array after its opening bracket.
///
/// Whole blocks are processed at once: each relevant byte becomes a bit, strings become runs of ones by a
/// prefix xor over the quotes, and only brackets outside those runs are counted. Square and curly brackets
/// are not distinguished.
#[derive(Debug, Clone)]
pub(super) struct Container {
    depth: usize,
    /// All ones inside a string, otherwise zero.
    in_string: u64,
    /// The carry: one if the next byte is escaped by the last backslash, otherwise zero.
    escaped: u64,
}

impl Container {
    fn advance(&mut self, bytes: &[u8], max_depth: usize) -> Result<Option<usize>, TooDeep> {
        let (blocks, tail) = bytes.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            if let Some(end) =
                self.step(block, BLOCK, max_depth).map_err(|at| TooDeep(index * BLOCK + at.0))?
            {
                return Ok(Some(index * BLOCK + end));
            }
        }
        if tail.is_empty() {
            return Ok(None);
        }
        let mut block = [b' '; BLOCK];
        block[..tail.len()].copy_from_slice(tail);
        let before = blocks.len() * BLOCK;
        let end = self.step(&block, tail.len(), max_depth).map_err(|at| TooDeep(before + at.0))?;
        Ok(end.map(|end| before + end))
    }

    /// Processes one block, of which only the first `len` bytes count and the rest are blanks.
    #[inline]
    fn step(&mut self, block: &[u8; BLOCK], len: usize, max_depth: usize) -> Result<Option<usize>, TooDeep> {
        let bits = Bits::of(block);
        let escaped = self.escapes(bits.backslashes, len);
        let strings = prefix_xor(bits.quotes & !escaped) ^ self.in_string;
        // The sign bit, extended: the next block begins in the string state in which this one ends.
        self.in_string = 0_u64.wrapping_sub(strings >> (BLOCK - 1));

        let opens = bits.opens & !strings;
        let closes = bits.closes & !strings;
        if self.depth.saturating_add(BLOCK) <= max_depth {
            Ok(self.count(opens, closes))
        } else {
            self.walk(opens, closes, max_depth)
        }
    }

    /// Counts the brackets of a block that cannot reach the limit. Empty pairs, which are most common, change
    /// nothing and are removed first.
    #[inline]
    fn count(&mut self, opens: u64, closes: u64) -> Option<usize> {
        let pairs = opens & closes >> 1;
        let opens = opens ^ pairs;
        let mut brackets = opens | closes ^ pairs << 1;
        while brackets != 0 {
            let at = brackets.trailing_zeros() as usize;
            // Adds or subtracts one without a branch.
            self.depth = self.depth + 2 * (opens >> at & 1) as usize - 1;
            if self.depth == 0 {
                return Some(at + 1);
            }
            brackets &= brackets - 1;
        }
        None
    }

    /// Counts the brackets of a block that may reach the limit, one by one.
    fn walk(&mut self, opens: u64, closes: u64, max_depth: usize) -> Result<Option<usize>, TooDeep> {
        let mut brackets = opens | closes;
        while brackets != 0 {
            let at = brackets.trailing_zeros() as usize;
            if opens >> at & 1 == 1 {
                self.depth += 1;
                if self.depth > max_depth {
                    return Err(TooDeep(at));
                }
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    return Ok(Some(at + 1));
                }
            }
            brackets &= brackets - 1;
        }
        Ok(None)
    }

    /// Returns the bytes of a block that are escaped by a preceding backslash. Backslashes are rare, so each
    /// is visited; an escaped backslash escapes nothing.
    #[inline]
    fn escapes(&mut self, backslashes: u64, len: usize) -> u64 {
        let mut escaped = self.escaped;
        self.escaped = 0;
        let mut unseen = backslashes & !escaped;
        while unseen != 0 {
            let at = unseen.trailing_zeros() as usize;
            if at + 1 == len {
                self.escaped = 1;
                break;
            }
            escaped |= 2 << at;
            unseen &= !(3 << at);
        }
        escaped
    }
}

/// Computes, for each bit, whether the number of ones up to and including it is odd.
#[inline]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

struct Bits {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
}

impl Bits {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        /// The only bit in which `[` and `{`, and `]` and `}`, differ. No other bytes map onto them.
        const CURLY: u8 = 0x20;
        let mut bits = Self { quotes: 0, backslashes: 0, opens: 0, closes: 0 };
        let (lanes, _) = block.as_chunks::<16>();
        for (index, lane) in lanes.iter().enumerate() {
            let lane = u8x16::new(*lane);
            let curly = lane | u8x16::splat(CURLY);
            let shift = index * 16;
            bits.quotes |= equal(lane, b'"') << shift;
            bits.backslashes |= equal(lane, b'\\') << shift;
            bits.opens |= equal(curly, b'{') << shift;
            bits.closes |= equal(curly, b'}') << shift;
        }
        bits
    }
}

#[inline]
fn equal(lane: u8x16, byte: u8) -> u64 {
    u64::from(lane.simd_eq(u8x16::splat(byte)).to_bitmask())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The reference implementation, one byte at a time.
    fn reference(bytes: &[u8]) -> Option<usize> {
        let (mut depth, mut in_string, mut escaped) = (1_usize, false, false);
        for (at, &byte) in bytes.iter().enumerate() {
            if in_string {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                // Backslashes outside strings are not valid JSON; the block scanner treats them as escapes
                // there too.
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Generates bytes that are relevant to the scanner with a high probability.
    fn brackets_and_strings() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => Just(b'a'), 3 => Just(b'"'), 2 => Just(b'\\'), 3 => Just(b'{'), 1 => Just(b'['),
            1 => Just(b'}'), 1 => Just(b']'), 1 => any::<u8>(),
        ];
        prop::collection::vec(byte, 0..400)
    }

    fn outside_strings_no_backslash(bytes: &[u8]) -> Vec<u8> {
        let (mut in_string, mut escaped) = (false, false);
        bytes
            .iter()
            .map(|&byte| match (in_string, byte) {
                (true, _) if escaped => {
                    escaped = false;
                    byte
                }
                (true, b'\\') => {
                    escaped = true;
                    byte
                }
                (_, b'"') => {
                    in_string = !in_string;
                    byte
                }
                (false, b'\\') => b' ',
                _ => byte,
            })
            .collect()
    }

    proptest! {
        #[test]
        fn a_container_ends_where_the_bytewise_reference_ends(bytes in brackets_and_strings(), cut in 0_usize..400) {
            let bytes = outside_strings_no_backslash(&bytes);
            let mut container = Value::begin(b'{').unwrap();
            prop_assert_eq!(container.advance(&bytes, usize::MAX), Ok(reference(&bytes)));

            // The same input, split into two slices.
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            let mut container = Value::begin(b'{').unwrap();
            let end = match container.advance(head, usize::MAX).unwrap() {
                Some(end) => Some(end),
                None => container.advance(tail, usize::MAX).unwrap().map(|end| head.len() + end),
            };
            prop_assert_eq!(end, reference(&bytes));
        }

        #[test]
        fn a_string_ends_at_its_first_unescaped_quote(bytes in brackets_and_strings(), cut in 0_usize..400) {
            let mut escaped = false;
            let expected = bytes.iter().position(|&byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            }).map(|at| at + 1);
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            let mut text = Text::default();
            let end = text.advance(head).or_else(|| text.advance(tail).map(|end| head.len() + end));
            prop_assert_eq!(end, expected);
        }
    }

    #[test]
    fn the_first_bracket_too_deep_is_named() {
        let mut bytes = vec![b' '; 100];
        bytes.extend(b"[[[");
        let mut container = Value::begin(b'[').unwrap();
        assert_eq!(container.advance(&bytes, 3), Err(TooDeep(102)));
        let mut container = Value::begin(b'[').unwrap();
        assert_eq!(container.advance(&bytes, 4), Ok(None));
    }

    #[test]
    fn far_from_the_limit_and_near_it_brackets_count_the_same() {
        let bytes = b"{}[{}[]],[[]]}, {}";
        for max_depth in [4, 64, 65, 66, usize::MAX / 2] {
            assert_eq!(Value::begin(b'{').unwrap().advance(bytes, max_depth), Ok(Some(14)), "{max_depth}");
        }
    }

    #[test]
    fn a_word_ends_before_its_delimiter() {
        for (bytes, end) in
            [(&b"23,"[..], Some(2)), (b"23 ", Some(2)), (b"23}", Some(2)), (b"ull]", Some(3)), (b"23", None)]
        {
            assert_eq!(Value::begin(b'1').unwrap().advance(bytes, 1), Ok(end));
        }
    }
}
