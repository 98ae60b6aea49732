//! The consumer of a shared informer: updates the cache and publishes events.

use std::{fmt, iter::once_with, time::Duration};

use crate::{
    CacheReader, Index, IndexError, IndexValues, Object, Store, StoreError,
    controller::apply::{Process, TrackedStore},
    delta_fifo::DeltaBatch,
    freshness::ProgressSender,
    handler::{AsyncEventHandler, EventHandler},
    processor::{HandlerOptions, ListenerTask, Processor, Registration, Stopped},
    reflector::VersionOrder,
    sync::Mutex,
};

/// The consumer that updates the cache with each batch of changes, then publishes the resulting events to all handlers.
///
/// A batch is applied and published under one [`ProcessorGuard`](crate::processor::ProcessorGuard), and a
/// handler is added with a snapshot of the cache under one. Therefore no handler misses an event or receives
/// one twice. Index functions run before the guard is acquired, and handlers run in their own tasks.
pub struct Distributor<K> {
    cache: TrackedStore<K>,
    processor: Processor<K>,
    progress: ProgressSender,
    unsynced: Mutex<Vec<usize>>,
}

impl<K: Object> Distributor<K> {
    /// Creates an empty cache without handlers, fed by `parts` sources (one for each namespace, or one for
    /// all). `resync_period` is the default of handlers.
    pub fn new(parts: usize, resync_period: Duration) -> Self {
        Self::with_order(parts, resync_period, VersionOrder::Ordered)
    }

    pub(crate) fn with_order(parts: usize, resync_period: Duration, versions: VersionOrder) -> Self {
        let distributor = Self {
            cache: TrackedStore::new(Store::new(), parts, versions),
            processor: Processor::new(resync_period),
            progress: ProgressSender::new(parts == 0),
            unsynced: Mutex::new((0..parts).collect()),
        };
        if parts == 0 {
            distributor.processor.lock().mark_synced();
        }
        distributor
    }

    /// Returns a reader of the cache.
    pub fn reader(&self) -> CacheReader<K> {
        CacheReader::new(self.cache.store.clone())
    }

    /// Adds an index.
    ///
    /// # Errors
    /// Returns [`IndexError::Duplicate`] if the cache already has an index with that name.
    pub fn add_index<F, V>(
        &self,
        name: impl Into<std::sync::Arc<str>>,
        function: F,
    ) -> Result<Index<K>, IndexError>
    where
        F: Fn(&K) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        self.cache.store.add_index(name, function)
    }

    /// Adds a handler. It is first called with an `Added` for every cached object.
    ///
    /// # Errors
    /// Returns [`Stopped`] after a [`shutdown`](Self::shutdown).
    pub fn add_handler(
        &self,
        handler: impl EventHandler<K>,
        options: HandlerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let mut guard = self.processor.lock();
        let snapshot = self.cache.store.snapshot();
        // Listed in the task of the handler, to keep the critical section short.
        guard.add(
            handler,
            options,
            Some(once_with(move || snapshot.iter_cached().cloned().collect::<Vec<_>>()).flatten()),
        )
    }

    /// Adds an asynchronous handler. It is first called with an `Added` for every cached object.
    ///
    /// # Errors
    /// Returns [`Stopped`] after a [`shutdown`](Self::shutdown).
    pub fn add_async_handler(
        &self,
        handler: impl AsyncEventHandler<K>,
        options: HandlerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let mut guard = self.processor.lock();
        let snapshot = self.cache.store.snapshot();
        guard.add_async(
            handler,
            options,
            Some(once_with(move || snapshot.iter_cached().cloned().collect::<Vec<_>>()).flatten()),
        )
    }

    /// Waits for a handler that is not running. Returns `None` after a [`shutdown`](Self::shutdown).
    pub async fn accept(&self) -> Option<ListenerTask<K>> {
        self.processor.accept().await
    }

    /// Stops all handlers permanently.
    pub fn shutdown(&self) {
        self.processor.shutdown();
        self.progress.stopped();
    }

    /// Returns the number of handlers, including removed ones whose last call has not returned.
    pub fn handler_count(&self) -> usize {
        self.processor.listener_count()
    }

    /// Returns whether resourceVersions of different objects compare.
    pub(super) fn has_order(&self) -> bool {
        self.cache.versions == VersionOrder::Ordered
    }

    pub(super) fn store(&self) -> &Store<K> {
        &self.cache.store
    }

    pub(super) fn progress(&self) -> &ProgressSender {
        &self.progress
    }
}

impl<K: Object> Process<K> for Distributor<K> {
    fn process(&self, part: usize, batch: &DeltaBatch<K>) -> Result<(), StoreError> {
        let (mut ops, notifications) = self.cache.prepare(batch);
        let committed = loop {
            let mut guard = self.processor.lock();
            match self.cache.commit(part, batch, ops) {
                Ok(committed) => {
                    let committed = committed?;
                    guard.publish(notifications);
                    break committed;
                }
                Err(again) => ops = again,
            }
            drop(guard);
            self.cache.store.complete(&mut ops);
        };
        self.progress.advance(committed.applied.resource_version.clone(), committed.is_new_epoch);
        Ok(())
    }

    fn part_synced(&self, part: usize) {
        let is_last = {
            let mut unsynced = self.unsynced.lock();
            unsynced.retain(|other| *other != part);
            unsynced.is_empty()
        };
        if is_last {
            self.processor.lock().mark_synced();
            self.progress.synced();
        }
    }

    fn resync_check_period(&self) -> Duration {
        self.processor.fix_check_period()
    }

    fn is_resync_due(&self) -> bool {
        self.processor.mark_due()
    }
}

impl<K: Object> fmt::Debug for Distributor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distributor")
            .field("store", &self.cache.store)
            .field("handlers", &self.handler_count())
            .finish_non_exhaustive()
    }
}
