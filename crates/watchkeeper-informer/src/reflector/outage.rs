//! The log level of failures, by the duration of the outage.
//!
//! | event | level |
//! |---|---|
//! | a failure that is retried at once, such as a watch that was cut | INFO |
//! | the first failure that is retried after a delay: an outage begins | WARN |
//! | a failure when the outage has lasted a minute, and then every five minutes | ERROR, with the age of the outage |
//! | any other failure during an outage | DEBUG |
//! | the end of an outage that was logged | INFO, with its duration |
//!
//! A failure within thirty seconds after the end continues the outage, so that an API server that comes and
//! goes is reported like one that is down.

use std::time::Duration;

use tracing::{debug, error, info, warn};
use watchkeeper_client::classify::Phase;

use super::WatchFailure;

/// The age at which an outage is logged as an error.
const ERROR_AFTER: Duration = Duration::from_mins(1);
/// The time between two errors of the same outage.
const ERROR_EVERY: Duration = Duration::from_mins(5);
/// The time after the end of an outage within which a failure continues it.
const RELAPSE_WITHIN: Duration = Duration::from_secs(30);

/// The failures of one reflector that determine log levels.
#[derive(Debug, Default)]
pub(super) struct OutageLog {
    outage: Option<Outage>,
}

#[derive(Debug)]
struct Outage {
    since: Duration,
    failures: u32,
    /// The time of the last ERROR.
    error_at: Option<Duration>,
    /// Whether there was a WARN or ERROR that no recovery has followed.
    is_open: bool,
    /// The time of the recovery, while nothing has failed since.
    recovered_at: Option<Duration>,
}

/// The log level of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureLogLevel {
    /// INFO: an interruption that is retried immediately.
    Info,
    /// WARN: the start of an outage.
    Warn,
    /// ERROR: an outage of this age.
    Error { age: Duration },
    /// DEBUG: a further failure of an outage that was logged.
    Debug,
}

/// The end of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recovery {
    lasted: Duration,
    failures: u32,
}

impl OutageLog {
    /// Records a failure at `now` that is retried after `retry_in`, or immediately.
    pub(super) fn failed(&mut self, now: Duration, retry_in: Option<Duration>) -> FailureLogLevel {
        let is_over = |outage: &mut Outage| {
            outage.recovered_at.is_some_and(|at| now.saturating_sub(at) > RELAPSE_WITHIN)
        };
        self.outage.take_if(is_over);
        let Some(outage) = &mut self.outage else {
            if retry_in.is_none() {
                return FailureLogLevel::Info;
            }
            self.outage =
                Some(Outage { since: now, failures: 1, error_at: None, is_open: true, recovered_at: None });
            return FailureLogLevel::Warn;
        };
        outage.failures = outage.failures.saturating_add(1);
        outage.recovered_at = None;
        let age = now.saturating_sub(outage.since);
        let is_due = outage.error_at.is_none_or(|at| now.saturating_sub(at) >= ERROR_EVERY);
        if age < ERROR_AFTER || !is_due {
            return FailureLogLevel::Debug;
        }
        outage.error_at = Some(now);
        outage.is_open = true;
        FailureLogLevel::Error { age }
    }

    /// Records at `now` that the API server responds. Returns the recovery to log, once for each outage that
    /// was logged.
    pub(super) fn recovered(&mut self, now: Duration) -> Option<Recovery> {
        let outage = self.outage.as_mut().filter(|outage| outage.recovered_at.is_none())?;
        outage.recovered_at = Some(now);
        let was_open = std::mem::take(&mut outage.is_open);
        was_open.then(|| Recovery { lasted: now.saturating_sub(outage.since), failures: outage.failures })
    }
}

