//! How long to wait before trying again.

use std::time::Duration;

use super::options::{BackoffOptions, FOR_EVER};

/// Waits that double up to a limit, and go back to the first only after things went well for long enough.
///
/// Things that merely worked for a moment do not count: a server that takes each watch and drops it a second later would
/// otherwise be asked again at full speed for ever.
#[derive(Debug)]
pub(crate) struct Backoff {
    options: BackoffOptions,
    doublings: u32,
    well_since: Option<Duration>,
}

impl Backoff {
    pub(crate) fn new(options: BackoffOptions) -> Self {
        Self { options, doublings: 0, well_since: None }
    }

    /// Things go well, from `now` on unless they did before.
    pub(crate) fn well(&mut self, now: Duration) {
        self.well_since.get_or_insert(now);
    }

    /// Things no longer go well.
    pub(crate) fn interrupted(&mut self, now: Duration) {
        let lasted = self.well_since.take().map(|since| now.saturating_sub(since));
        if lasted.is_some_and(|lasted| lasted >= self.options.reset_after) {
            self.doublings = 0;
        }
    }

    /// The next wait: the interval, or what the server asks for if that is longer, and then up to one interval more as
    /// `jitter` in 0..1 has it, so that those who fell together do not come back together.
    pub(crate) fn next(&mut self, now: Duration, at_least: Option<Duration>, jitter: f64) -> Duration {
        self.interrupted(now);
        let doubled = 2_u32.checked_pow(self.doublings).and_then(|n| self.options.initial.checked_mul(n));
        let interval = doubled.unwrap_or(self.options.max).min(self.options.max).min(FOR_EVER);
        self.doublings = self.doublings.saturating_add(1);
        interval.max(at_least.unwrap_or_default()) + interval.mul_f64(jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn intervals(backoff: &mut Backoff, n: usize) -> Vec<u64> {
        let next = |_| u64::try_from(backoff.next(Duration::ZERO, None, 0.0).as_millis()).unwrap();
        (0..n).map(next).collect()
    }

    #[test]
    fn waits_double_and_stay_at_the_limit() {
        let mut backoff = Backoff::new(BackoffOptions::default());
        assert_eq!(intervals(&mut backoff, 8), [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(intervals(&mut backoff, 100)[99], 30_000, "no overflow");
    }

    #[test]
    fn jitter_comes_on_top_and_is_as_wide_as_the_interval() {
        let wait = |jitter| Backoff::new(BackoffOptions::default()).next(Duration::ZERO, None, jitter);
        assert_eq!(wait(0.0), Duration::from_millis(800));
        assert_eq!(wait(0.5), Duration::from_millis(1200));
        assert_eq!(wait(1.0), Duration::from_millis(1600));
    }

    #[test]
    fn what_the_server_asks_for_is_the_least_and_is_jittered_too() {
        let asked = Some(Duration::from_secs(10));
        let wait = |jitter| Backoff::new(BackoffOptions::default()).next(Duration::ZERO, asked, jitter);
        assert_eq!(wait(0.0), Duration::from_secs(10));
        assert_eq!(wait(0.5), Duration::from_millis(10_400));
        let short = Some(Duration::from_millis(1));
        let mut backoff = Backoff::new(BackoffOptions::default());
        assert_eq!(backoff.next(Duration::ZERO, short, 0.0), Duration::from_millis(800));
    }

    #[test]
    fn only_success_that_lasted_starts_over() {
        let mut backoff = Backoff::new(BackoffOptions::default());
        assert_eq!(intervals(&mut backoff, 3), [800, 1600, 3200]);
        backoff.well(MINUTE);
        assert_eq!(backoff.next(MINUTE * 2, None, 0.0).as_millis(), 6400, "one good minute is not enough");
        backoff.well(MINUTE * 3);
        backoff.well(MINUTE * 4);
        assert_eq!(backoff.next(MINUTE * 5, None, 0.0).as_millis(), 800, "two in a row are");
        assert_eq!(backoff.next(MINUTE * 60, None, 0.0).as_millis(), 1600, "an hour without success is not");
    }

    #[test]
    fn an_interruption_without_a_wait_ends_the_good_time() {
        let mut backoff = Backoff::new(BackoffOptions::default());
        assert_eq!(intervals(&mut backoff, 2), [800, 1600]);
        backoff.well(MINUTE);
        backoff.interrupted(MINUTE * 2);
        backoff.well(MINUTE * 2);
        assert_eq!(backoff.next(MINUTE * 3, None, 0.0).as_millis(), 3200);
    }
}
