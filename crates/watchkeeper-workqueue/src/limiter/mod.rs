//! How long a failed key waits before it is tried again.
//!
//! A limiter is a function of how often the key has failed and of the time; the failures are counted by the
//! queue, beside the key, and vanish when the key leaves the queue or succeeds. So a limiter that depends on the
//! key alone has no state at all, and no limiter can grow with the number of keys it has ever seen.
//!
//! | limiter | delay |
//! |---|---|
//! | [`ItemExponential`] | doubles with each failure of the key, up to a maximum |
//! | [`ItemFastSlow`] | short for the first few failures of the key, long after |
//! | [`TokenBucket`] | as long as it takes to keep all keys together under a rate |
//! | [`MaxOf`] | the longest that several limiters ask for |
//! | [`WithMaxWait`] | another limiter's, capped |
//! | [`Jittered`] | another limiter's, stretched by a random share |

mod bucket;
mod combine;
mod item;

use std::time::Duration;

pub use self::{
    bucket::TokenBucket,
    combine::{Jittered, MaxOf, WithMaxWait},
    item::{ItemExponential, ItemFastSlow},
};

/// Says how long a key must wait.
///
/// Called without the queue's lock held, but one call at a time: keep it short.
pub trait RateLimiter: Send + 'static {
    /// The delay for a key that has failed `failures` times before this failure, at time `now` of the queue's clock.
    fn delay(&mut self, failures: u32, now: Duration) -> Duration;

    /// The delays after 0, 1, 2, … failures, of which the last holds for all that follow, from a limiter that looks
    /// at nothing but the failures of the key. `None` from any other.
    ///
    /// Asked once, when the queue is made. A queue that has a schedule never calls [`delay`](Self::delay), and
    /// spares every failed key two trips to its locks.
    fn schedule(&self) -> Option<Vec<Duration>> {
        None
    }
}

/// Longer schedules than this are not worth the memory.
const LONGEST_SCHEDULE: u32 = 64;

impl RateLimiter for Box<dyn RateLimiter> {
    fn delay(&mut self, failures: u32, now: Duration) -> Duration {
        self.as_mut().delay(failures, now)
    }

    fn schedule(&self) -> Option<Vec<Duration>> {
        self.as_ref().schedule()
    }
}

/// What a queue uses unless told otherwise, and what client-go's controllers use: each key from 5 ms doubling to
/// 1000 s, and all keys together at most 10 a second after a burst of 100.
pub fn default_controller_limiter() -> MaxOf {
    MaxOf::new([
        Box::new(ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000)))
            as Box<dyn RateLimiter>,
        Box::new(TokenBucket::new(10.0, 100)),
    ])
}

/// Each key on its own, from 1 ms doubling to 1000 s; nothing shared between keys.
pub fn default_item_limiter() -> ItemExponential {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000))
}
