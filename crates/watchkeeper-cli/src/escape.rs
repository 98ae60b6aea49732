//! Escaping of text from a server, so that printing it cannot control a terminal or hide its content.
//!
//! Control characters (C0, DEL and C1), bidirectional marks, line and paragraph separators, and invisible
//! characters that can disguise text are escaped. Joiners (U+200C, U+200D) are not, because scripts and emoji
//! need them.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

/// Returns whether `c` must not reach a terminal.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn escape(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let must_escape = |c: char| is_unsafe(c) && !is_kept(c);
    if !text.contains(must_escape) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if must_escape(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns `text` on one line, with unsafe characters and line breaks as escapes such as `\n` and `\u{1b}`.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Returns `text` with unsafe characters as escapes. Line breaks stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n')
}

/// Returns JSON text in which unsafe characters are written as `\uXXXX`. Decoding gives the same values.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    // JSON contains such characters only within strings, except for line breaks between its tokens.
    let must_escape = |c: char| is_unsafe(c) && c != '\n';
    if !text.contains(must_escape) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if must_escape(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string is infallible.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether `text` contains a character that is printed only as an escape, other than a line break.
pub(crate) fn is_needed(text: &str) -> bool {
    text.contains(|c: char| is_unsafe(c) && c != '\n')
}

/// A writer that escapes the text written to it, except for line breaks.
///
/// Each call of `write` must consist of whole characters, as those of a log formatter do.
#[derive(Debug)]
pub(crate) struct Escaping<W>(pub(crate) W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_marks_and_separators_are_shown_as_escapes() {
        for (text, shown) in [
            ("plain é 日本 👩\u{200d}💻", "plain é 日本 👩\u{200d}💻"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("\u{7f}\u{9b}31m", "\\u{7f}\\u{9b}31m"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{202e}txt\u{2066}\u{2028}", "\\u{202e}txt\\u{2066}\\u{2028}"),
            ("\u{61c}\u{200e}\u{200f}\u{feff}", "\\u{61c}\\u{200e}\\u{200f}\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(line(text), shown, "{text:?}");
        }
        assert_eq!(lines("a\nb\u{1b}"), "a\nb\\u{1b}");
    }

    #[test]
    fn json_with_escapes_decodes_to_the_same_value() {
        let value = serde_json::json!({"a\u{202e}": "\u{1b}\u{7f}\u{85}\u{9b}\u{2028}\u{2066}\u{e0041}é\n"});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let escaped = json(&text);
        assert!(!is_needed(&escaped), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn an_escaping_writer_keeps_line_breaks() {
        let mut written = Vec::new();
        Escaping(&mut written).write_all("WARN \u{1b}]0;x\u{7}\n".as_bytes()).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "WARN \\u{1b}]0;x\\u{7}\n");
    }
}
