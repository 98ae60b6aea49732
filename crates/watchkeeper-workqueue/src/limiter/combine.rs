//! Limiters that combine or modify other limiters.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::RateLimiter;

/// The longest delay of several limiters. Every limiter is called for every failure.
#[doc(alias = "TypedMaxOfRateLimiter")]
#[doc(alias = "MaxOfRateLimiter")]
#[doc(alias = "NewMaxOfRateLimiter")]
#[doc(alias = "NewTypedMaxOfRateLimiter")]
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
#[derive(Debug, Clone)]
#[doc(alias = "TypedWithMaxWaitRateLimiter")]
#[doc(alias = "WithMaxWaitRateLimiter")]
#[doc(alias = "NewTypedWithMaxWaitRateLimiter")]
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
#[derive(Debug)]
pub struct Jittered<L> {
    limiter: L,
    fraction: f64,
    state: AtomicU64,
}

/// The increment of `SplitMix64`.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

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
        Self { limiter, fraction, state: AtomicU64::new(seed) }
    }

    /// Returns a random number from 0 up to 1, by `SplitMix64`.
    fn next_random(&self) -> f64 {
        let mut mixed = self.state.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let random = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
        random
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for Jittered<L> {
    fn delay(&self, key: &K, failures: u32, now: Duration) -> Duration {
        let delay = self.limiter.delay(key, failures, now);
        let factor = 1.0 + self.next_random() * self.fraction;
        Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
    }

    fn forget(&self, key: &K) {
        self.limiter.forget(key);
    }
}
