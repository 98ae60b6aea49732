//! Adding keys.

use std::time::Duration;

use super::{Key, WorkQueue};
use crate::{
    AddOptions, Admission,
    core::{Add, Pending},
    options::When,
};

impl<K: Key> WorkQueue<K> {
    /// Adds a key, to be dequeued as soon as a worker is free.
    ///
    /// A queued key keeps its place, unless this add raises its priority. A delayed key is queued now, and its delay ends. A key that
    /// is being processed is queued once more when that run ends. A key that backs off after a failure continues to back off;
    /// [`AddOptions::immediately`] overrides this.
    #[doc(alias = "Add")]
    pub fn add(&self, key: K) -> Admission {
        self.add_with(key, AddOptions::new())
    }

    /// Adds a key that is dequeued after `delay`, never earlier.
    ///
    /// Of several delays of one key the earliest counts. A delay of zero is the same as [`add`](Self::add).
    ///
    /// ```
    /// use std::time::Duration;
    /// use watchkeeper_workqueue::{Admission, WorkQueue};
    ///
    /// let queue = WorkQueue::new("pods");
    /// assert_eq!(queue.add_after("default/web", Duration::from_secs(30)), Admission::Scheduled);
    /// assert_eq!(queue.add("default/web"), Admission::Queued); // ends the delay
    /// ```
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, key: K, delay: Duration) -> Admission {
        self.add_with(key, AddOptions::new().after(delay))
    }

    /// Adds a key that failed. It is dequeued after the delay of the rate limiter, and its failure count increases.
    ///
    /// A worker that has the [`Item`](crate::Item) calls [`Item::retry`](crate::Item::retry) instead, which also keeps the
    /// priority and the causes.
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, key: K) -> Admission {
        self.add_with(key, AddOptions::new().rate_limited())
    }

    /// Adds a key with a priority, a cause or a delay: see [`AddOptions`].
    #[doc(alias = "AddWithOpts")]
    pub fn add_with(&self, key: K, options: AddOptions) -> Admission {
        let AddOptions { priority, cause, when } = options;
        let hash = self.hash(&key);
        let pending = match when {
            When::Now | When::After(Duration::ZERO) => Pending::Now,
            When::Immediately => Pending::Immediate,
            When::After(delay) => Pending::Scheduled(self.nanos_after(delay)),
            When::RateLimited => Pending::Backoff(self.backoff(&key).1),
        };
        let add = Add { pending, priority, cause };
        let mut inner = self.lock();
        let slot = inner.core.find(hash, &key);
        // The most frequent add needs neither the time nor a wake-up.
        if let Some(slot) = slot.filter(|&slot| inner.core.merges_at_once(slot, pending)) {
            return inner.core.merge(slot, add, 0);
        }
        let now_nanos = self.shared.now_nanos();
        inner.core.promote(now_nanos);
        let (admission, unused) = inner.core.add(slot, (hash, key), add, now_nanos);
        self.shared.unlock(inner);
        drop(unused);
        admission
    }
}
