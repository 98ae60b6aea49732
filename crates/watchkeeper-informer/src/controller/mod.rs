//! The loop that keeps a cache up to date: reflector, queue, cache and handlers.
//!
//! | file | contents |
//! |---|---|
//! | `config.rs` | [`Config`]: sources, transform, resync period |
//! | `apply.rs` | the effects of deltas |
//! | `known.rs` | the cache as the queue and the reflector use it |
//! | `single.rs` | [`new_informer`]: the loop with one handler |

pub(crate) mod apply;
mod config;
mod known;
mod single;

use std::{fmt, future::pending, sync::Arc};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tracing::error;
use watchkeeper_client::list_watch::Selection;

use self::{
    apply::Process,
    known::{StoreLookup, StoredObjects},
};
pub use self::{
    config::Config,
    single::{new_indexer_informer, new_informer},
};
use crate::{
    Object, Store, StoreError,
    delta_fifo::DeltaFifo,
    memory::ObjectMemory,
    reflector::{Keep, Reflector},
    start::InformerStart,
    status::Monitor,
};

/// The loop that lists and watches the sources of a [`Config`], updates the cache and calls handlers.
///
/// - **Batches are processed one at a time**, with the changes of each key in order.
/// - **Backpressure.** While the queue is full, nothing is read from the server.
/// - **One future.** A controller spawns no task, and ends when the future is dropped.
///
/// A [`SharedIndexInformer`](crate::SharedIndexInformer) contains a controller. Use one directly for a cache
/// with a single handler; see [`new_informer`].
#[must_use = "a controller does nothing until it is run"]
#[doc(alias = "HandleDeltas")]
#[doc(alias = "processLoop")]
pub struct InformerController<K> {
    name: Arc<str>,
    parts: Vec<Part<K>>,
    process: Arc<dyn Process<K>>,
    batch_keys: usize,
    /// `None` if all objects are kept decoded.
    memory: Option<Arc<ObjectMemory>>,
}

/// A source with its reflector and queue.
struct Part<K> {
    namespace: Option<Arc<str>>,
    selection: Option<Selection>,
    reflector: Reflector<K>,
    fifo: DeltaFifo<K>,
}

/// The parts of a source that are shared with the informer.
pub(crate) struct PartView<K> {
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) selection: Option<Selection>,
    pub(crate) monitor: Monitor,
    pub(crate) fifo: DeltaFifo<K>,
}

impl<K> PartView<K> {
    /// Makes waits on the source fail until `start` is complete.
    pub(crate) fn starting_with(mut self, start: &InformerStart) -> Self {
        self.monitor = self.monitor.starting_with(start);
        self
    }
}

impl<K: Object> InformerController<K> {
    /// Creates a controller with the consumer `process`, which must be the only writer of `store`.
    pub(crate) fn new(mut config: Config<K>, store: &Store<K>, process: Arc<dyn Process<K>>) -> Self {
        let sources = std::mem::take(&mut config.sources);
        let memory = config.object_memory();
        let keep =
            memory.as_ref().map(|memory| Arc::new(config.packer(Arc::clone(memory))) as Arc<dyn Keep<K>>);
        let reflector_of = |source| {
            let reflector = config.reflector_of(source).reuse(StoreLookup(store.clone()));
            match &keep {
                Some(keep) => reflector.keep(Arc::clone(keep)),
                None => reflector,
            }
        };
        let parts = sources.into_iter().map(|source| {
            let known = StoredObjects { store: store.clone(), namespace: source.namespace.clone() };
            Part {
                namespace: source.namespace.clone(),
                selection: source.lister_watcher.selection(),
                reflector: reflector_of(source),
                fifo: DeltaFifo::new(known, config.fifo.clone()),
            }
        });
        let parts = parts.collect();
        Self { parts, name: config.name, process, batch_keys: config.batch_keys, memory }
    }

