//! Taking keys and finishing them.

use super::{Inner, Key, WorkQueue};
use crate::{
    Admission, Item,
    core::{Core, Dequeued, Finished, Outcome},
};

impl<K: Key> WorkQueue<K> {
    /// Waits for a key and dequeues it. Returns `None` after the queue was shut down and its last key was dequeued.
    ///
    /// The future can be dropped at any time without losing a key. A future that has been woken must be polled or dropped:
    /// otherwise the key for which it was woken stays queued.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// use watchkeeper_workqueue::WorkQueue;
    ///
    /// let queue = WorkQueue::new("pods");
    /// queue.add("default/web");
    /// queue.shutdown();
    /// while let Some(item) = queue.get().await {
    ///     item.forget();
    /// }
    /// # });
    /// ```
    #[doc(alias = "Get")]
    #[doc(alias = "GetWithPriority")]
    #[doc(alias = "processNextWorkItem")]
    pub async fn get(&self) -> Option<Item<'_, K>> {
        // A worker whose queue is never empty has to yield to other tasks.
        tokio::task::coop::consume_budget().await;
        let mut timekeeper = Timekeeper { queue: self, until_nanos: None };
        loop {
            // Before the queue is read, so that no later change is missed.
            let change = self.shared.changes.notified();
            let now_nanos = self.shared.now_nanos();
            let (dequeued, is_finished) = {
                let mut inner = self.lock();
                timekeeper.stop(&mut inner);
                inner.core.promote(now_nanos);
                let dequeued = inner.core.pop(now_nanos);
                if dequeued.is_none() {
                    timekeeper.start(&mut inner);
                }
                let is_finished = inner.core.is_finished();
                self.shared.unlock(inner);
                (dequeued, is_finished)
            };
            if dequeued.is_some() || is_finished {
                return dequeued.map(|dequeued| Item::new(self, dequeued));
            }
            self.wait(change, timekeeper.until_nanos).await;
        }
    }

    /// Dequeues a key if one is queued.
    pub fn try_get(&self) -> Option<Item<'_, K>> {
        Some(Item::new(self, self.shared.operate(Core::pop)?))
    }

    /// Finishes a run. Returns the state of the key, or `None` if the key left the queue.
    pub(crate) fn finish(&self, dequeued: Dequeued<K>, outcome: Outcome) -> Option<Admission> {
        let Dequeued { key, token, causes, .. } = dequeued;
        let Finished { admission, removed, has_forgotten } =
            self.shared.operate(|core, now_nanos| core.finish(token, outcome, causes, now_nanos));
        drop(removed);
        if has_forgotten {
            self.shared.limiter.forget(&key);
        }
        admission
    }
}

/// The part of a waiting `get` that makes it wake up for delayed keys.
///
/// Delayed keys need no background task: one of the waiting futures, the timekeeper, sleeps until the earliest delay ends.
/// Without a waiting future no timer is needed.
struct Timekeeper<'q, K: Key> {
    queue: &'q WorkQueue<K>,
    /// The end of the sleep, if this future is or was the timekeeper.
    until_nanos: Option<u64>,
}

impl<K: Key> Timekeeper<'_, K> {
    /// Becomes the timekeeper, unless another one wakes up in time.
    fn start(&mut self, inner: &mut Inner<K>) {
        if inner.needs_timekeeper() {
            inner.timer_at_nanos = inner.core.next_at_nanos();
            self.until_nanos = inner.timer_at_nanos;
        }
    }

    fn stop(&mut self, inner: &mut Inner<K>) {
        // Another future may have started an earlier timer since.
        if self.until_nanos.is_some() && self.until_nanos == inner.timer_at_nanos {
            inner.timer_at_nanos = None;
        }
        self.until_nanos = None;
    }
}

impl<K: Key> Drop for Timekeeper<'_, K> {
    /// Lets another future replace this one.
    fn drop(&mut self) {
        if self.until_nanos.is_some() {
            let mut inner = self.queue.lock();
            self.stop(&mut inner);
            self.queue.shared.unlock(inner);
        }
    }
}
