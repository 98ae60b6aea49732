//! The schedule of credential reloads: a state machine without clock and IO.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

/// The time after which a volatile value is reloaded.
pub(crate) const RELOAD_INTERVAL: Duration = Duration::from_mins(1);

/// The minimum time between failed loads, and between loads forced by rejected requests. Without it, a server
/// that rejects every request would cause one run of an exec plugin per request.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The time before its expiry at which a credential is replaced, or a fifth of its remaining lifetime if that
/// is shorter.
const EXPIRY_MARGIN: Duration = Duration::from_mins(1);

/// The lifetime of a loaded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Valid until a server rejects it.
    UntilRejected,
    /// Subject to change at any time: reload after [`RELOAD_INTERVAL`].
    Recheck,
    /// Valid until this time.
    Until(Instant),
    /// Already expired when loaded. Either clock may be wrong, so the value is used, and replaced as soon as
    /// [`RELOAD_INTERVAL`] allows.
    ExpiredOnArrival,
}

/// The action for a request that needs the value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CredentialStep<T, E> {
    Use(Arc<T>),
    Load,
    Fail(Arc<E>),
}

/// The action after a server rejected the value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// Retry with the current value, which has been replaced since.
    AlreadyReplaced,
    /// Load a new value now.
    Load,
    /// Give up, because the value was reloaded for the same reason a moment ago.
    TooSoon,
}

/// The current value and the rules for replacing it: at most one load per [`RELOAD_INTERVAL`], before an
/// expiry time, immediately after a rejection, and keeping the last valid value while reloads fail.
#[derive(Debug)]
pub(crate) struct Rotation<T, E> {
    current: Option<Arc<T>>,
    /// The number of the value, so that a rejected request can determine whether its value is still current.
    version: u64,
    due: Option<Instant>,
    expires: Option<Instant>,
    rejected_at: Option<Instant>,
    failure: Option<FailedLoad<E>>,
    loads: u64,
    failures: u64,
}

#[derive(Debug)]
struct FailedLoad<E> {
    error: Arc<E>,
    retry_at: Instant,
}