impl FailureLogLevel {
    /// Logs `failure` at the level of this report.
    pub(super) fn log(self, reflector: &str, failure: &WatchFailure) {
        let operation = match failure.phase {
            Phase::List => "list",
            Phase::WatchStart | Phase::WatchStream => "watch",
        };
        let next = failure.next_step();
        let (reason, error, attempt) = (failure.reason.label(), &*failure.message, failure.attempts);
        let retry_in = seconds(failure.retry_in.unwrap_or_default());
        match self {
            Self::Info => info!(reflector, reason, error, "{operation} interrupted; {next}"),
            Self::Warn => warn!(reflector, reason, error, %retry_in, attempt, "{operation} failed; {next}"),
            Self::Error { age } => {
                let failing_for = seconds(age);
                error!(
                    reflector,
                    %failing_for, reason, error, %retry_in, attempt, "{operation} still failing; {next}"
                );
            }
            Self::Debug => debug!(reflector, reason, error, %retry_in, attempt, "{operation} failed; {next}"),
        }
    }
}

impl Recovery {
    /// Logs the end of the outage.
    pub(super) fn log(self, reflector: &str) {
        info!(
            reflector,
            failed_for = %seconds(self.lasted),
            failures = self.failures,
            "list and watch recovered"
        );
    }
}

/// Formats a duration for a log line: `1.2s`.
fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{FailureLogLevel::*, *};

    /// Something that happens at a second.
    enum At {
        /// A failure that is retried after a delay.
        Failed(u64, FailureLogLevel),
        /// A failure that is retried at once.
        Interrupted(u64, FailureLogLevel),
        /// A sign that the API works, and the seconds and failures to be logged.
        Recovered(u64, Option<(u64, u32)>),
    }
    use At::{Failed, Interrupted, Recovered};

    fn still(age: u64) -> FailureLogLevel {
        Error { age: Duration::from_secs(age) }
    }

    fn check(story: &[At]) {
        let mut log = OutageLog::default();
        for (step, at) in story.iter().enumerate() {
            match *at {
                Failed(now, expected) => {
                    let delay = Some(Duration::from_secs(1));
                    assert_eq!(log.failed(Duration::from_secs(now), delay), expected, "step {step}");
                }
                Interrupted(now, expected) => {
                    assert_eq!(log.failed(Duration::from_secs(now), None), expected, "step {step}");
                }
                Recovered(now, expected) => {
                    let expected = expected
                        .map(|(lasted, failures)| Recovery { lasted: Duration::from_secs(lasted), failures });
                    assert_eq!(log.recovered(Duration::from_secs(now)), expected, "step {step}");
                }
            }
        }
    }

    #[test]
    fn an_outage_is_a_warning_at_first_and_an_error_with_its_age_after_a_minute() {
        check(&[
            Recovered(1, None),
            Failed(100, Warn),
            Failed(101, Debug),
            Failed(159, Debug),
            Failed(160, still(60)),
            Failed(190, Debug),
            Failed(459, Debug),
            Failed(460, still(360)),
            Failed(800, still(700)),
            Recovered(801, Some((701, 8))),
            Recovered(802, None),
            Failed(900, Warn),
            Recovered(901, Some((1, 1))),
        ]);
    }

    #[test]
    fn an_interruption_that_ends_immediately_is_no_outage() {
        check(&[
            Interrupted(1, Info),
            Recovered(1, None),
            Interrupted(1_000, Info),
            Interrupted(2_000, Info),
            Failed(2_001, Warn),
            Interrupted(2_002, Debug),
            Interrupted(2_061, still(60)),
        ]);
    }

    #[test]
    fn an_api_that_comes_and_goes_is_reported_like_one_that_is_gone() {
        check(&[
            Failed(0, Warn),
            Recovered(1, Some((1, 1))),
            Failed(31, Debug),
            Recovered(32, None),
            Interrupted(33, Debug),
            Recovered(33, None),
            Failed(60, still(60)),
            Recovered(61, Some((61, 4))),
            Failed(91, Debug),
            Recovered(92, None),
            Failed(123, Warn),
        ]);
    }
}
