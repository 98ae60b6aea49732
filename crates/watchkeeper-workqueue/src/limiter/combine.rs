//! Limiters that combine or modify other limiters.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use foldhash::quality::FixedState;

use super::RateLimiter;

/// The longest delay of several limiters. Every limiter is called for every failure.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::limiter::{ItemExponential, MaxOf, RateLimiter, TokenBucket};
///
/// let backoff = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1));
/// let limiters: [Box<dyn RateLimiter<&str>>; 2] = [Box::new(backoff), Box::new(TokenBucket::new(10.0, 1))];
/// let limiter = MaxOf::new(limiters);
/// let delays = [0, 0, 9].map(|failures| limiter.delay(&"default/web", failures, Duration::ZERO).as_millis());
/// assert_eq!(delays, [5, 100, 1000]);
/// ```
#[doc(alias = "TypedMaxOfRateLimiter")]
pub struct MaxOf<K> {
    limiters: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOf<K> {
    /// Combines limiters. Without any, the delay is zero.
    pub fn new(limiters: impl IntoIterator<Item = Box<dyn RateLimiter<K>>>) -> Self {
        Self { limiters: limiters.into_iter().collect() }
    }
}

impl<K> fmt::Debug for MaxOf<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.limiters).finish()
    }
}

impl<K: 'static> RateLimiter<K> for MaxOf<K> {
    fn delay(&self, key: &K, failures: u32, now: Duration) -> Duration {
        self.limiters.iter().map(|limiter| limiter.delay(key, failures, now)).max().unwrap_or_default()
    }

    fn forget(&self, key: &K) {
        self.limiters.iter().for_each(|limiter| limiter.forget(key));
    }
}

/// The delay of another limiter, at most `max`.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::limiter::{RateLimiter, TokenBucket, WithMaxWait};
///
/// let limiter = WithMaxWait::new(TokenBucket::new(10.0, 1), Duration::from_millis(150));
/// let delays = ["a", "b", "c"].map(|key| limiter.delay(&key, 0, Duration::ZERO).as_millis());
/// assert_eq!(delays, [0, 100, 150]);
/// ```
#[derive(Debug, Clone)]
#[doc(alias = "TypedWithMaxWaitRateLimiter")]
pub struct WithMaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> WithMaxWait<L> {
    /// Limits the delays of `limiter` to `max`.
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for WithMaxWait<L> {
    fn delay(&self, key: &K, failures: u32, now: Duration) -> Duration {
        self.limiter.delay(key, failures, now).min(self.max)
    }

    fn forget(&self, key: &K) {
        self.limiter.forget(key);
    }
}

/// The delay of another limiter, extended by a random part of up to `fraction` of the delay.
///
/// Keys that fail together, because a dependency was unavailable, are then retried at different times.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::limiter::{ItemExponential, Jittered, RateLimiter};
///
/// let limiter = Jittered::new(ItemExponential::new(Duration::from_secs(4), Duration::from_secs(60)), 0.5);
/// let delay = limiter.delay(&"default/web", 0, Duration::ZERO);
/// assert!(delay >= Duration::from_secs(4) && delay < Duration::from_secs(6));
/// ```
#[derive(Debug)]
pub struct Jittered<L> {
    limiter: L,
    fraction: f64,
    /// Hashes the number of the call.
    random: FixedState,
    calls: AtomicU64,
}

impl<L> Jittered<L> {
    /// Extends the delays of `limiter` by up to `fraction`, with a random seed. With 0.5, a delay is up to 1.5 times as long.
    ///
    /// A fraction that is negative or not finite counts as zero.
    pub fn new(limiter: L, fraction: f64) -> Self {
        Self::with_seed(limiter, fraction, RandomState::new().hash_one(0))
    }

    /// Extends delays as [`Jittered::new`] does, with a seed that makes them repeatable.
    pub fn with_seed(limiter: L, fraction: f64, seed: u64) -> Self {
        let fraction = if fraction.is_finite() { fraction.max(0.0) } else { 0.0 };
        Self { limiter, fraction, random: FixedState::with_seed(seed), calls: AtomicU64::new(0) }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for Jittered<L> {
    fn delay(&self, key: &K, failures: u32, now: Duration) -> Duration {
        let delay = self.limiter.delay(key, failures, now);
        let random = self.random.hash_one(self.calls.fetch_add(1, Ordering::Relaxed));
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let factor = 1.0 + (random >> 11) as f64 / (1_u64 << 53) as f64 * self.fraction;
        Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
    }

    fn forget(&self, key: &K) {
        self.limiter.forget(key);
    }
}
