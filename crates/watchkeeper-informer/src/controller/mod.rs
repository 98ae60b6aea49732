//! The loop that keeps a cache: reflector, queue, cache, and whoever is told.
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | [`Config`]: where objects come from |
//! | `apply.rs` | [`handle_deltas`]: what deltas come to |
//! | `known.rs` | the cache, as the queue and the reflector have to know it |
//! | `single.rs` | [`new_informer`]: the loop with one handler |

mod apply;
mod config;
mod known;
mod single;

use std::{fmt, future::pending, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tracing::error;
use watchkeeper_client::list_watch::Selection;

pub(crate) use self::apply::Cache;
use self::known::{Held, StoredObjects};
pub use self::{
    apply::{Handled, handle_deltas},
    config::Config,
    single::{new_indexer_informer, new_informer},
};
use crate::{
    Object, Store, StoreError,
    delta_fifo::{DeltaFifo, Popped},
    reflector::Reflector,
    start::Start,
    status::Monitor,
};

/// What becomes of the changes that a [`Controller`] pops.
///
/// It is called for one batch after the other, in the controller's task, which reads nothing meanwhile. The
/// changes of different parts (one for each namespace, if there are several) are of different keys.
pub trait Process<K: Object>: Send + Sync + 'static {
    /// Applies a batch to the cache and tells of it.
    ///
    /// # Errors
    /// When the cache refuses it. The controller then ends.
    fn process(&self, part: usize, popped: &Popped<K>) -> Result<(), StoreError>;

    /// The first list of a part has been processed.
    fn part_synced(&self, part: usize);

    /// How often to ask whether a [resync is due](Self::is_resync_due), from now on; zero for never.
    fn resync_check_period(&self) -> Duration;

    /// Whether everything is to be gone over again now.
    fn is_resync_due(&self) -> bool;
}

/// Follows what a [`Config`] says, and has every change of it processed.
///
/// - **Changes are processed in batches, one at a time**, the changes of each key in order.
/// - **A slow [`Process`] slows the server down**, not memory up: while the queue is full nothing is read.
/// - **It is one future.** It starts no task, and ends when it is dropped.
///
/// [`SharedIndexInformer`](crate::SharedIndexInformer) is made of one; on its own it is for a cache with one
/// handler, see [`new_informer`].
#[must_use = "a controller does nothing until it is run"]
pub struct Controller<K> {
    name: Arc<str>,
    parts: Vec<Part<K>>,
    process: Arc<dyn Process<K>>,
    batch_keys: usize,
}

/// One source on its way to the cache.
struct Part<K> {
    namespace: Option<Arc<str>>,
    selection: Option<Selection>,
    reflector: Reflector<K>,
    fifo: DeltaFifo<K>,
}

/// A part, as seen from outside the controller.
pub(crate) struct PartView<K> {
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) selection: Option<Selection>,
    pub(crate) monitor: Monitor,
    pub(crate) fifo: DeltaFifo<K>,
}

impl<K> PartView<K> {
    /// Makes waits on the part fail until `start` is complete.
    pub(crate) fn starting_with(mut self, start: &Start) -> Self {
        self.monitor = self.monitor.starting_with(start);
        self
    }
}

impl<K: Object> Controller<K> {
    /// A controller that has `process` keep `store`, which nobody else may change.
    pub fn new(mut config: Config<K>, store: &Store<K>, process: Arc<dyn Process<K>>) -> Self {
        let sources = std::mem::take(&mut config.sources);
        let parts = sources.into_iter().map(|source| {
            let known = StoredObjects { store: store.clone(), namespace: source.namespace.clone() };
            Part {
                namespace: source.namespace.clone(),
                selection: source.lister_watcher.selection(),
                reflector: config.reflector_of(source).known(Held(store.clone())),
                fifo: DeltaFifo::new(known, config.fifo.clone()),
            }
        });
        Self { parts: parts.collect(), name: config.name, process, batch_keys: config.batch_keys }
    }

    /// How the reflector of each source is doing, before, during and after the run: by namespace, if there
    /// are several.
    pub fn monitors(&self) -> Vec<(Option<Arc<str>>, Monitor)> {
        self.parts.iter().map(|part| (part.namespace.clone(), part.reflector.monitor())).collect()
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

    /// Follows the sources until `stop` is done, and then ends at once: what is in the queue is not processed
    /// any more.
    ///
    /// # Errors
    /// When the cache refused a change.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), StoreError> {
        let Self { name, parts, process, batch_keys } = self;
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
            // Of nothing there is no end.
            if is_empty { pending().await } else { Ok(()) }
        };
        tokio::select! {
            biased;
            () = stop => Ok(()),
            result = all => result.inspect_err(|error| error!(informer = &*name, %error, "stopped")),
            () = resynced.whenever(&*process) => Ok(()),
        }
    }
}

/// What is put in line again, and where that is counted.
struct Resynced<K>(Vec<(DeltaFifo<K>, Monitor)>);

impl<K: Object> Resynced<K> {
    /// Puts everything in line again whenever somebody wants to hear of it.
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
                // One that is closed has nobody behind it to be told.
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
            while let Some(popped) = fifo.pop_batch(batch_keys).await {
                process.process(number, &popped)?;
                popped.done();
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

/// Whoever waits for a queue is to hear that nobody will put anything in it.
struct CloseOnDrop<K: Object>(Vec<DeltaFifo<K>>);

impl<K: Object> Drop for CloseOnDrop<K> {
    fn drop(&mut self) {
        self.0.iter().for_each(DeltaFifo::close);
    }
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces: Vec<_> = self.parts.iter().map(|part| &part.namespace).collect();
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("namespaces", &namespaces)
            .finish_non_exhaustive()
    }
}
