//! The FIFO as used by its producer and its consumer.

use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use kube_core::Resource;

use super::{
    DeltaBatch, DeltaKind, KnownObjects,
    core::{FifoCore, List, Watermark},
};
use crate::{
    Cached,
    reflector::{ReceivedObject, Replacement},
    sync::Mutex,
    wakers::Wakers,
};

/// A queue of changes by key, between a reflector and the cache.
///
/// # Guarantees
///
/// 1. **Order.** The changes of one key are popped in the order in which they were queued. The position of a
///    key is that of its first change since it was last popped; later changes are added to it.
/// 2. **No loss.** Every change is popped, except one of two consecutive deletions (the more informative one
///    is kept) and the deletion of an object that is neither queued nor known.
/// 3. **A list is complete.** [`replace`](Self::replace) queues a `Deleted` for each object that is queued,
///    in flight or known but not in the list, with an unknown final state and the last known object. An
///    object whose deletion is already queued is not deleted twice. Then each object of the list is queued as
///    `Replaced`.
/// 4. **One batch at a time.** Nothing is popped until the last [`DeltaBatch`] is finished, and keys in
///    flight count as known. A batch that is dropped unfinished is requeued at the front.
/// 5. **A true watermark.** A consumer that has applied a batch and all earlier ones has missed nothing up to
///    [`DeltaBatch::watermark`]. Some keys may be newer than that, none is older.
/// 6. **Synced means processed.** [`has_synced`](Self::has_synced) is true when everything of the initial
///    list, including deletions, has been processed.
/// 7. **Termination.** After [`close`](Self::close) queued changes are still popped, and then every `pop`
///    returns `None`.
///
/// The queue is bounded by its producer, which awaits [`wait_for_capacity`](Self::wait_for_capacity) while
/// too many changes are queued. Queueing itself never waits, so an initial list of any size is queued
/// completely.
///
/// Several updates of one key are popped together but *not* merged: a handler with
/// [`every_event`](crate::handler::HandlerOptions::every_event) has to receive each of them. Handlers that
/// lag merge events themselves.
///
/// A FIFO is a handle; clones share one queue.
///
/// # Example
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use watchkeeper_informer::delta_fifo::{DeltaFifo, DeltaKind, FifoOptions, NothingKnown};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = |version: &str| {
///     let mut map = ConfigMap::default();
///     (map.metadata.name, map.metadata.resource_version) = (Some("settings".into()), Some(version.into()));
///     map
/// };
/// let fifo = DeltaFifo::new(NothingKnown, FifoOptions::default());
/// fifo.replace(vec![settings("5")], Some("7"))?; // a list
/// fifo.update(settings("8"))?; // an event of the watch after it
///
/// let batch = fifo.pop().await.ok_or("the queue is closed")?;
/// let kinds: Vec<DeltaKind> = batch.keys()[0].iter().map(|delta| delta.kind).collect();
/// assert_eq!(kinds, [DeltaKind::Replaced, DeltaKind::Updated]);
/// assert_eq!(batch.watermark(), Some("8"));
/// batch.done(); // after the changes were applied
/// assert!(fifo.has_synced());
/// # Ok(())
/// # }
/// ```
///
/// # Comparison with client-go
///
/// The rules are those of `DeltaFIFO`: changes accumulate by key, so that the number of queued keys is
/// bounded by the number of objects, and the queue helps to find the objects that a list no longer contains.
/// Like `RealFIFO`, it has batches, processing without a lock, bookmarks in order, deletions before the other
/// objects of a list, and a sync that waits until the last object is processed. `RealFIFO` also keeps the
/// order between keys, so that the cache is always a state that the server had. Here this holds whenever the
/// queue is empty; in between, the watermark is older than some objects.
#[doc(alias = "NewDeltaFIFO")]
#[doc(alias = "RealFIFO")]
#[doc(alias = "NewRealFIFO")]
#[doc(alias = "NewDeltaFIFOWithOptions")]
pub struct DeltaFifo<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<Inner<K>>,
    known: Box<dyn KnownObjects<K>>,
    options: FifoOptions,
}

/// The state under the lock.
struct Inner<K> {
    core: FifoCore<K>,
    poppers: Wakers,
    producers: Wakers,
    sync_waiters: Wakers,
}

/// The options of a [`DeltaFifo`].
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(alias = "DeltaFIFOOptions")]
pub struct FifoOptions {
    /// The number of queued changes at which [`DeltaFifo::wait_for_capacity`] waits. Defaults to 2,000. The
    /// minimum is 1.
    pub max_queued_deltas: usize,
}

