//! Limiters that depend on the failures of one key.

use std::time::Duration;

use super::RateLimiter;

/// A backoff that starts at `base`, doubles with each failure of the key and stops growing at `max`.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::limiter::{ItemExponential, RateLimiter};
///
/// let limiter = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1));
/// let delays = [0, 1, 2, 9].map(|failures| limiter.delay(&"default/web", failures, Duration::ZERO).as_millis());
/// assert_eq!(delays, [5, 10, 20, 1000]);
/// ```
#[derive(Debug, Clone)]
#[doc(alias = "TypedItemExponentialFailureRateLimiter")]
pub struct ItemExponential {
    base: Duration,
    max: Duration,
}

impl ItemExponential {
    /// Creates a backoff from `base` to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max }
    }
}

impl<K> RateLimiter<K> for ItemExponential {
    fn delay(&self, _key: &K, failures: u32, _now: Duration) -> Duration {
        2_u32.checked_pow(failures).and_then(|factor| self.base.checked_mul(factor)).map_or_else(
            || if self.base.is_zero() { self.base } else { self.max },
            |delay| delay.min(self.max),
        )
    }
}

/// A backoff of `fast` for the first `fast_attempts` failures of the key and `slow` for later ones.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::limiter::{ItemFastSlow, RateLimiter};
///
/// let limiter = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(3), 2);
/// let delays = [0, 1, 2, 9].map(|failures| limiter.delay(&"default/web", failures, Duration::ZERO).as_millis());
/// assert_eq!(delays, [5, 5, 3000, 3000]);
/// ```
#[derive(Debug, Clone)]
#[doc(alias = "TypedItemFastSlowRateLimiter")]
pub struct ItemFastSlow {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
}

impl ItemFastSlow {
    /// Creates a backoff with `fast_attempts` delays of `fast`, followed by delays of `slow`.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts }
    }
}

impl<K> RateLimiter<K> for ItemFastSlow {
    fn delay(&self, _key: &K, failures: u32, _now: Duration) -> Duration {
        if failures < self.fast_attempts { self.fast } else { self.slow }
    }
}
