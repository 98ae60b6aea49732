//! Rendering of rows as aligned text.

use std::{borrow::Cow, fmt::Write as _};

use jiff::Timestamp;
use watchkeeper::{kube_core::DynamicObject, prelude::*};

use crate::escape;

/// The cells of one object.
pub(super) type Row = Vec<String>;

/// A table whose columns are as wide as their widest cell.
#[derive(Debug)]
pub(super) struct Table {
    header: Row,
    rows: Vec<Row>,
    widths: Vec<usize>,
}

/// The number of spaces between columns.
const GAP: usize = 3;

impl Table {
    pub(super) fn new(header: Row) -> Self {
        let header = printable(header);
        let widths = header.iter().map(|cell| cell.chars().count()).collect();
        Self { header, rows: Vec::new(), widths }
    }

    pub(super) fn push(&mut self, row: Row) {
        let row = self.measured(row);
        self.rows.push(row);
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the header and all rows.
    pub(super) fn text(&self) -> String {
        let mut text = self.header_text();
        for row in &self.rows {
            self.write(row, &mut text);
        }
        text
    }

    pub(super) fn header_text(&self) -> String {
        let mut text = String::new();
        self.write(&self.header, &mut text);
        text
    }

    /// Renders an additional row. Column widths only ever grow.
    pub(super) fn line(&mut self, row: Row) -> String {
        let row = self.measured(row);
        let mut text = String::new();
        self.write(&row, &mut text);
        text
    }

    fn measured(&mut self, row: Row) -> Row {
        let row = printable(row);
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = (*width).max(cell.chars().count());
        }
        row
    }

    fn write(&self, row: &[String], text: &mut String) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&self.widths) {
            // Writing to a string is infallible.
            let _ = write!(line, "{cell:<width$}", width = width + GAP);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Escapes the cells of a row, because object contents and definition columns are untrusted.
fn printable(row: Row) -> Row {
    let printable = |cell: String| {
        match escape::line(&cell) {
            Cow::Borrowed(_) => None,
            Cow::Owned(escaped) => Some(escaped),
        }
        .unwrap_or(cell)
    };
    row.into_iter().map(printable).collect()
}

/// Returns the age of an object.
pub(super) fn age(object: &DynamicObject, now: Timestamp) -> String {
    match object.creation_timestamp() {
        Some(created) => duration(now.as_second() - created.0.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// Formats a duration in its two most significant units.
pub(super) fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 if seconds % 60 != 0 => format!("{minutes}m{}s", seconds % 60),
        120..7200 => format!("{minutes}m"),
        7200..28_800 if minutes % 60 != 0 => format!("{hours}h{}m", minutes % 60),
        7200..172_800 => format!("{hours}h"),
        172_800..691_200 if hours % 24 != 0 => format!("{days}d{}h", hours % 24),
        172_800.. => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Row {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(row(&["NAME", "AGE"]));
        table.push(row(&["a-long-name", "5s"]));
        table.push(row(&["b", "10m"]));
        assert_eq!(table.text(), "NAME          AGE\na-long-name   5s\nb             10m\n");
    }

    #[test]
    fn cells_and_headers_cannot_move_the_cursor_or_break_a_row() {
        let mut table = Table::new(row(&["NAME", "\u{1b}[2J"]));
        table.push(row(&["a\u{1b}[2J\nb", "\u{202e}c"]));
        assert_eq!(table.text(), "NAME            \\u{1b}[2J\na\\u{1b}[2J\\nb   \\u{202e}c\n");
    }

    #[test]
    fn lines_that_follow_keep_the_widths_there_were() {
        let mut table = Table::new(row(&["EVENT", "NAME"]));
        assert_eq!(table.line(row(&["MODIFIED", "x"])), "MODIFIED   x\n");
        assert_eq!(table.line(row(&["ADDED", "y"])), "ADDED      y\n");
    }

    #[test]
    fn ages_are_printed_as_kubectl_prints_them() {
        for (seconds, text) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (7199, "119m"),
            (7260, "2h1m"),
            (30_000, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (800_000, "9d"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }
}
