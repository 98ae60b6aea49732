//! A limit on all keys together.

use std::time::Duration;

use super::RateLimiter;

/// At most `rate` keys a second on average, with bursts of up to `burst`.
///
/// Kept as one number, the time at which the bucket will be full again, so that it is exact in nanoseconds and
/// cannot drift.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    interval_nanos: u64,
    burst: u32,
    /// Wider than a time, so that a bucket that never refills still counts its burst.
    full_at_nanos: u128,
}

impl TokenBucket {
    /// A full bucket. A rate of zero or less, or one that is not a number, never refills: after the burst
    /// every delay is the longest there is.
    pub fn new(rate_per_second: f64, burst: u32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float to integer casts saturate, which is what a very slow rate should do"
        )]
        let interval_nanos =
            if rate_per_second > 0.0 { (1e9 / rate_per_second).round() as u64 } else { u64::MAX };
        Self { interval_nanos, burst, full_at_nanos: 0 }
    }
}

impl RateLimiter for TokenBucket {
    fn delay(&mut self, _failures: u32, now: Duration) -> Duration {
        let now = now.as_nanos();
        let interval = u128::from(self.interval_nanos);
        self.full_at_nanos = self.full_at_nanos.max(now).saturating_add(interval);
        let beyond_burst = self.full_at_nanos.saturating_sub(interval * u128::from(self.burst));
        Duration::from_nanos(u64::try_from(beyond_burst.saturating_sub(now)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_the_rest_waits_in_turn() {
        let mut bucket = TokenBucket::new(10.0, 3);
        let delays: Vec<u128> = (0..6).map(|_| bucket.delay(0, Duration::ZERO).as_millis()).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 300]);
    }

    #[test]
    fn tokens_come_back_with_time_but_never_more_than_the_burst() {
        let mut bucket = TokenBucket::new(10.0, 2);
        for _ in 0..4 {
            bucket.delay(0, Duration::ZERO);
        }
        let later = Duration::from_mins(1);
        let delays: Vec<u128> = (0..3).map(|_| bucket.delay(0, later).as_millis()).collect();
        assert_eq!(delays, [0, 0, 100]);
    }

    #[test]
    fn a_bucket_that_never_refills_gives_its_burst_and_then_waits_for_ever() {
        for rate in [0.0, -1.0, f64::NAN] {
            let mut bucket = TokenBucket::new(rate, 1);
            assert_eq!(bucket.delay(0, Duration::ZERO), Duration::ZERO);
            assert!(bucket.delay(0, Duration::ZERO) > Duration::from_secs(1 << 30));
        }
    }
}
