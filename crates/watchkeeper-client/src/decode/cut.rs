//! Removal of `metadata.managedFields` before parsing.
//!
//! `managedFields` makes up two fifths of the bytes of a typical pod and more than half of its allocations
//! once parsed, and few programs read it. Removing the bytes costs one scan.

use std::ops::Range;

use memchr::memmem;

use super::{DecodeError, walk::Walk};

/// Returns `object` without its `metadata.managedFields`. The result is assembled in `scratch` if something
/// is removed.
///
/// Only a member `managedFields` of the top-level `metadata` is removed (every occurrence, if repeated).
/// Members of that name elsewhere stay: in annotations, in the metadata of a pod template, in the fields of a
/// custom resource. All other bytes are unchanged. A malformed document is returned whole, so that the parser
/// reports the error.
///
/// ```
/// let object = br#"{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"spec":{"managedFields":1}}"#;
/// let mut scratch = Vec::new();
/// let cut = watchkeeper_client::decode::cut_managed_fields(object, &mut scratch);
/// assert_eq!(cut, br#"{"metadata":{"name":"a"},"spec":{"managedFields":1}}"#);
/// ```
pub fn cut_managed_fields<'a>(object: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let gone = managed_fields(object);
    if gone.is_empty() { object } else { without(object, &gone, scratch) }
}

/// Returns `object` without the given ranges, which must be in order.
pub(super) fn without<'a>(object: &[u8], gone: &[Range<usize>], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    scratch.reserve_exact(object.len() - gone.iter().map(Range::len).sum::<usize>());
    let mut copied = 0;
    for range in gone {
        scratch.extend_from_slice(&object[copied..range.start]);
        copied = range.end;
    }
    scratch.extend_from_slice(&object[copied..]);
    scratch
}

/// Returns the ranges to remove, in order, each including one adjacent comma.
pub(super) fn managed_fields(object: &[u8]) -> Vec<Range<usize>> {
    let mut search = Search { object, gone: Vec::new() };
    match search.document() {
        Ok(()) => search.gone,
        Err(_) => Vec::new(),
    }
}

struct Search<'a> {
    object: &'a [u8],
    gone: Vec<Range<usize>>,
}

impl Search<'_> {
    fn document(&mut self) -> Result<(), DecodeError> {
        let mut walk = Walk::new(self.object);
        if !walk.enter()? {
            return Ok(());
        }
        let mut first = true;
        while let Some(key) = walk.key(first)? {
            first = false;
            if key.is("metadata") && walk.enter()? {
                self.metadata(&mut walk)?;
                // A second `metadata` may follow, but rarely does. Searching for the word is many times
                // cheaper than walking the rest.
                if !may_spell_managed_fields(&self.object[walk.at()..]) {
                    return Ok(());
                }
            } else {
                walk.skip(usize::MAX)?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, walk: &mut Walk<'_>) -> Result<(), DecodeError> {
        let mut first = true;
        // The end of the last member, once a member has been kept.
        let mut behind = None;
        // The members to remove, while no member has been kept before them.
        let mut leading: Option<Range<usize>> = None;
        while let Some(key) = walk.key(first)? {
            first = false;
            let goes = key.is("managedFields");
            let value = walk.skip(usize::MAX)?;
            if !goes {
                // Includes the comma that follows, up to this key.
                if let Some(gone) = leading.take() {
                    self.gone.push(gone.start..key.start);
                }
                behind = Some(value.end);
            } else if let Some(start) = behind {
                // Includes the comma that precedes.
                self.gone.push(start..value.end);
                behind = Some(value.end);
            } else {
                leading = Some(leading.map_or(key.start, |gone| gone.start)..value.end);
            }
        }
        self.gone.extend(leading);
        Ok(())
    }
}

/// Returns whether `bytes` may contain a key `managedFields` in any spelling. False positives are possible,
/// false negatives are not.
fn may_spell_managed_fields(bytes: &[u8]) -> bool {
    // Its letters can be escaped only as \u0046 and \u0061 to \u007a, which no API server does.
    memmem::find(bytes, b"managedFields").is_some()
        || memmem::find_iter(bytes, br"\u00").any(|at| matches!(bytes.get(at + 4), Some(b'4' | b'6' | b'7')))
}
