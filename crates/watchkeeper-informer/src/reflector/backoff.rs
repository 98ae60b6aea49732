//! Delays between attempts, with a backoff for each class of failure.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Failure, Reason},
    error::{ApiReason, TransportKind},
};

use super::options::{BackoffOptions, MAX_WAIT};

/// The time after the last failed connection for which a server counts as starting. Until its caches are
/// filled, an API server that was just started rejects requests that it accepts a moment later, for example
/// with 403 and 404.
const STARTUP: Duration = Duration::from_secs(30);

/// A class of failures, by the cost of an attempt for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureClass {
    /// The server cannot be reached, or is starting. An attempt costs nothing.
    Unreachable,
    /// The server rejects the request for lack of permission, which costs it one authorization check.
    Denied,
    /// The server does not serve the resource, or not in this way.
    NotServed,
    /// The server has too much to do, or reported an error of its own.
    Overloaded,
    /// The response cannot be used: an expired version, an unreadable object.
    Broken,
}

impl FailureClass {
    const COUNT: usize = 5;

    fn of(failure: Failure) -> Self {
        match failure.reason() {
            Reason::Transport(TransportKind::Tls | TransportKind::Credentials)
            | Reason::Redirect
            | Reason::Api(ApiReason::Unauthorized | ApiReason::Forbidden) => Self::Denied,
            Reason::Transport(_) | Reason::Idle => Self::Unreachable,
            // A load balancer without a backend, unless the server itself sends `Retry-After`.
            Reason::Api(ApiReason::BadGateway | ApiReason::Unavailable)
                if failure.retry_after().is_none() =>
            {
                Self::Unreachable
            }
            Reason::Api(
                ApiReason::TooManyRequests
                | ApiReason::Timeout
                | ApiReason::BadGateway
                | ApiReason::Unavailable
                | ApiReason::Internal
                | ApiReason::OtherServer,
            )
            | Reason::Deadline => Self::Overloaded,
            Reason::Api(ApiReason::Expired | ApiReason::ResourceVersionTooLarge) => Self::Broken,
            Reason::Api(_) | Reason::InvalidRequest => Self::NotServed,
            _ => Self::Broken,
        }
    }

    /// Returns the share of the time since the first failure of the class that is waited before the next
    /// attempt.
    ///
    /// A share of one doubles the delays. A sixteenth detects a recovery within about a sixteenth of the
    /// duration of the outage, and is for failures that cost the server little.
    fn share(self) -> f64 {
        match self {
            Self::Unreachable | Self::Denied | Self::NotServed => 1.0 / 16.0,
            Self::Overloaded | Self::Broken => 1.0,
        }
    }
}

/// The consecutive failures of one class.
#[derive(Debug, Clone, Copy)]
struct Streak {
    since: Duration,
    last: Duration,
}

/// Delays that grow with the time since the first failure of their class, from [`BackoffOptions::initial`] to
/// [`BackoffOptions::max`], and are reset by progress.
///
/// Each class has its own streak, so that an earlier failure of another class does not delay a recovery.
#[derive(Debug)]
pub(crate) struct FailureBackoff {
    options: BackoffOptions,
    streaks: [Option<Streak>; FailureClass::COUNT],
}

impl FailureBackoff {
    pub(crate) fn new(options: BackoffOptions) -> Self {
        Self { options, streaks: [None; FailureClass::COUNT] }
    }

    /// Forgets all failures after progress.
    pub(crate) fn reset(&mut self) {
        self.streaks = [None; FailureClass::COUNT];
    }

    /// Returns whether the server was unreachable a moment ago, so that its rejections may be those of a
    /// server that is not ready.
    pub(crate) fn is_starting(&self, now: Duration) -> bool {
        self.streaks[FailureClass::Unreachable as usize]
            .is_some_and(|streak| now.saturating_sub(streak.last) <= STARTUP)
    }

