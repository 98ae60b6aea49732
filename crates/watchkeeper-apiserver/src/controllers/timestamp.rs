//! Timestamps as in objects: to the second, in UTC.

use std::time::SystemTime;

use jiff::Timestamp;

/// Formats a time as `2026-01-02T03:04:05Z`.
pub(crate) fn format(time: SystemTime) -> String {
    let timestamp = Timestamp::try_from(time).unwrap_or_default();
    format!("{timestamp:.0}")
}

/// Parses a timestamp.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(Into::into)
}
