//! When which listener is to be told of everything again.

use std::time::Duration;

/// No listener is resynced more often than this.
const SHORTEST: Duration = Duration::from_secs(1);

/// How often anybody looks whether a resync is due.
#[derive(Debug)]
pub(super) struct CheckPeriod {
    period: Duration,
    is_fixed: bool,
}

impl CheckPeriod {
    /// Zero is never.
    pub(super) fn new(period: Duration) -> Self {
        Self { period, is_fixed: false }
    }

    pub(super) fn get(&self) -> Duration {
        self.period
    }

    /// From now on listeners have to make do with the period there is.
    pub(super) fn fix(&mut self) -> Duration {
        self.is_fixed = true;
        self.period
    }

    /// Takes a listener's wish into account, and returns it as far as it can be granted. True when the period
    /// got shorter for it, which concerns the listeners there are.
    pub(super) fn admit(&mut self, wanted: Duration) -> (Duration, bool) {
        if wanted.is_zero() {
            return (wanted, false);
        }
        let wanted = wanted.max(SHORTEST);
        let is_shorter = !self.is_fixed && wanted < self.period;
        if is_shorter {
            self.period = wanted;
        }
        (wanted, is_shorter)
    }
}

/// The resyncs of one listener.
#[derive(Debug)]
pub(super) struct Resync {
    wanted: Duration,
    period: Duration,
    next_at: Duration,
    /// True from when a resync was found due until the next time somebody looks.
    pub(super) is_due: bool,
}

impl Resync {
    pub(super) fn new(wanted: Duration, check: &CheckPeriod, now: Duration) -> Self {
        let mut resync = Self { wanted, period: Duration::ZERO, next_at: Duration::MAX, is_due: false };
        resync.adjust(check, now);
        resync
    }

    /// Follows a change of the check period.
    pub(super) fn adjust(&mut self, check: &CheckPeriod, now: Duration) {
        let never = self.wanted.is_zero() || check.get().is_zero();
        self.period = if never { Duration::ZERO } else { self.wanted.max(check.get()) };
        self.plan(now);
    }

    /// Finds out whether the listener is due now, and if so plans the next time.
    pub(super) fn check(&mut self, now: Duration) -> bool {
        self.is_due = now >= self.next_at;
        if self.is_due {
            self.plan(now);
        }
        self.is_due
    }

    fn plan(&mut self, now: Duration) {
        self.next_at = if self.period.is_zero() { Duration::MAX } else { now.saturating_add(self.period) };
    }
}
