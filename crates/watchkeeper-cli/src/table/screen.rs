//! A table that is drawn in place on a terminal.

use std::fmt::Write as _;

/// The state of the terminal.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// The number of lines of the last frame, to be overwritten.
    drawn: usize,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
}

impl Screen {
    /// Returns the terminal output that shows this text and a status line in place of the last frame.
    ///
    /// Lines are cut at the width of the terminal and rows at its height, because a line that wraps or
    /// scrolls out could not be overwritten.
    pub(super) fn frame(&mut self, text: &str, status: &str, size: Size) -> String {
        let room = size.lines.saturating_sub(2).max(1);
        let all: Vec<&str> = text.lines().collect();
        let (shown, hidden) = if all.len() > room { all.split_at(room) } else { (&all[..], &[][..]) };
        let mut frame = String::new();
        if self.drawn > 0 {
            // Moves up to the start of the last frame.
            let _ = write!(frame, "\x1b[{}A", self.drawn);
        }
        let more = if hidden.is_empty() { String::new() } else { format!(" · {} more rows", hidden.len()) };
        let status = format!("{status}{more}");
        for line in shown.iter().copied().chain([&*status]) {
            let cut: String = line.chars().take(size.columns).collect();
            // Clears the rest of the line.
            let _ = writeln!(frame, "\r{cut}\x1b[K");
        }
        // Clears everything below.
        frame.push_str("\x1b[J");
        self.drawn = shown.len() + 1;
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { columns: 10, lines: 5 };

    #[test]
    fn the_first_frame_moves_nothing_and_the_next_covers_it() {
        let mut screen = Screen::default();
        assert_eq!(screen.frame("a\nb\n", "ok", SIZE), "\ra\x1b[K\n\rb\x1b[K\n\rok\x1b[K\n\x1b[J");
        assert_eq!(screen.frame("a\n", "ok", SIZE), "\x1b[3A\ra\x1b[K\n\rok\x1b[K\n\x1b[J");
        assert!(screen.frame("a\n", "ok", SIZE).starts_with("\x1b[2A"));
    }

    #[test]
    fn rows_that_do_not_fit_are_cut_and_counted() {
        let mut screen = Screen::default();
        let frame = screen.frame("0123456789abc\n2\n3\n4\n5\n", "", SIZE);
        assert!(frame.starts_with("\r0123456789\x1b[K\n\r2\x1b[K\n\r3\x1b[K\n\r · 2 more"), "{frame:?}");
        assert_eq!(frame.matches('\n').count(), 4);
    }
}
