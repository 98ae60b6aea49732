//! A limit on all keys together.

use std::time::Duration;

use super::RateLimiter;
use crate::sync::Mutex;

/// A limit of `rate` keys per second on average, with bursts of up to `burst` keys.
///
/// Stored as one number, the time at which the bucket is full again, so rounding errors do not accumulate.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::limiter::{RateLimiter, TokenBucket};
///
/// let limiter = TokenBucket::new(10.0, 2); // 10 per second, after a burst of 2
/// let delays = ["a", "b", "c", "d"].map(|key| limiter.delay(&key, 0, Duration::ZERO).as_millis());
/// assert_eq!(delays, [0, 0, 100, 200]);
/// ```
#[doc(alias = "TypedBucketRateLimiter")]
#[derive(Debug)]
pub struct TokenBucket {
    interval: Duration,
    burst: u32,
    /// Wider than a time, so that a bucket that is never refilled can count its burst.
    full_at_nanos: Mutex<u128>,
}

impl TokenBucket {
    /// Creates a full bucket.
    ///
    /// With a rate that is zero, negative or NaN the bucket is never refilled: after the burst every delay is centuries long.
    pub fn new(rate_per_second: f64, burst: u32) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / rate_per_second).unwrap_or(Duration::MAX);
        Self { interval, burst, full_at_nanos: Mutex::new(0) }
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn delay(&self, _key: &K, _failures: u32, now: Duration) -> Duration {
        let now = now.as_nanos();
        let interval = self.interval.as_nanos();
        let mut full_at_nanos = self.full_at_nanos.lock();
        *full_at_nanos = full_at_nanos.max(now).saturating_add(interval);
        let beyond_burst = full_at_nanos.saturating_sub(interval * u128::from(self.burst));
        Duration::from_nanos(u64::try_from(beyond_burst.saturating_sub(now)).unwrap_or(u64::MAX))
    }
}
