//! How keys get in.

use std::time::Duration;

use super::{BackoffSource, Inner, Key, WorkQueue, nanos};
use crate::{
    AddOptions, Admission, Cause, Priority,
    core::{Add, Backoff, Offered, Pending, Wish},
    inbox::Entry,
    options::When,
    sync::MutexGuard,
};

impl<K: Key> WorkQueue<K> {
    /// Adds a key, to be handed out as soon as a worker is free.
    ///
    /// A key that is in line already stays where it is; a scheduled copy is taken along; a key that is being
    /// processed is handed out again, once, when that ends; a key that backs off after a failure goes on
    /// backing off ([`AddOptions::immediately`] overrides that).
    #[inline]
    pub fn add(&self, key: K) -> Admission {
        self.insert_plain(Some(key))
    }

    /// As [`add`](Self::add), for a key the caller keeps: it is cloned only if it is new to the queue.
    #[inline]
    pub fn add_ref(&self, key: &K) -> Admission {
        self.insert_plain(key)
    }

    /// Adds a key with a priority, a cause or a delay.
    pub fn add_with(&self, key: K, options: AddOptions) -> Admission {
        let AddOptions { priority, cause, when } = options;
        let (wish, now) = match when {
            When::Now => (Wish::Pending(Pending::Now), None),
            When::After(delay) if delay.is_zero() => (Wish::Pending(Pending::Now), None),
            When::Immediately => (Wish::Pending(Pending::Immediate), None),
            When::After(delay) => {
                let now = self.now();
                (Wish::Pending(Pending::Scheduled(now.saturating_add(nanos(delay)))), Some(now))
            }
            When::RateLimited => return self.insert_failed(key, priority, cause),
        };
        let admission = self.insert(Some(key), Add { wish, priority, cause }, now);
        if matches!(wish, Wish::Pending(Pending::Scheduled(_))) {
            self.count_retry(Some(admission));
        }
        admission
    }

    /// Adds a key that is to be handed out after `delay`, never earlier.
    ///
    /// Of several delays of one key the earliest counts. A delay of zero is an [`add`](Self::add).
    pub fn add_after(&self, key: K, delay: Duration) -> Admission {
        self.add_with(key, AddOptions::new().after(delay))
    }

    /// Adds a key whose work failed: it is handed out after the delay the rate limiter gives.
    ///
    /// A worker that holds the [`Item`](crate::Item) says [`Item::retry`](crate::Item::retry) instead, which also keeps
    /// priority and causes.
    pub fn add_rate_limited(&self, key: K) -> Admission {
        self.insert_failed(key, Priority::NORMAL, None)
    }

    fn insert_failed(&self, key: K, priority: Priority, cause: Option<Cause>) -> Admission {
        let (backoff, now) = self.backoff(|| self.num_requeues(&key));
        let admission = self.insert(Some(key), Add { wish: Wish::Retry(backoff), priority, cause }, now);
        self.count_retry(Some(admission));
        admission
    }

    /// How long a key that failed just now has to wait, and what time it is if that had to be asked.
    pub(super) fn backoff(&self, failures: impl FnOnce() -> u32) -> (Backoff, Option<u64>) {
        match &self.shared.backoff {
            BackoffSource::Schedule { is_zero: true, .. } => (Backoff::Since(0), None),
            BackoffSource::Schedule { is_zero: false, .. } => {
                let now = self.now();
                (Backoff::Since(now), Some(now))
            }
            BackoffSource::Limiter(limiter) => {
                let failures = failures();
                let now = self.now();
                let delay = limiter.lock().delay(failures, Duration::from_nanos(now));
                (Backoff::Until(now.saturating_add(nanos(delay))), Some(now))
            }
        }
    }

    fn insert(&self, mut offered: impl Offered<K>, add: Add, now: Option<u64>) -> Admission {
        let Some(hash) = offered.key().map(|key| self.hash(key)) else {
            return Admission::Refused;
        };
        if !add.can_be_posted() {
            return self.operate(now, |core, now| core.add(hash, &mut offered, add, now));
        }
        if self.shared.inbox.may_be_passed()
            && let Some(inner) = self.shared.state.0.try_lock()
        {
            return self.add_locked(inner, hash, &mut offered, add, now);
        }
        self.insert_busy(hash, offered, add, now)
    }

    fn add_locked<'q>(
        &'q self,
        inner: MutexGuard<'q, Inner<K>>,
        hash: u32,
        offered: &mut impl Offered<K>,
        add: Add,
        now: Option<u64>,
    ) -> Admission {
        self.operate_locked(inner, now, |core, now| {
            let admission = core.add(hash, offered, add, now);
            if core.has_long_line() {
                self.shared.inbox.open();
            }
            admission
        })
    }

    /// [`insert`](Self::insert) of a plain add: to the queue if that is free, else to its inbox.
    #[inline]
    fn insert_plain(&self, mut offered: impl Offered<K>) -> Admission {
        let Some(hash) = offered.key().map(|key| self.hash(key)) else {
            return Admission::Refused;
        };
        if self.shared.inbox.may_be_passed()
            && let Some(mut inner) = self.shared.state.0.try_lock()
        {
            if !inner.is_quiet() {
                return self.add_locked(inner, hash, &mut offered, Add::PLAIN, None);
            }
            let admission = inner.core.add_plain(hash, &mut offered);
            if inner.core.has_long_line() {
                self.shared.inbox.open();
            }
            return admission;
        }
        self.insert_plain_busy(hash, offered)
    }

    /// [`insert_busy`](Self::insert_busy) of a plain add, of which most steps need not be taken.
    #[inline(never)]
    fn insert_plain_busy(&self, hash: u32, offered: impl Offered<K>) -> Admission {
        self.insert_busy(hash, offered, Add::PLAIN, None)
    }

    /// [`insert`](Self::insert) of an add that can be posted to a queue that is busy, or whose line is long.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what is known of a plain add is known here then")]
    fn insert_busy(&self, hash: u32, mut offered: impl Offered<K>, add: Add, now: Option<u64>) -> Admission {
        // Metrics are told how long a key was in line, from its add on: those queues wait for the lock.
        let entry =
            if self.shared.metrics.is_none() { self.shared.inbox.enter(add.wish) } else { Entry::Queue };
        match entry {
            Entry::Room(room) => {
                let are_enough = room.post(offered.take(), hash, add.wish, add.cause);
                if self.shared.inbox.has_waiters() {
                    self.operate(None, |_, _| ());
                } else if are_enough
                    && !self.shared.inbox.is_worker_at_the_door()
                    && let Some(inner) = self.shared.state.0.try_lock()
                    && !inner.core.is_behind()
                {
                    self.operate_locked(inner, None, |_, _| ());
                }
                Admission::Posted
            }
            Entry::Queue => self.add_locked(self.shared.state.0.lock(), hash, &mut offered, add, now),
            Entry::Closed => Admission::Refused,
        }
    }
}
