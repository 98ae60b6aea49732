//! The tokens of a CEL expression.

use std::sync::Arc;

use super::ast::Literal;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Ident(Arc<str>),
    /// A name in backquotes, which may contain `.`, `-`, `/` and spaces.
    Quoted(Arc<str>),
    Literal(Literal),
    /// An integer without its sign. After a minus, it may exceed `i64::MAX` by one.
    Integer(u64),
    /// An operator or punctuation mark.
    Mark(&'static str),
    End,
}

/// The marks. Longer marks come before their prefixes.
const MARKS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "in", "",
];

/// A lexer, which reads each byte of the text once.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// The byte position of the next token.
    pub(super) position: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']);
            self.position += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.position += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Reads the next token.
    ///
    /// # Errors
    /// Returns a message if no token starts here.
    pub(super) fn next(&mut self) -> Result<Token, String> {
        self.skip_space();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if let Some(token) = self.string()? {
            return Ok(token);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (word, _) = rest.split_at(end);
            self.position += end;
            return Ok(match word {
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                "in" => Token::Mark("in"),
                word => Token::Ident(word.into()),
            });
        }
        let follows_dot =
            rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if first.is_ascii_digit() || follows_dot {
            return self.number();
        }
        if let Some(inner) = rest.strip_prefix('`') {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ');
            let end = inner.find(|c| !allowed(c)).unwrap_or(inner.len());
            let (name, after) = inner.split_at(end);
            if name.is_empty() || !after.starts_with('`') {
                return Err("Syntax error: invalid quoted identifier".to_owned());
            }
            self.position += end + 2;
            return Ok(Token::Quoted(name.into()));
        }
        match MARKS.iter().find(|mark| !mark.is_empty() && rest.starts_with(**mark)) {
            Some(mark) => {
                self.position += mark.len();
                Ok(Token::Mark(mark))
            }
            None => Err(format!("Syntax error: token recognition error at: '{first}'")),
        }
    }

    fn number(&mut self) -> Result<Token, String> {
        let rest = self.rest();
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        if let Some(hex) = rest.strip_prefix("0x") {
            let length = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
            let value = u64::from_str_radix(hex.get(..length).unwrap_or_default(), 16);
            let value = value.map_err(|_| "invalid int literal".to_owned())?;
            self.position += 2 + length;
            return Ok(self.sign(value));
        }
        let mut length = digits(rest);
        let mut is_double = false;
        if let Some(after) = rest.get(length..).and_then(|rest| rest.strip_prefix('.'))
            && digits(after) > 0
        {
            length += 1 + digits(after);
            is_double = true;
        }
        if let Some(after) = rest.get(length..).and_then(|rest| rest.strip_prefix(['e', 'E'])) {
            let signed = after.strip_prefix(['+', '-']);
            let count = digits(signed.unwrap_or(after));
            if count > 0 {
                length += 1 + usize::from(signed.is_some()) + count;
                is_double = true;
            }
        }
        let text = rest.get(..length).unwrap_or_default();
        self.position += length;
        if is_double {
            let value: f64 = text.parse().map_err(|_| "invalid double literal".to_owned())?;
            if value.is_infinite() {
                return Err("invalid double literal".to_owned());
            }
            return Ok(Token::Literal(Literal::Double(value)));
        }
        Ok(self.sign(text.parse().map_err(|_| "invalid int literal".to_owned())?))
    }

    /// Reads the suffix of an unsigned integer.
    fn sign(&mut self, value: u64) -> Token {
        if self.rest().starts_with(['u', 'U']) {
            self.position += 1;
            return Token::Literal(Literal::Uint(value));
        }
        Token::Integer(value)
    }

    /// Reads a string or bytes literal, if one starts here.
    fn string(&mut self) -> Result<Option<Token>, String> {
        let rest = self.rest();
        let mut prefix = 0;
        let (mut is_bytes, mut is_raw) = (false, false);
        for byte in rest.bytes().take(2) {
            match byte {
                b'b' | b'B' if prefix == 0 => is_bytes = true,
                b'r' | b'R' if !is_raw => is_raw = true,
                _ => break,
            }
            prefix += 1;
        }
        let body = rest.get(prefix..).unwrap_or_default();
        let Some(quote) = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote))
        else {
            return Ok(None);
        };
        let inner = body.get(quote.len()..).unwrap_or_default();
        let length = closing(inner, quote, is_raw).ok_or("Syntax error: unterminated string literal")?;
        self.position += prefix + quote.len() + length + quote.len();
        let inner = inner.get(..length).unwrap_or_default();
        let bytes = if is_raw { inner.as_bytes().to_vec() } else { unescape(inner, is_bytes)? };
        Ok(Some(Token::Literal(if is_bytes {
            Literal::Bytes(bytes.into())
        } else {
            let text = String::from_utf8(bytes).map_err(|_| "invalid string literal".to_owned())?;
            Literal::String(text.into())
        })))
    }
}

/// Returns the position of the closing quote of a literal.
fn closing(inner: &str, quote: &str, is_raw: bool) -> Option<usize> {
    let is_long = quote.len() == 3;
    let bytes = inner.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes.get(at)? {
            b'\\' if !is_raw => at += 2,
            b'\n' | b'\r' if !is_long => return None,
            _ if bytes.get(at..)?.starts_with(quote.as_bytes()) => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// Replaces escape sequences. In bytes, `\x` and octal sequences are bytes; in strings, code points.
fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, String> {
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        result.extend_from_slice(plain.as_bytes());
        let mut chars = escape.chars();
        let kind = chars.next().ok_or("unable to unescape string: found '\\' as last character")?;
        let after = chars.as_str();
        let simple = match kind {
            'a' => Some(7),
            'b' => Some(8),
            'f' => Some(12),
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'v' => Some(11),
            '\\' | '\'' | '"' | '`' | '?' => u8::try_from(kind).ok(),
            _ => None,
        };
        if let Some(byte) = simple {
            result.push(byte);
            rest = after;
            continue;
        }
        let (digits, radix, source) = match kind {
            'x' | 'X' => (2, 16, after),
            'u' if !is_bytes => (4, 16, after),
            'U' if !is_bytes => (8, 16, after),
            '0'..='3' => (3, 8, escape),
            _ => return Err("unable to unescape string".to_owned()),
        };
        let number = source.get(..digits).and_then(|digits| u32::from_str_radix(digits, radix).ok());
        let number = number.ok_or("unable to unescape string")?;
        if is_bytes {
            result.push(u8::try_from(number).map_err(|_| "unable to unescape string".to_owned())?);
        } else {
            let c = char::from_u32(number).ok_or("unable to unescape string: invalid unicode code point")?;
            result.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        rest = source.get(digits..).unwrap_or_default();
    }
    result.extend_from_slice(rest.as_bytes());
    Ok(result)
}
