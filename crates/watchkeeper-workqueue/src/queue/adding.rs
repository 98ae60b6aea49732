//! Adding keys.

use std::{borrow::Cow, time::Duration};

use super::{Key, WorkQueue, nanos};
use crate::{
    AddOptions, Admission,
    core::{Add, Pending},
    options::When,
};

impl<K: Key> WorkQueue<K> {
    /// Adds a key, to be dequeued as soon as a worker is free.
    ///
    /// A queued key keeps its place, unless this add raises its priority. A delayed key is queued now, and its delay ends. A key that
    /// is being processed is queued once more when that run ends. A key that backs off after a failure continues to back off; [`AddOptions::immediately`]
    /// overrides this.
    #[doc(alias = "Add")]
    pub fn add(&self, key: K) -> Admission {
        self.insert(Cow::Owned(key), &AddOptions::new())
    }

    /// Adds a key as [`add`](Self::add) does, and clones it only if it is not in the queue.
    pub fn add_ref(&self, key: &K) -> Admission {
        self.insert(Cow::Borrowed(key), &AddOptions::new())
    }

    /// Adds a key with a priority, a cause or a delay.
    #[doc(alias = "AddWithOpts")]
    #[expect(clippy::needless_pass_by_value, reason = "options are mostly built in the call")]
    pub fn add_with(&self, key: K, options: AddOptions) -> Admission {
        self.insert(Cow::Owned(key), &options)
    }

    /// Adds a key as [`add_with`](Self::add_with) does, and clones the key and the cause only if they are not in the queue.
    ///
    /// An event handler that adds many keys for the same reason creates the options once.
    pub fn add_ref_with(&self, key: &K, options: &AddOptions) -> Admission {
        self.insert(Cow::Borrowed(key), options)
    }

    /// Adds a key that is dequeued after `delay`, never earlier.
    ///
    /// Of several delays of one key the earliest counts. A delay of zero is the same as [`add`](Self::add).
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, key: K, delay: Duration) -> Admission {
        self.insert(Cow::Owned(key), &AddOptions::new().after(delay))
    }

    /// Adds a key that failed. It is dequeued after the delay of the rate limiter, and its failure count increases.
    ///
    /// A worker that has the [`Item`](crate::Item) calls [`Item::retry`](crate::Item::retry) instead, which also keeps the
    /// priority and the causes.
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, key: K) -> Admission {
        self.insert(Cow::Owned(key), &AddOptions::new().rate_limited())
    }

    fn insert(&self, key: Cow<'_, K>, options: &AddOptions) -> Admission {
        let AddOptions { priority, cause, when } = options;
        let hash = self.hash(&key);
        let mut add = Add { pending: Pending::Now, priority: *priority, cause: cause.as_ref() };
        let is_delayed = !matches!(when, When::Now | When::Immediately | When::After(Duration::ZERO));
        let backoff = (*when == When::RateLimited).then(|| {
            let failures = self.lock().core.failures(hash, &key);
            self.backoff(&key, failures)
        });
        let mut inner = self.lock();
        // The most frequent add needs neither the time nor a waker.
        let slot = inner.core.find(hash, &key);
        if !is_delayed && slot.is_some_and(|slot| inner.core.merge_queued(slot, add)) {
            return Admission::Merged;
        }
        let now_nanos = self.now_nanos();
        add.pending = match (when, backoff) {
            (_, Some((_, until_nanos))) => Pending::Backoff(until_nanos),
            (When::Immediately, _) => Pending::Immediate,
            (When::After(delay), _) if is_delayed => {
                Pending::Scheduled(now_nanos.saturating_add(nanos(*delay)))
            }
            _ => Pending::Now,
        };
        inner.core.promote(now_nanos);
        let (admission, unused) = inner.core.add(slot, (hash, key), add, now_nanos);
        self.shared.unlock(inner);
        drop(unused);
        admission
    }
}
