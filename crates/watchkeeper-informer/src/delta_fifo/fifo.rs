//! The FIFO as producer and consumer hold it.

use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use kube_core::Resource;

use super::{
    DeltaKind, KnownObjects, Popped,
    core::{Core, List, Mark},
};
use crate::{
    reflector::{Object, Replacement},
    sync::Mutex,
    wakers::Wakers,
};

/// The changes a reflector has read and the cache has not yet taken in, key by key.
///
/// What it promises:
///
/// 1. **Order.** The changes of one key come out in the order they went in. A key's turn comes by its first
///    change since it was popped last; later ones join it there.
/// 2. **Nothing is lost.** Every change is popped, but for a deletion right after a deletion (the more
///    informative of the two is kept) and the deletion of an object that is neither in line nor known.
/// 3. **A list leaves nothing behind.** [`replace`](Self::replace) puts a `Deleted` in line for each object
///    that is in line, being processed or known, and not in the list: with its final state unknown, and the
///    last state in line, or else the cache's. An object whose deletion is in line already is not deleted
///    twice. Then each object of the list is `Replaced`.
/// 4. **One batch at a time.** Nothing is popped while the last [`Popped`] has not been finished, and what is
///    being processed counts as known. A batch that is dropped unfinished goes back to the front.
/// 5. **The watermark tells the truth.** [`Popped::watermark`] is a resourceVersion up to which a consumer
///    that applied this and everything before it has missed nothing. Some keys may be ahead of it, none is
///    behind.
/// 6. **Synced means processed.** [`has_synced`](Self::has_synced) turns true when everything the first list
///    brought, deletions included, has been finished.
/// 7. **It ends.** After [`close`](Self::close) what is in line is still popped, and then every `pop` returns
///    `None`.
///
/// It is bounded by its producer's good will: [`room`](Self::room) waits while too much is in line. Putting
/// something in never waits by itself, so a first list of any size goes in whole.
///
/// Several updates of one key are *not* merged into one, although they are popped together: a handler that
/// asked for [every event](crate::processor::ListenerOptions::every_event) would miss some, and the queue
/// cannot know whether there is one. Merging is left to the listeners that fall behind.
///
/// A handle: clones share one queue.
///
/// # Beside client-go
///
/// The rules are those of `DeltaFIFO`: changes accumulate by key, so the number of keys in line is bounded by
/// the objects there are, and what a list no longer has is found with the queue's help. Of `RealFIFO` it has
/// batches, processing without a lock, bookmarks in order, deletions before the rest of a list, and a sync
/// that waits until the last object is processed. `RealFIFO` keeps the order between objects too, so that the
/// cache is always a state the server once had; here that holds whenever the line is empty, and in between
/// the watermark is behind what some keys show.
pub struct DeltaFifo<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<Inner<K>>,
    known: Box<dyn KnownObjects<K>>,
    options: FifoOptions,
}

/// Everything under the one lock.
struct Inner<K> {
    core: Core<K>,
    poppers: Wakers,
    producers: Wakers,
    sync_waiters: Wakers,
}

/// How a [`DeltaFifo`] behaves.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FifoOptions {
    /// [`DeltaFifo::room`] waits while at least this many changes are in line. 2,000 unless said otherwise,
    /// never less than one.
    pub max_queued_deltas: usize,
}

impl FifoOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self { max_queued_deltas: 2_000 }
    }

    /// Sets how many changes may be in line before [`DeltaFifo::room`] waits.
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

/// The queue no longer takes anything in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the queue of changes is closed, because its informer is stopping: make a new informer to watch again"
)]
#[non_exhaustive]
pub struct FifoClosed;