    /// Returns the delay after `failure`: between half of the interval and all of it, depending on `jitter`
    /// in 0..1, so that clients that failed together do not retry together. The delay is at least that
    /// requested by the server.
    pub(crate) fn next(&mut self, now: Duration, failure: Failure, jitter: f64) -> Duration {
        let class = FailureClass::of(failure);
        // Any response of a starting server counts for the unreachable streak, but does not prolong it, or
        // the start would never end.
        let (class, is_same) = if self.is_starting(now) {
            (FailureClass::Unreachable, class == FailureClass::Unreachable)
        } else {
            (class, true)
        };
        let streak = self.streaks[class as usize].get_or_insert(Streak { since: now, last: now });
        if is_same {
            streak.last = now;
        }
        let age = now.saturating_sub(streak.since);
        let max = self.options.max.min(MAX_WAIT);
        let interval = age.min(MAX_WAIT).mul_f64(class.share()).clamp(self.options.initial.min(max), max);
        let jitter = jitter.clamp(0.0, 1.0);
        let wait = interval.mul_f64(0.5 + jitter / 2.0);
        match failure.retry_after() {
            Some(least) => wait.max(least.saturating_add(interval.mul_f64(jitter / 2.0))),
            None => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport() -> Failure {
        Failure::new(Reason::Transport(TransportKind::Refused))
    }

    fn api(reason: ApiReason) -> Failure {
        Failure::new(Reason::Api(reason))
    }

    fn backoff() -> FailureBackoff {
        FailureBackoff::new(BackoffOptions::default())
    }

    /// The waits, in milliseconds, of one failure after the other.
    fn waits(backoff: &mut FailureBackoff, failure: Failure, jitter: f64, n: usize) -> Vec<u128> {
        let mut now = Duration::ZERO;
        (0..n)
            .map(|_| {
                let wait = backoff.next(now, failure, jitter);
                now += wait;
                wait.as_millis()
            })
            .collect()
    }

    #[test]
    fn waits_for_a_busy_server_double_up_to_the_limit() {
        let waits = waits(&mut backoff(), api(ApiReason::TooManyRequests), 1.0, 9);
        assert_eq!(waits, [800, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
    }

    #[test]
    fn a_server_that_comes_back_is_found_within_a_sixteenth_of_its_outage() {
        for failure in [transport(), api(ApiReason::Forbidden), api(ApiReason::NotFound)] {
            let mut backoff = backoff();
            let mut now = Duration::ZERO;
            while now < Duration::from_mins(20) {
                let wait = backoff.next(now, failure, 1.0);
                let allowed = (now / 16).clamp(Duration::from_millis(800), Duration::from_secs(30));
                assert!(
                    wait.abs_diff(allowed) < Duration::from_micros(1),
                    "{failure:?}: {wait:?} after {now:?}"
                );
                now += wait;
            }
        }
    }

    #[test]
    fn jitter_is_half_of_the_interval() {
        let wait = |jitter| backoff().next(Duration::ZERO, transport(), jitter).as_millis();
        assert_eq!((wait(0.0), wait(0.5), wait(1.0)), (400, 600, 800));
    }

    #[test]
    fn retry_after_is_the_least_and_is_jittered_too() {
        let requested = |after| api(ApiReason::TooManyRequests).after(after);
        let wait =
            |jitter| backoff().next(Duration::ZERO, requested(Duration::from_secs(10)), jitter).as_millis();
        assert_eq!((wait(0.0), wait(1.0)), (10_000, 10_400));
        assert_eq!(backoff().next(Duration::ZERO, requested(Duration::from_millis(1)), 1.0).as_millis(), 800);
    }

    #[test]
    fn classes_do_not_delay_each_other_and_progress_starts_over() {
        let mut backoff = backoff();
        let busy = api(ApiReason::TooManyRequests);
        let long = Duration::from_mins(10);
        backoff.next(Duration::ZERO, busy, 1.0);
        assert_eq!(backoff.next(long, busy, 1.0).as_millis(), 30_000);
        assert_eq!(backoff.next(long, transport(), 1.0).as_millis(), 800, "another class");
        assert_eq!(backoff.next(long + STARTUP * 2, busy, 1.0).as_millis(), 30_000, "without progress");
        backoff.reset();
        assert_eq!(backoff.next(long * 2, busy, 1.0).as_millis(), 800);
    }

    #[test]
    fn a_server_that_just_started_may_reject_requests_that_it_accepts_later() {
        let mut backoff = backoff();
        let forbidden = api(ApiReason::Forbidden);
        assert!(!backoff.is_starting(Duration::ZERO));
        backoff.next(Duration::ZERO, transport(), 1.0);
        for seconds in [1, 10, 30] {
            let now = Duration::from_secs(seconds);
            assert!(backoff.is_starting(now));
            assert!(backoff.next(now, forbidden, 1.0) <= Duration::from_millis(1875));
        }
        let later = Duration::from_secs(31);
        assert!(!backoff.is_starting(later), "rejections do not prolong the start");
        assert_eq!(backoff.next(later, forbidden, 1.0).as_millis(), 800, "a class of its own, from now on");
    }

    #[test]
    fn extreme_options_and_times_do_not_overflow() {
        let options = BackoffOptions { initial: Duration::MAX, max: Duration::MAX };
        let mut backoff = FailureBackoff::new(options);
        assert!(backoff.next(Duration::ZERO, transport(), 1.0) <= MAX_WAIT);
        assert!(backoff.next(Duration::MAX, transport().after(Duration::MAX), 1.0) <= Duration::MAX);
        let options = BackoffOptions { initial: Duration::ZERO, max: Duration::ZERO };
        assert_eq!(FailureBackoff::new(options).next(Duration::ZERO, transport(), 1.0), Duration::ZERO);
    }
}
