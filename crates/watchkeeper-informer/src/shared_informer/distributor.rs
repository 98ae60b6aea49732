//! The cache and the handlers, changed together.

use std::{fmt, iter::once_with, time::Duration};

use crate::{
    CacheReader, Index, IndexError, IndexValues, Object, Store, StoreError,
    controller::{Cache, Process},
    delta_fifo::Popped,
    freshness::Progressing,
    handler::{AsyncEventHandler, EventHandler},
    processor::{ListenerOptions, ListenerTask, Processor, Registration, Stopped},
    reflector::VersionOrder,
    sync::Mutex,
};

/// What a shared informer does with what it pops: changes the cache, then tells every handler.
///
/// Each batch is applied and published in one turn, and a handler is added with what the cache holds in one
/// turn, so that no handler misses a change or hears of one twice. Index functions run before the turn is
/// taken, handlers in tasks of their own.
pub struct Distributor<K> {
    cache: Cache<K>,
    processor: Processor<K>,
    progress: Progressing,
    unsynced: Mutex<Vec<usize>>,
}

impl<K: Object> Distributor<K> {
    /// An empty cache without handlers, fed by this many parts (one for each namespace, or one for all there
    /// is), whose handlers are resynced this often unless they say otherwise.
    pub fn new(parts: usize, resync_period: Duration) -> Self {
        Self::with_order(parts, resync_period, VersionOrder::Ordered)
    }

    pub(crate) fn with_order(parts: usize, resync_period: Duration, versions: VersionOrder) -> Self {
        let distributor = Self {
            cache: Cache::new(Store::new(), parts, versions),
            processor: Processor::new(resync_period),
            progress: Progressing::new(parts == 0),
            unsynced: Mutex::new((0..parts).collect()),
        };
        if parts == 0 {
            distributor.processor.turn().mark_synced();
        }
        distributor
    }

    /// The cache.
    pub fn reader(&self) -> CacheReader<K> {
        CacheReader::new(self.cache.store.clone())
    }

    /// Adds an index.
    ///
    /// # Errors
    /// When there is one of that name.
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

    /// Adds a handler, which first hears of everything there is.
    ///
    /// # Errors
    /// After a [`shutdown`](Self::shutdown).
    pub fn add_handler(
        &self,
        handler: impl EventHandler<K>,
        options: ListenerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let mut turn = self.processor.turn();
        let snapshot = self.cache.store.snapshot();
        // Listed in the handler's own task: in the turn there is time for a pointer only.
        turn.add(handler, options, Some(once_with(move || snapshot.list()).flatten()))
    }

    /// Adds a handler that may wait, which first hears of everything there is.
    ///
    /// # Errors
    /// After a [`shutdown`](Self::shutdown).
    pub fn add_async_handler(
        &self,
        handler: impl AsyncEventHandler<K>,
        options: ListenerOptions,
    ) -> Result<Registration<K>, Stopped> {
        let mut turn = self.processor.turn();
        let snapshot = self.cache.store.snapshot();
        turn.add_async(handler, options, Some(once_with(move || snapshot.list()).flatten()))
    }

    /// Waits for a handler that nobody runs yet. `None` after a [`shutdown`](Self::shutdown).
    pub async fn accept(&self) -> Option<ListenerTask<K>> {
        self.processor.accept().await
    }

    /// Stops all handlers, for ever.
    pub fn shutdown(&self) {
        self.processor.shutdown();
        self.progress.stopped();
    }

    /// Handlers there are, those included whose last call has not returned.
    pub fn handler_count(&self) -> usize {
        self.processor.listener_count()
    }

    /// Whether versions of different objects compare.
    pub(super) fn has_order(&self) -> bool {
        self.cache.versions == VersionOrder::Ordered
    }

    pub(super) fn store(&self) -> &Store<K> {
        &self.cache.store
    }

    pub(super) fn progress(&self) -> &Progressing {
        &self.progress
    }
}

impl<K: Object> Process<K> for Distributor<K> {
    fn process(&self, part: usize, popped: &Popped<K>) -> Result<(), StoreError> {
        let (mut ops, notices) = self.cache.prepare(popped);
        let committed = loop {
            let mut turn = self.processor.turn();
            match self.cache.commit(part, popped, ops) {
                Ok(committed) => {
                    let committed = committed?;
                    turn.publish(notices);
                    break committed;
                }
                Err(again) => ops = again,
            }
            drop(turn);
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
            self.processor.turn().mark_synced();
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
