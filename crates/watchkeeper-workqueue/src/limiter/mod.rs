//! Rate limiters: how long a failed key waits before it is processed again.
//!
//! A limiter calculates a delay from the key, its failure count and the time. The queue counts failures, beside the key, and
//! discards the count when the key succeeds or leaves the queue. The limiters of this module therefore store nothing per key.
//!
//! | limiter | delay |
//! |---|---|
//! | [`ItemExponential`] | doubles with each failure of the key, up to a maximum |
//! | [`ItemFastSlow`] | short for the first failures of the key, long for later ones |
//! | [`TokenBucket`] | as long as needed to keep all keys together below a rate |
//! | [`MaxOf`] | the longest delay of several limiters |
//! | [`WithMaxWait`] | the delay of another limiter, limited |
//! | [`Jittered`] | the delay of another limiter, extended by a random fraction |

mod bucket;
mod combine;
mod item;

use std::{fmt, time::Duration};

pub use self::{
    bucket::TokenBucket,
    combine::{Jittered, MaxOf, WithMaxWait},
    item::{ItemExponential, ItemFastSlow},
};

/// A function from a failed key to its backoff.
///
/// The queue holds no lock during a call, and several threads can call a limiter at the same time. A limiter that changes state of
/// its own uses an atomic or a lock, as [`TokenBucket`] does.
///
/// A limiter that depends on the key:
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_workqueue::{RateLimiter, WorkQueue, limiter::ItemExponential};
///
/// /// Retries keys of the namespace `batch` once a minute, others with exponential backoff.
/// #[derive(Debug)]
/// struct ByNamespace(ItemExponential);
///
/// impl RateLimiter<String> for ByNamespace {
///     fn delay(&self, key: &String, failures: u32, now: Duration) -> Duration {
///         if key.starts_with("batch/") {
///             return Duration::from_secs(60);
///         }
///         self.0.delay(key, failures, now)
///     }
/// }
///
/// let backoff = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(300));
/// let queue = WorkQueue::builder("jobs").rate_limiter(ByNamespace(backoff)).build();
/// queue.add("batch/report".to_owned());
/// let item = queue.try_get().expect("the key is queued");
/// assert_eq!(item.retry_with_delay().1, Duration::from_secs(60));
/// ```
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<K>: fmt::Debug + Send + Sync + 'static {
    /// Returns the backoff of a key that failed `failures` times before this failure, at time `now` of the clock of the queue.
    #[doc(alias = "When")]
    fn delay(&self, key: &K, failures: u32, now: Duration) -> Duration;

    /// Discards the state of a key that succeeded after failures or left the queue. The default implementation is empty.
    ///
    /// Limiters that store something per key override this method. The queue also calls it for keys without state.
    fn forget(&self, key: &K) {
        let _ = key;
    }
}

impl<K: 'static> RateLimiter<K> for Box<dyn RateLimiter<K>> {
    fn delay(&self, key: &K, failures: u32, now: Duration) -> Duration {
        self.as_ref().delay(key, failures, now)
    }

    fn forget(&self, key: &K) {
        self.as_ref().forget(key);
    }
}

/// Returns the default limiter of queues, which is also client-go's default.
///
/// The delay is the longer one of two limits: exponential backoff per key, from 5 ms to 1000 s, and a token bucket for all
/// keys together, with 10 keys per second and a burst of 100.
#[doc(alias = "DefaultTypedControllerRateLimiter")]
#[doc(alias = "DefaultControllerRateLimiter")]
pub fn default_controller_limiter<K: 'static>() -> MaxOf<K> {
    MaxOf::new([
        Box::new(ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000)))
            as Box<dyn RateLimiter<K>>,
        Box::new(TokenBucket::new(10.0, 100)),
    ])
}

/// Returns a limiter with exponential backoff per key: 1 ms after the first failure, doubled with each further failure, and at
/// most 1000 s. Unlike [`default_controller_limiter`], it has no limit for all keys together.
#[doc(alias = "DefaultTypedItemBasedRateLimiter")]
pub fn default_item_limiter() -> ItemExponential {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000))
}