impl<K: Resource + Send + Sync + 'static> DeltaFifo<K> {
    /// An empty queue in front of the cache that `known` is.
    pub fn new(known: impl KnownObjects<K>, options: FifoOptions) -> Self {
        let inner = Inner {
            core: Core::new(),
            poppers: Wakers::default(),
            producers: Wakers::default(),
            sync_waiters: Wakers::default(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(inner), known: Box::new(known), options }) }
    }

    /// The server said that an object was created. As with [`update`](Self::update) and
    /// [`delete`](Self::delete), the object's resourceVersion moves the watermark, so these are for events of
    /// a watch, in the server's order.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn add(&self, object: Arc<K>) -> Result<(), FifoClosed> {
        self.put(|core, _| core.apply(DeltaKind::Added, object))
    }

    /// The server said that an object changed.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn update(&self, object: Arc<K>) -> Result<(), FifoClosed> {
        self.put(|core, _| core.apply(DeltaKind::Updated, object))
    }

    /// The server said that an object was deleted, and this is its final state.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn delete(&self, object: Arc<K>) -> Result<(), FifoClosed> {
        self.put(|core, known| core.delete(object, known))
    }

    /// The server said that the object under `key` (`namespace/name` or `name`) was deleted, and its final
    /// state cannot be read: the last state known takes its place.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn delete_unread(&self, key: &str, resource_version: Option<&str>) -> Result<(), FifoClosed> {
        self.put(|core, known| core.delete_unread(key, resource_version, known))
    }

    /// These are all the objects there are, at this resourceVersion.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn replace(&self, objects: Vec<Arc<K>>, resource_version: Option<&str>) -> Result<(), FifoClosed> {
        let list = List { objects, kept: &[], version: resource_version, is_new_epoch: false };
        self.put(|core, known| core.replace(list, known))
    }

    /// As [`replace`](Self::replace), of a list as a reflector tells it: what it could not read stays as it
    /// is, if it is still the same incarnation, and the list may begin a new epoch.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn replace_with(&self, list: Replacement<K>) -> Result<(), FifoClosed> {
        let Replacement { objects, kept, resource_version, is_new_epoch } = list;
        let objects = objects.into_iter().map(|Object { object, .. }| object).collect();
        let version = Some(resource_version.as_str());
        let list = List { objects, kept: &kept, version, is_new_epoch };
        self.put(|core, known| core.replace(list, known))
    }

    /// Puts a `Sync` in line for each known object that has nothing in line.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn resync(&self) -> Result<(), FifoClosed> {
        self.put(Core::resync)
    }

    /// Nothing happened up to this resourceVersion that was not put in line before.
    ///
    /// # Errors
    /// When the queue is closed.
    pub fn bookmark(&self, resource_version: &str) -> Result<(), FifoClosed> {
        self.put(|core, _| core.bookmark(resource_version))
    }

    /// Waits until there is room for more. A producer that waits before it reads on lets a slow consumer slow
    /// down the server's stream instead of filling memory.
    ///
    /// # Errors
    /// When the queue is closed.
    pub async fn room(&self) -> Result<(), FifoClosed> {
        let has_room = |core: &Core<K>| core.queued_deltas() < self.max_queued_deltas();
        poll_fn(|context| {
            let inner = &mut *self.shared.state.lock();
            if inner.core.is_closed() {
                return Poll::Ready(Err(FifoClosed));
            }
            if has_room(&inner.core) {
                return Poll::Ready(Ok(()));
            }
            inner.producers.wait(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Waits for the next key and takes its changes. `None` once the queue is closed and nothing is left.
    ///
    /// Comes back without any key when only the watermark moved.
    pub async fn pop(&self) -> Option<Popped<K>> {
        self.pop_batch(1).await
    }

    /// Waits, and takes up to `max` keys with their changes; each key once. `None` once the queue is closed
    /// and nothing is left. A batch ends with the first list, so that what follows it is not taken for a part
    /// of it.
    ///
    /// Comes back without any key when only the watermark moved. The future may be dropped at any time
    /// without loss.
    pub async fn pop_batch(&self, max: usize) -> Option<Popped<K>> {
        poll_fn(|context| {
            // A consumer whose queue is never empty must still let others run.
            let budget = ready!(tokio::task::coop::poll_proceed(context));
            let popped = ready!(self.poll_pop(max, context));
            budget.made_progress();
            Poll::Ready(popped)
        })
        .await
    }

    /// True when everything the first list brought has been popped and finished; also when changes came in
    /// before any list.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().core.has_synced()
    }

    /// Waits until [`has_synced`](Self::has_synced).
    ///
    /// # Errors
    /// When the queue was closed before that, and nobody is left to finish what is in line.
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

    /// Takes nothing in any more. What is in line is still popped.
    pub fn close(&self) {
        self.operate(|core, _| core.close());
    }

    /// Keys in line.
    pub fn queued_keys(&self) -> usize {
        self.shared.state.lock().core.queued_keys()
    }

    /// Changes in line, of all keys.
    pub fn queued_deltas(&self) -> usize {
        self.shared.state.lock().core.queued_deltas()
    }

    pub(super) fn finish(&self, watermark: Mark) {
        self.operate(|core, _| core.done(watermark));
    }

    pub(super) fn put_back(&self) {
        self.operate(|core, _| core.put_back());
    }

    fn poll_pop(&self, max: usize, context: &mut Context<'_>) -> Poll<Option<Popped<K>>> {
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
        Poll::Ready(popped.map(|batch| Popped::new(self.clone(), batch)))
    }

    fn put(&self, step: impl FnOnce(&mut Core<K>, &dyn KnownObjects<K>)) -> Result<(), FifoClosed> {
        self.operate(|core, known| {
            if core.is_closed() {
                return Err(FifoClosed);
            }
            step(core, known);
            Ok(())
        })
    }

    /// Runs one step of the state machine under the lock, then does what must be done without it.
    fn operate<R>(&self, step: impl FnOnce(&mut Core<K>, &dyn KnownObjects<K>) -> R) -> R {
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
    /// After every step: wakes whoever has to act on what changed.
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
