//! Limiters that look at one key alone.

use std::time::Duration;

use super::{LONGEST_SCHEDULE, RateLimiter};

/// `base`, then twice as long with each failure, never more than `max`. Does not overflow, however many failures.
#[derive(Debug, Clone)]
pub struct ItemExponential {
    base: Duration,
    max: Duration,
}

impl ItemExponential {
    /// Starts at `base` and stops growing at `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max }
    }
}

impl RateLimiter for ItemExponential {
    fn delay(&mut self, failures: u32, _now: Duration) -> Duration {
        2_u32.checked_pow(failures).and_then(|factor| self.base.checked_mul(factor)).map_or_else(
            || if self.base.is_zero() { self.base } else { self.max },
            |delay| delay.min(self.max),
        )
    }

    fn schedule(&self) -> Option<Vec<Duration>> {
        let mut limiter = self.clone();
        let mut delays: Vec<Duration> =
            (0..LONGEST_SCHEDULE).map(|failures| limiter.delay(failures, Duration::ZERO)).collect();
        // It stops growing where it stops changing: after 32 doublings at the latest.
        let last = delays.last().copied();
        let first_of_last = delays.iter().position(|delay| Some(*delay) == last)?;
        delays.truncate(first_of_last + 1);
        Some(delays)
    }
}

/// `fast` for the first `fast_attempts` failures, `slow` from then on.
#[derive(Debug, Clone)]
pub struct ItemFastSlow {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
}

impl ItemFastSlow {
    /// `fast_attempts` tries at `fast`, then `slow`.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts }
    }
}

impl RateLimiter for ItemFastSlow {
    fn delay(&mut self, failures: u32, _now: Duration) -> Duration {
        if failures < self.fast_attempts { self.fast } else { self.slow }
    }

    fn schedule(&self) -> Option<Vec<Duration>> {
        let fast = (self.fast_attempts < LONGEST_SCHEDULE).then_some(self.fast_attempts)?;
        Some((0..fast).map(|_| self.fast).chain([self.slow]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(limiter: &mut impl RateLimiter, failures: impl IntoIterator<Item = u32>) -> Vec<u128> {
        failures.into_iter().map(|count| limiter.delay(count, Duration::ZERO).as_millis()).collect()
    }

    #[test]
    fn exponential_doubles_from_its_base_and_stops_at_its_maximum() {
        let mut limiter = ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1));
        assert_eq!(delays(&mut limiter, 0..5), [1, 2, 4, 8, 16]);
        assert_eq!(delays(&mut limiter, [9, 10, 11]), [512, 1000, 1000]);
    }

    #[test]
    fn exponential_does_not_overflow_after_any_number_of_failures() {
        let mut limiter = ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000));
        assert_eq!(delays(&mut limiter, [31, 32, 33, 1000, u32::MAX]), [1_000_000; 5]);
        let mut huge = ItemExponential::new(Duration::MAX, Duration::MAX);
        assert_eq!(huge.delay(7, Duration::ZERO), Duration::MAX);
    }

    #[test]
    fn exponential_of_zero_stays_zero() {
        let mut limiter = ItemExponential::new(Duration::ZERO, Duration::from_secs(1));
        assert_eq!(delays(&mut limiter, [0, 5, 40]), [0, 0, 0]);
    }

    #[test]
    fn the_schedule_of_a_limiter_is_what_it_answers_however_many_failures() {
        let millis = Duration::from_millis;
        let exponentials = [(0, 1000), (1, 1000), (5, 1_000_000), (7, 7), (9, 2)]
            .map(|(base, max)| ItemExponential::new(millis(base), millis(max)));
        let fast_slows = [0, 3, 63].map(|fast| ItemFastSlow::new(millis(5), millis(10_000), fast));
        let mut limiters: Vec<Box<dyn RateLimiter>> = Vec::new();
        limiters.extend(exponentials.map(|limiter| Box::new(limiter) as Box<dyn RateLimiter>));
        limiters.push(Box::new(ItemExponential::new(Duration::MAX, Duration::MAX)));
        limiters.extend(fast_slows.map(|limiter| Box::new(limiter) as Box<dyn RateLimiter>));
        for mut limiter in limiters {
            let schedule = limiter.schedule().unwrap();
            for failures in (0..200).chain([65_535, u32::MAX]) {
                let scheduled = schedule.get(failures as usize).or(schedule.last()).copied();
                assert_eq!(scheduled, Some(limiter.delay(failures, Duration::ZERO)), "{failures} failures");
            }
        }
        assert_eq!(ItemFastSlow::new(millis(5), millis(10), 64).schedule(), None, "too long");
    }

    #[test]
    fn fast_slow_changes_after_the_fast_attempts() {
        let mut limiter = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
        assert_eq!(delays(&mut limiter, 0..6), [5, 5, 5, 10_000, 10_000, 10_000]);
    }
}
