//! Waits that a server requests.

use std::time::Duration;

use http::{
    HeaderMap,
    header::{DATE, RETRY_AFTER},
};
use jiff::Timestamp;
use kube_core::Status;

/// The maximum of a requested wait. Longer waits are cut to this, so that a faulty header cannot stop a client for
/// days.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// Returns the wait that a response requests: the `Retry-After` header, else `details.retryAfterSeconds` of the status.
///
/// The header is a number of seconds or a date. A date is relative to the `Date` header of the same response, so the
/// clocks of client and server need not agree; without a `Date` header it is ignored. Any other value (negative,
/// fractional, text) is ignored. Waits longer than [`MAX_RETRY_AFTER`] are cut to that.
pub(super) fn retry_after(headers: &HeaderMap, status: Option<&Status>) -> Option<Duration> {
    from_header(headers).or_else(|| status.and_then(from_status))
}

/// Returns the wait that a status requests. Inside a watch stream this is the only form.
pub(crate) fn from_status(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(MAX_RETRY_AFTER))
}

fn from_header(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let wait = if digits {
        // A number that overflows is a long wait too.
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let until = http_date(value)?;
        let sent = http_date(headers.get(DATE)?.to_str().ok()?.trim())?;
        Duration::try_from(until.duration_since(sent)).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

/// Parses the only date format that senders may generate: RFC 2822 in GMT.
fn http_date(value: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn of(value: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        retry_after(&headers, None).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_retry_after_header_is_seconds_or_a_date_and_never_a_surprise() {
        let table = [
            ("0", None, Some(0)),
            ("1", None, Some(1)),
            (" 30 ", None, Some(30)),
            ("3600", None, Some(3600)),
            ("3601", None, Some(3600)),
            ("99999999999999999999999999", None, Some(3600)),
            ("-1", None, None),
            ("+5", None, None),
            ("1.5", None, None),
            ("soon", None, None),
            ("", None, None),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(SENT), Some(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", Some(SENT), Some(0)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(SENT), Some(3600)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", None, None),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some("yesterday"), None),
            ("Sun, 99 Nov 1994 08:49:47 GMT", Some(SENT), None),
        ];
        for (value, date, expected) in table {
            assert_eq!(of(value, date), expected, "Retry-After: {value:?}, Date: {date:?}");
        }
    }

    #[test]
    fn the_header_goes_before_the_status_and_the_status_before_nothing() {
        let status = |seconds: u32| -> Status {
            serde_json::from_value(serde_json::json!({"details": {"retryAfterSeconds": seconds}})).unwrap()
        };
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers, None), None);
        assert_eq!(retry_after(&headers, Some(&status(0))), None);
        assert_eq!(retry_after(&headers, Some(&status(7))), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&headers, Some(&status(u32::MAX))), Some(MAX_RETRY_AFTER));
        headers.insert(RETRY_AFTER, "2".parse().unwrap());
        assert_eq!(retry_after(&headers, Some(&status(7))), Some(Duration::from_secs(2)));
        headers.insert(RETRY_AFTER, "garbage".parse().unwrap());
        assert_eq!(retry_after(&headers, Some(&status(7))), Some(Duration::from_secs(7)));
    }
}