impl FifoOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self { max_queued_deltas: 2_000 }
    }

    /// Sets the number of queued changes at which [`DeltaFifo::wait_for_capacity`] waits. Defaults to 2,000.
    #[must_use]
    pub fn max_queued_deltas(mut self, deltas: usize) -> Self {
        self.max_queued_deltas = deltas;
        self
    }
}

impl Default for FifoOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// The error returned by a [`DeltaFifo`] that was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the queue of changes is closed because its informer is stopping: create a new informer to watch again"
)]
#[non_exhaustive]
#[doc(alias = "ErrFIFOClosed")]
pub struct FifoClosed;

impl<K: Resource + Send + Sync + 'static> DeltaFifo<K> {
    /// Creates an empty queue in front of the cache `known`.
    pub fn new(known: impl KnownObjects<K>, options: FifoOptions) -> Self {
        let inner = Inner {
            core: FifoCore::new(),
            poppers: Wakers::default(),
            producers: Wakers::default(),
            sync_waiters: Wakers::default(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(inner), known: Box::new(known), options }) }
    }

    /// Queues an object that was created. As with [`update`](Self::update) and [`delete`](Self::delete), the
    /// resourceVersion of the object advances the watermark, so call these with watch events in the order of
    /// the server.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    #[doc(alias = "dedupDeltas")]
    pub fn add(&self, object: impl Into<Cached<K>>) -> Result<(), FifoClosed> {
        self.put(|core, _| core.apply(DeltaKind::Added, object.into()))
    }

    /// Queues an object that was modified.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    pub fn update(&self, object: impl Into<Cached<K>>) -> Result<(), FifoClosed> {
        self.put(|core, _| core.apply(DeltaKind::Updated, object.into()))
    }

    /// Queues the deletion of an object. `object` is its final state.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    pub fn delete(&self, object: impl Into<Cached<K>>) -> Result<(), FifoClosed> {
        self.put(|core, known| core.delete(object.into(), known))
    }

    /// Queues the deletion of the object with this `key` (`namespace/name` or `name`) whose final state could
    /// not be decoded. The last known state is used instead.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    pub fn delete_unread(&self, key: &str, resource_version: Option<&str>) -> Result<(), FifoClosed> {
        self.put(|core, known| core.delete_unread(key, resource_version, known))
    }

    /// Queues a complete list of the collection, as of `resource_version`. `None` leaves the watermark unchanged.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    #[doc(alias = "Replace")]
    pub fn replace(
        &self,
        objects: Vec<impl Into<Cached<K>>>,
        resource_version: Option<&str>,
    ) -> Result<(), FifoClosed> {
        let objects = objects.into_iter().map(Into::into).collect();
        let list = List { objects, kept: &[], version: resource_version, is_new_epoch: false };
        self.put(|core, known| core.replace(list, known))
    }

    /// Queues a complete list of a reflector. Objects that the list could not decode are kept if they have
    /// the same uid, and the list may start a new epoch.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    pub fn replace_with(&self, list: Replacement<K>) -> Result<(), FifoClosed> {
        let Replacement { objects, kept, resource_version, is_new_epoch } = list;
        let objects = objects.into_iter().map(|ReceivedObject { object, .. }| object).collect();
        let version = Some(resource_version.as_str());
        let list = List { objects, kept: &kept, version, is_new_epoch };
        self.put(|core, known| core.replace(list, known))
    }

    /// Queues a `Sync` for each known object that is not queued.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    #[doc(alias = "Resync")]
    pub fn resync(&self) -> Result<(), FifoClosed> {
        self.put(FifoCore::resync)
    }

    /// Advances the watermark to `resource_version`, after all changes up to it have been queued.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    pub fn bookmark(&self, resource_version: &str) -> Result<(), FifoClosed> {
        self.put(|core, _| core.bookmark(resource_version))
    }

    /// Waits until fewer than [`FifoOptions::max_queued_deltas`] changes are queued. A producer that waits
    /// before it reads more lets a slow consumer throttle the server's stream instead of filling memory.
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed.
    pub async fn wait_for_capacity(&self) -> Result<(), FifoClosed> {
        let has_capacity = |core: &FifoCore<K>| core.queued_deltas() < self.max_queued_deltas();
        poll_fn(|context| {
            let inner = &mut *self.shared.state.lock();
            if inner.core.is_closed() {
                return Poll::Ready(Err(FifoClosed));
            }
            if has_capacity(&inner.core) {
                return Poll::Ready(Ok(()));
            }
            inner.producers.wait(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Waits for the next key and pops its changes. Returns `None` when the queue is closed and empty.
    ///
    /// The batch has no key if only the watermark advanced.
    #[doc(alias = "Pop")]
    pub async fn pop(&self) -> Option<DeltaBatch<K>> {
        self.pop_batch(1).await
    }

    /// Waits for changes and pops up to `max` keys with all of their changes. Returns `None` when the queue
    /// is closed and empty. A batch ends at the end of the initial list.
    ///
    /// The batch has no key if only the watermark advanced. The future is cancel safe.
    pub async fn pop_batch(&self, max: usize) -> Option<DeltaBatch<K>> {
        poll_fn(|context| {
            // A consumer whose queue is never empty must not starve other tasks.
            let budget = ready!(tokio::task::coop::poll_proceed(context));
            let popped = ready!(self.poll_pop(max, context));
            budget.made_progress();
            Poll::Ready(popped)
        })
        .await
    }

    /// Returns whether everything of the initial list has been popped and finished, or another change was
    /// queued before any list.
    #[doc(alias = "HasSynced")]
    #[doc(alias = "initialPopulationCount")]
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().core.has_synced()
    }

    /// Waits until [`has_synced`](Self::has_synced).
    ///
    /// # Errors
    /// Returns [`FifoClosed`] if the queue is closed before that.
    pub async fn synced(&self) -> Result<(), FifoClosed> {
        poll_fn(|context| {
            let inner = &mut *self.shared.state.lock();
            if inner.core.has_synced() {
                return Poll::Ready(Ok(()));
            }
            if inner.core.is_closed() {
                return Poll::Ready(Err(FifoClosed));
            }
            inner.sync_waiters.wait(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Closes the queue: nothing more can be queued, and queued changes are still popped.
    pub fn close(&self) {
        self.operate(|core, _| core.close());
    }

    /// Returns the number of queued keys.
    pub fn queued_keys(&self) -> usize {
        self.shared.state.lock().core.queued_keys()
    }

    /// Returns the number of queued changes of all keys.
    pub fn queued_deltas(&self) -> usize {
        self.shared.state.lock().core.queued_deltas()
    }

    pub(super) fn finish(&self, watermark: Watermark) {
        self.operate(|core, _| core.done(watermark));
    }

    pub(super) fn requeue(&self) {
        self.operate(|core, _| core.requeue());
    }

    fn poll_pop(&self, max: usize, context: &mut Context<'_>) -> Poll<Option<DeltaBatch<K>>> {
        let mut to_wake = Wakers::default();
        let popped = {
            let inner = &mut *self.shared.state.lock();
            let batch = inner.core.pop(max);
            if batch.is_none() && !inner.core.is_finished() {
                inner.poppers.wait(context.waker());
                return Poll::Pending;
            }
            inner.settle(self.max_queued_deltas(), &mut to_wake);
            batch
        };
        to_wake.wake();
        Poll::Ready(popped.map(|batch| DeltaBatch::new(self.clone(), batch)))
    }

    fn put(&self, step: impl FnOnce(&mut FifoCore<K>, &dyn KnownObjects<K>)) -> Result<(), FifoClosed> {
        self.operate(|core, known| {
            if core.is_closed() {
                return Err(FifoClosed);
            }
            step(core, known);
            Ok(())
        })
    }

    /// Runs one step of the state machine under the lock, then its wake-ups and drops without the lock.
    fn operate<R>(&self, step: impl FnOnce(&mut FifoCore<K>, &dyn KnownObjects<K>) -> R) -> R {
        let mut to_wake = Wakers::default();
        let (result, released) = {
            let inner = &mut *self.shared.state.lock();
            let result = step(&mut inner.core, &*self.shared.known);
            inner.settle(self.max_queued_deltas(), &mut to_wake);
            (result, inner.core.take_released())
        };
        to_wake.wake();
        drop(released);
        result
    }

    fn max_queued_deltas(&self) -> usize {
        self.shared.options.max_queued_deltas.max(1)
    }
}

impl<K: Resource + 'static> Inner<K> {
    /// Collects the tasks that can make progress after a step.
    fn settle(&mut self, max_queued_deltas: usize, to_wake: &mut Wakers) {
        let is_closed = self.core.is_closed();
        if self.core.can_pop() || self.core.is_finished() {
            self.poppers.take_into(to_wake);
        }
        if is_closed || self.core.queued_deltas() < max_queued_deltas {
            self.producers.take_into(to_wake);
        }
        if is_closed || self.core.has_synced() {
            self.sync_waiters.take_into(to_wake);
        }
    }
}

impl<K> Clone for DeltaFifo<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Resource + 'static> fmt::Debug for DeltaFifo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = &self.shared.state.lock().core;
        f.debug_struct("DeltaFifo")
            .field("queued_keys", &core.queued_keys())
            .field("queued_deltas", &core.queued_deltas())
            .field("has_synced", &core.has_synced())
            .field("is_closed", &core.is_closed())
            .finish_non_exhaustive()
    }
}
