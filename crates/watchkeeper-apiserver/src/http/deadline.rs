//! Deadlines of requests.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use crate::{Clock, status::ApiError};

/// The default and maximum duration of a request; kube-apiserver's `--request-timeout`.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Returns the maximum duration of a request: [`REQUEST_TIMEOUT`], or the `timeout` parameter if that is less.
///
/// # Errors
/// 400 if the parameter is not a duration.
pub(super) fn timeout_of(parameter: Option<&str>) -> Result<Duration, ApiError> {
    let Some(text) = parameter.filter(|text| !text.is_empty()) else { return Ok(REQUEST_TIMEOUT) };
    let requested = parse_duration(text).map_err(|why| {
        ApiError::bad_request(format!("invalid timeout specified in the request URL - time: {why}"))
    })?;
    // Zero and negative durations mean that the client sets no timeout.
    Ok(requested
        .filter(|requested| !requested.is_zero())
        .map_or(REQUEST_TIMEOUT, |requested| requested.min(REQUEST_TIMEOUT)))
}

/// Runs `work` for at most `timeout`. Returns `None`, and drops the work, if it takes longer. Work that never waits costs
/// no timer.
pub(super) async fn within<F: Future>(clock: &dyn Clock, timeout: Duration, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut sleep = None;
    poll_fn(|context| {
        if let Poll::Ready(output) = work.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        let sleep = sleep.get_or_insert_with(|| clock.sleep(timeout));
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Parses a duration in Go's notation: `300ms`, `1.5h`, `2h45m`. Returns `None` for a negative one.
fn parse_duration(text: &str) -> Result<Option<Duration>, String> {
    let invalid = || format!("invalid duration {text:?}");
    let (is_negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "0" {
        return Ok(Some(Duration::ZERO));
    }
    let mut nanoseconds: f64 = 0.0;
    let mut rest = unsigned;
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let number =
            rest.len() - rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.').len();
        let (amount, after) = rest.split_at(number);
        if !amount.bytes().any(|byte| byte.is_ascii_digit()) || amount.matches('.').count() > 1 {
            return Err(invalid());
        }
        let unit_end = after.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let nanoseconds_per_unit = match unit {
            "ns" => 1.0,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "" => return Err(format!("missing unit in duration {text:?}")),
            unit => return Err(format!("unknown unit {unit:?} in duration {text:?}")),
        };
        let amount = format!("0{amount}");
        nanoseconds +=
            amount.trim_end_matches('.').parse::<f64>().map_err(|_| invalid())? * nanoseconds_per_unit;
        rest = next;
    }
    // Go's durations end at 2^63 ns.
    if nanoseconds >= 9_223_372_036_854_775_808.0 {
        return Err(invalid());
    }
    Ok((!is_negative).then(|| Duration::from_secs_f64(nanoseconds / 1e9)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokioClock;

    #[test]
    fn a_timeout_shortens_the_deadline_and_never_lengthens_it() {
        for (text, expected) in [
            ("", 60_000),
            ("0", 60_000),
            ("0s", 60_000),
            ("-5s", 60_000),
            ("300ms", 300),
            ("1.5s", 1_500),
            (".5s", 500),
            ("+2s", 2_000),
            ("1s500ms", 1_500),
            ("10m", 60_000),
            ("2562047h", 60_000),
        ] {
            assert_eq!(timeout_of(Some(text)), Ok(Duration::from_millis(expected)), "{text}");
        }
        assert_eq!(timeout_of(None), Ok(REQUEST_TIMEOUT));
    }

    #[test]
    fn an_invalid_timeout_is_rejected_with_400() {
        for text in ["invalid", "5", "5x", "s", "-", ".s", "1..5s", "1s5", "9999999h", "1 s", "١s"] {
            assert_eq!(timeout_of(Some(text)).expect_err(text).code, 400, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_dropped_at_its_deadline() {
        let clock = TokioClock::new();
        let second = Duration::from_secs(1);
        assert_eq!(within(&clock, second, clock.sleep(2 * second)).await, None);
        assert_eq!(within(&clock, 2 * second, clock.sleep(second)).await, Some(()));
    }
}