impl<T, E> Rotation<T, E> {
    pub(crate) fn new() -> Self {
        Self {
            current: None,
            version: 0,
            due: None,
            expires: None,
            rejected_at: None,
            failure: None,
            loads: 0,
            failures: 0,
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn loads(&self) -> u64 {
        self.loads
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns the current value, unless it has expired.
    pub(crate) fn usable(&self, now: Instant) -> Option<Arc<T>> {
        self.current.clone().filter(|_| self.expires.is_none_or(|at| now < at))
    }

    pub(crate) fn next(&self, now: Instant) -> CredentialStep<T, E> {
        let usable = self.usable(now);
        if let Some(failure) = self.failure.as_ref().filter(|failure| now < failure.retry_at) {
            return usable.map_or_else(|| CredentialStep::Fail(failure.error.clone()), CredentialStep::Use);
        }
        match usable {
            Some(value) if self.due.is_none_or(|at| now < at) => CredentialStep::Use(value),
            _ => CredentialStep::Load,
        }
    }

    /// Records a successful load of `value`; `is_same` is whether it equals the current value. Returns the
    /// value to use from now on.
    pub(crate) fn loaded(
        &mut self,
        now: Instant,
        value: T,
        lifetime: Lifetime,
        is_same: impl FnOnce(&T, &T) -> bool,
    ) -> Arc<T> {
        self.loads += 1;
        self.failure = None;
        self.expires = match lifetime {
            Lifetime::Until(at) => Some(at),
            _ => None,
        };
        self.due = match lifetime {
            Lifetime::UntilRejected => None,
            Lifetime::Recheck | Lifetime::ExpiredOnArrival => Some(now + RELOAD_INTERVAL),
            Lifetime::Until(at) => {
                let remaining = at.saturating_duration_since(now);
                Some(at - EXPIRY_MARGIN.min(remaining / 5))
            }
        };
        if let Some(current) = self.current.as_ref().filter(|current| is_same(current, &value)) {
            return current.clone();
        }
        self.version += 1;
        self.current.insert(Arc::new(value)).clone()
    }

    pub(crate) fn failed(&mut self, now: Instant, error: Arc<E>) {
        self.failures += 1;
        self.failure = Some(FailedLoad { error, retry_at: now + RETRY_INTERVAL });
    }

    /// Returns the action after a server rejected the value numbered `version`.
    pub(crate) fn rejected(&mut self, now: Instant, version: u64) -> Rejected {
        if version != self.version {
            return Rejected::AlreadyReplaced;
        }
        if self.rejected_at.is_some_and(|at| now < at + RETRY_INTERVAL) {
            return Rejected::TooSoon;
        }
        self.rejected_at = Some(now);
        Rejected::Load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tokens = Rotation<&'static str, &'static str>;

    fn start() -> Instant {
        crate::transport::clock::now()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn loaded(rotation: &mut Tokens, now: Instant, value: &'static str, lifetime: Lifetime) {
        rotation.loaded(now, value, lifetime, |a, b| a == b);
    }

    fn used(rotation: &Tokens, now: Instant) -> Option<&'static str> {
        match rotation.next(now) {
            CredentialStep::Use(value) => Some(*value),
            CredentialStep::Load | CredentialStep::Fail(_) => None,
        }
    }

    #[test]
    fn a_file_is_read_once_a_minute_at_most() {
        let t0 = start();
        let mut rotation = Tokens::new();
        assert_eq!(rotation.next(t0), CredentialStep::Load);
        loaded(&mut rotation, t0, "one", Lifetime::Recheck);
        assert_eq!(used(&rotation, t0 + seconds(59)), Some("one"));
        assert_eq!(rotation.next(t0 + seconds(60)), CredentialStep::Load);
    }

    #[test]
    fn a_reload_that_finds_the_same_value_keeps_its_version() {
        let t0 = start();
        let mut rotation = Tokens::new();
        loaded(&mut rotation, t0, "one", Lifetime::Recheck);
        let version = rotation.version();
        loaded(&mut rotation, t0 + seconds(60), "one", Lifetime::Recheck);
        assert_eq!(rotation.version(), version);
        loaded(&mut rotation, t0 + seconds(120), "two", Lifetime::Recheck);
        assert_ne!(rotation.version(), version);
        assert_eq!(rotation.loads(), 3);
    }

    #[test]
    fn the_last_good_value_outlives_failing_reloads_and_each_failure_is_counted() {
        let t0 = start();
        let mut rotation = Tokens::new();
        loaded(&mut rotation, t0, "one", Lifetime::Recheck);
        for round in 0..3 {
            let now = t0 + seconds(60) + RETRY_INTERVAL * round;
            assert_eq!(rotation.next(now), CredentialStep::Load);
            rotation.failed(now, Arc::new("gone"));
            assert_eq!(used(&rotation, now), Some("one"));
        }
        assert_eq!(rotation.failures(), 3);
    }

    #[test]
    fn a_failure_with_nothing_to_fall_back_on_is_repeated_without_loading_for_a_moment() {
        let t0 = start();
        let mut rotation = Tokens::new();
        rotation.failed(t0, Arc::new("exit 1"));
        assert_eq!(rotation.next(t0 + seconds(4)), CredentialStep::Fail(Arc::new("exit 1")));
        assert_eq!(rotation.next(t0 + RETRY_INTERVAL), CredentialStep::Load);
    }

    #[test]
    fn an_expiring_value_is_replaced_before_its_end_and_never_used_after_it() {
        let t0 = start();
        let mut rotation = Tokens::new();
        loaded(&mut rotation, t0, "one", Lifetime::Until(t0 + seconds(3600)));
        assert_eq!(used(&rotation, t0 + seconds(3539)), Some("one"));
        assert_eq!(rotation.next(t0 + seconds(3540)), CredentialStep::Load);
        rotation.failed(t0 + seconds(3540), Arc::new("exit 1"));
        assert_eq!(used(&rotation, t0 + seconds(3541)), Some("one"));
        rotation.failed(t0 + seconds(3599), Arc::new("exit 1"));
        assert_eq!(rotation.next(t0 + seconds(3601)), CredentialStep::Fail(Arc::new("exit 1")));
    }

    #[test]
    fn a_short_lived_value_is_still_used_for_most_of_its_life() {
        let t0 = start();
        let mut rotation = Tokens::new();
        loaded(&mut rotation, t0, "one", Lifetime::Until(t0 + seconds(50)));
        assert_eq!(used(&rotation, t0 + seconds(39)), Some("one"));
        assert_eq!(rotation.next(t0 + seconds(40)), CredentialStep::Load);
    }

    #[test]
    fn a_value_past_its_date_on_arrival_is_used_and_replaced_after_a_minute() {
        let t0 = start();
        let mut rotation = Tokens::new();
        loaded(&mut rotation, t0, "one", Lifetime::ExpiredOnArrival);
        assert_eq!(used(&rotation, t0 + seconds(59)), Some("one"));
        assert_eq!(rotation.next(t0 + seconds(60)), CredentialStep::Load);
    }

    #[test]
    fn one_rejection_forces_one_load_and_late_rejections_of_the_old_value_force_none() {
        let t0 = start();
        let mut rotation = Tokens::new();
        loaded(&mut rotation, t0, "one", Lifetime::UntilRejected);
        let old = rotation.version();
        assert_eq!(rotation.rejected(t0, old), Rejected::Load);
        assert_eq!(rotation.rejected(t0, old), Rejected::TooSoon);
        loaded(&mut rotation, t0, "two", Lifetime::UntilRejected);
        assert_eq!(rotation.rejected(t0, old), Rejected::AlreadyReplaced);
        assert_eq!(rotation.rejected(t0 + RETRY_INTERVAL, rotation.version()), Rejected::Load);
    }
}