    /// Returns the monitor of each source's reflector, by namespace if there are several sources. A monitor
    /// can be used before, during and after the run.
    pub fn monitors(&self) -> Vec<(Option<Arc<str>>, Monitor)> {
        self.parts.iter().map(|part| (part.namespace.clone(), part.reflector.monitor())).collect()
    }

    pub(crate) fn memory(&self) -> Option<&Arc<ObjectMemory>> {
        self.memory.as_ref()
    }

    pub(crate) fn views(&self) -> Vec<PartView<K>> {
        let view = |part: &Part<K>| PartView {
            namespace: part.namespace.clone(),
            selection: part.selection.clone(),
            monitor: part.reflector.monitor(),
            fifo: part.fifo.clone(),
        };
        self.parts.iter().map(view).collect()
    }

    /// Lists and watches until `stop` completes, and then ends immediately. Queued changes are not processed.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the cache rejected a change.
    #[doc(alias = "RunWithContext")]
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), StoreError> {
        let Self { name, parts, process, batch_keys, memory: _ } = self;
        let resynced =
            Resynced(parts.iter().map(|part| (part.fifo.clone(), part.reflector.monitor())).collect());
        let _closing = CloseOnDrop(parts.iter().map(|part| part.fifo.clone()).collect());
        let is_empty = parts.is_empty();
        let mut running: FuturesUnordered<_> = parts
            .into_iter()
            .enumerate()
            .map(|(number, part)| part.run(number, Arc::clone(&process), batch_keys))
            .collect();
        let all = async {
            while let Some(ended) = running.next().await {
                ended?;
            }
            // A controller without sources runs until it is stopped.
            if is_empty { pending().await } else { Ok(()) }
        };
        tokio::select! {
            biased;
            () = stop => Ok(()),
            result = all => result.inspect_err(|error| error!(informer = &*name, %error, "informer stopped: cache rejected a change")),
            () = resynced.whenever(&*process) => Ok(()),
        }
    }
}

/// The queues to resync, with the monitors that count the resyncs.
struct Resynced<K>(Vec<(DeltaFifo<K>, Monitor)>);

impl<K: Object> Resynced<K> {
    /// Resyncs all queues whenever a resync is due.
    async fn whenever(&self, process: &dyn Process<K>) {
        let period = process.resync_check_period();
        if period.is_zero() {
            return pending().await;
        }
        for (fifo, _) in &self.0 {
            if fifo.synced().await.is_err() {
                return pending().await;
            }
        }
        loop {
            tokio::time::sleep(period).await;
            if process.is_resync_due() {
                // A closed queue has no consumer.
                let open = self.0.iter().take_while(|(fifo, _)| fifo.resync().is_ok());
                open.for_each(|(_, monitor)| monitor.resynced());
            }
        }
    }
}

impl<K: Object> Part<K> {
    async fn run(
        self,
        number: usize,
        process: Arc<dyn Process<K>>,
        batch_keys: usize,
    ) -> Result<(), StoreError> {
        let Self { reflector, fifo, .. } = self;
        let processing = async {
            let mut has_synced = false;
            while let Some(batch) = fifo.pop_batch(batch_keys).await {
                process.process(number, &batch)?;
                batch.done();
                if !has_synced && fifo.has_synced() {
                    has_synced = true;
                    process.part_synced(number);
                }
            }
            Ok(())
        };
        tokio::select! {
            biased;
            result = processing => result,
            () = reflector.run(fifo.clone(), pending()) => Ok(()),
        }
    }
}

/// Closes the queues on drop, so that waits on them end.
struct CloseOnDrop<K: Object>(Vec<DeltaFifo<K>>);

impl<K: Object> Drop for CloseOnDrop<K> {
    fn drop(&mut self) {
        self.0.iter().for_each(DeltaFifo::close);
    }
}

impl<K> fmt::Debug for InformerController<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces: Vec<_> = self.parts.iter().map(|part| &part.namespace).collect();
        f.debug_struct("InformerController")
            .field("name", &self.name)
            .field("namespaces", &namespaces)
            .finish_non_exhaustive()
    }
}
