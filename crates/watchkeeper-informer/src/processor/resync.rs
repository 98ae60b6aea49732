//! The schedule of resyncs.

use std::time::Duration;

/// The shortest resync period of a listener.
const SHORTEST: Duration = Duration::from_secs(1);

/// The interval at which the processor checks for due resyncs.
#[derive(Debug)]
pub(super) struct CheckPeriod {
    period: Duration,
    is_fixed: bool,
}

impl CheckPeriod {
    /// Creates a check period; zero is never.
    pub(super) fn new(period: Duration) -> Self {
        Self { period, is_fixed: false }
    }

    pub(super) fn get(&self) -> Duration {
        self.period
    }

    /// Fixes the period. Listeners that are added later do not shorten it.
    pub(super) fn fix(&mut self) -> Duration {
        self.is_fixed = true;
        self.period
    }

    /// Returns the period for a listener that wants to be resynced at intervals of `wanted`, and whether the
    /// check period was shortened for it, which affects the other listeners.
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

/// The resync schedule of one listener.
#[derive(Debug)]
pub(super) struct Resync {
    wanted: Duration,
    period: Duration,
    next_at: Duration,
    /// True from the check that found the resync due until the next check.
    pub(super) is_due: bool,
}

impl Resync {
    pub(super) fn new(wanted: Duration, check: &CheckPeriod, now: Duration) -> Self {
        let mut resync = Self { wanted, period: Duration::ZERO, next_at: Duration::MAX, is_due: false };
        resync.adjust(check, now);
        resync
    }

    /// Adapts the schedule to a change of the check period.
    pub(super) fn adjust(&mut self, check: &CheckPeriod, now: Duration) {
        let never = self.wanted.is_zero() || check.get().is_zero();
        self.period = if never { Duration::ZERO } else { self.wanted.max(check.get()) };
        self.plan(now);
    }

    /// Returns whether a resync is due now, and schedules the next one.
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
