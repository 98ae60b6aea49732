//! Informers: a watched collection, a cache of it, and handlers that are called with every change.
//!
//! An informer lists and watches the objects of one kind, keeps a cache of them, and calls handlers with every change.
//! Controllers read the cache instead of the server, and reconcile when a handler is called.
//!
//! # Guarantees
//!
//! - **The cache never goes back in time**, and reports a resourceVersion up to which it is complete.
//! - **The cache is updated before handlers are called.** Each handler receives a consistent sequence of events for each
//!   key.
//! - **No silent loss.** An object that cannot be decoded is quarantined and reported, and all others are processed. A
//!   server that was restored from a backup is detected. Waiting for the initial list fails with the reason if the list
//!   cannot succeed.
//! - **Everything is bounded.** The memory of a stuck handler is bounded by the number of live keys, a slow cache throttles
//!   the server's stream, and concurrent lists are limited.
//! - **Nothing outlives its owner.** A factory owns its informers until it is shut down, is dropped or releases one. A
//!   standalone informer stops with its last handle. A shutdown waits for the last task.
//!
//! The complete guarantees are documented on the types: [`SharedIndexInformer`], [`SharedInformerFactory`], [`Store`],
//! [`Event`](event::Event), [`HandlerOptions`](handler::HandlerOptions), [`Reflector`](reflector::Reflector),
//! [`DeltaFifo`](delta_fifo::DeltaFifo).
//!
//! # Example
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use watchkeeper_informer::{event::Event, factory::FactoryBuilder};
//! # use watchkeeper_client::list_watch::{ScriptedSource, WatchScript};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let source = ScriptedSource::new();
//! # let pod: Pod = serde_json::from_str(r#"{
//! #     "metadata": {"namespace": "shop", "name": "web-0", "resourceVersion": "6"},
//! #     "spec": {"nodeName": "node-1", "containers": []}
//! # }"#)?;
//! # let _server = source.open_watch(WatchScript::new().added(pod).initial_events_end("7"));
//! // In a program: SharedInformerFactory::new(Client::try_default().await?)
//! let factory = FactoryBuilder::without_client().source::<Pod>(source).build();
//!
//! let pods = factory.informer::<Pod>();
//! let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
//! let registration = pods.add_handler(|event: &Event<Pod>| match event {
//!     Event::Added { object, .. } => println!("{:?} added", object.metadata().name()),
//!     Event::Updated { new, .. } => println!("{:?} updated", new.metadata().name()),
//!     Event::Synced(object) => println!("{:?} unchanged", object.metadata().name()),
//!     Event::Deleted(deleted) => println!("{:?} deleted", deleted.object.metadata().name()),
//! })?;
//!
//! factory.start();
//! factory.wait_for_sync().await?; // fails with the reason if an informer cannot sync
//! assert_eq!(by_node.get("node-1").len(), 1);
//! assert!(pods.lister().namespace("shop").get("web-0").is_ok());
//! registration.synced().await?; // the handler has returned from the whole initial list
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! With a work queue behind the handler, this is a controller; see the lab `informer_workqueue`.
//!
//! # Contents
//!
//! | module or type | purpose |
//! |---|---|
//! | [`factory`] | [`SharedInformerFactory`]: one informer for each kind and scope, shared by all callers |
//! | [`SharedIndexInformer`] | one watch, one cache, any number of handlers |
//! | [`event`], [`handler`] | events, handlers, and the options and registrations of handlers |
//! | [`Store`], [`CacheReader`] | the cache, its indexes and its snapshots; read-only access to the cache |
//! | [`Lister`] | reads of the cache by namespace, name and label |
//! | [`status`] | the status and the counters of an informer |
//! | [`controller`] | the configuration and the loop of an informer; [`controller::new_informer`] is a cache with one handler |
//! | [`reflector`] | lists and watches one collection, and passes every change to a sink |
//! | [`delta_fifo`] | the queue of changes between a reflector and the cache |
//! | [`small_stores`] | a FIFO, a store that pushes all contents, an expiring cache |
//!
//! # Names in client-go
//!
//! | client-go | here |
//! |---|---|
//! | `informers.NewSharedInformerFactory` | [`SharedInformerFactory::new`] |
//! | `factory.Core().V1().Pods().Informer()` | [`factory.informer::<Pod>()`](SharedInformerFactory::informer) |
//! | `dynamicinformer`, `ForResource(gvr)` | [`factory.for_resource(&gvr)`](SharedInformerFactory::for_resource) |
//! | `WithNamespace`, `WithTweakListOptions` | [`Scope`](factory::Scope), for the factory or for one informer, with any number of namespaces |
//! | `AddEventHandler`, `RemoveEventHandler` | [`add_handler`](SharedIndexInformer::add_handler), [`Registration::remove`](handler::Registration::remove), which waits |
//! | `AddIndexers`, `GetIndexer` | [`add_index`](SharedIndexInformer::add_index), [`indexer`](SharedIndexInformer::indexer) |
//! | `factory.Start` | [`factory.start()`](SharedInformerFactory::start); again after requesting more informers |
//! | `cache.WaitForCacheSync` | [`wait_for_sync`](SharedIndexInformer::wait_for_sync), which returns an error for an informer that cannot sync or was not started |
//! | `RemoveInformer` (controller-runtime) | [`factory.release(&informer)`](SharedInformerFactory::release) |
//! | `DeletedFinalStateUnknown` | [`Deleted::final_state_unknown`](event::Deleted::final_state_unknown); the object is always present |
//! | `cache.NewInformer` | [`controller::new_informer`] |
//! | cancelling the context, `factory.Shutdown` | [`shutdown`](SharedInformerFactory::shutdown) of the factory or of [one informer](SharedIndexInformer::shutdown), or dropping the last handle |

mod cached;
pub mod controller;
pub mod delta_fifo;
pub mod event;
pub mod factory;
mod freshness;
pub mod handler;
mod key;
mod lister;
mod memory;
mod object;
mod panic;
mod processor;
mod reader;
pub mod reflector;
mod resource_version;
mod shared_informer;
pub mod small_stores;
mod spawn;
mod start;
pub mod status;
mod store;
mod transition;
mod wakers;

use watchkeeper_time::sync;

pub use self::{
    cached::{Cached, CachedRef, LabelFilter, MetadataRef, OwnerRef, Undecodable},
    factory::SharedInformerFactory,
    freshness::FreshnessError,
    key::{KeyError, ObjectKey},
    lister::{
        AnyObject, GenericLister, GenericNamespaceLister, GenericView, GetError, Lister, ListerView,
        NamespaceLister, NamespaceView, NotFound,
    },
    memory::{AmountError, MemoryPolicy, MemoryStats},
    object::Object,
    reader::CacheReader,
    resource_version::ResourceVersion,
    shared_informer::{InformerStats, SharedIndexInformer, StatusWatch, WeakInformer},
    spawn::{Spawn, Task},
    store::{
        ApplyResult, EachOf, Index, IndexError, IndexFailure, IndexHealth, IndexValues, NAMESPACE_INDEX,
        ReplaceResult, Snapshot, Store, StoreError, StoreOp, StoreOpResult,
    },
};

/// Parts of an informer for its own benchmarks and tests. Not part of the public API.
#[doc(hidden)]
pub mod internals {
    pub use crate::{
        controller::apply::{DeltaEffects, Process, process_deltas},
        memory::PackedTier,
        processor::{ListenerTask, Processor, ProcessorGuard},
        shared_informer::Distributor,
        transition::{Audience, CacheUpdate, Notification, transition},
    };
}
