//! From the API server to the cache: one story per key, never skipped, never invented.
//!
//! An informer follows the objects of one kind on a server, keeps a cache of them, and tells handlers of
//! every change. It is what a controller stands on: it reads the cache instead of asking the server, and is
//! told when to look again.
//!
//! # What it promises
//!
//! - **The cache never goes back in time**, and knows a version up to which nothing is missing from it.
//! - **The cache is changed before anybody is told**, and each handler hears one whole story of each key.
//! - **Nothing is lost in silence.** What cannot be decoded is set aside and reported, and nothing else
//!   suffers; a server that was restored from a backup is found out; waiting for the first list fails with
//!   the reason when it will not come.
//! - **Everything is bounded.** A stuck handler costs no more than the live keys, a slow cache slows the
//!   server's stream down, and lists take turns.
//! - **Nothing outlives its owner.** A factory owns its informers until it is shut down, is dropped or
//!   releases one; a standalone informer stops with its last handle. A shutdown waits for the last task.
//!
//! The promises in full are on the types that make them: [`SharedIndexInformer`], [`SharedInformerFactory`],
//! [`Store`], [`Event`](event::Event), [`Reflector`](reflector::Reflector),
//! [`DeltaFifo`](delta_fifo::DeltaFifo), [`Processor`](processor::Processor).
//!
//! # What it looks like
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
//!     Event::Added { object, .. } => println!("{:?} is there", object.metadata.name),
//!     Event::Updated { new, .. } => println!("{:?} changed", new.metadata.name),
//!     Event::Synced(object) => println!("{:?} is as it was", object.metadata.name),
//!     Event::Deleted(deleted) => println!("{:?} is gone", deleted.object.metadata.name),
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
//! With a work queue behind the handler it is a controller; `examples/informer_workqueue.rs` is one that
//! prints pods.
//!
//! # What is in here
//!
//! | module | what it is |
//! |---|---|
//! | [`factory`] | [`SharedInformerFactory`]: one informer per kind and scope, shared by all callers |
//! | [`SharedIndexInformer`] | one watch, one cache, any number of handlers |
//! | [`controller`] | the loop an informer is made of; with one handler and no task, [`controller::new_informer`] |
//! | [`reflector`] | lists and watches one collection, and tells every change of it in order |
//! | [`status`] | what a reflector is doing, and how often it did what |
//! | [`delta_fifo`] | changes waiting to be applied, gathered by key |
//! | [`Store`], [`Indexer`], [`CacheReader`] | the cache, its indexes and its snapshots; the same, to be read only |
//! | [`Lister`] | reading the cache by namespace, name and label |
//! | [`event`], [`handler`] | what handlers are told, and what they are |
//! | [`transition`] | from a change of the cache to the events it means |
//! | [`processor`] | events to handlers: one log, a cursor each, no handler in another's way |
//! | [`small_stores`] | a plain FIFO, a store that pushes its whole state, a cache that forgets |
//!
//! # Coming from client-go
//!
//! | client-go | here |
//! |---|---|
//! | `informers.NewSharedInformerFactory` | [`SharedInformerFactory::new`] |
//! | `factory.Core().V1().Pods().Informer()` | [`factory.informer::<Pod>()`](SharedInformerFactory::informer) |
//! | `dynamicinformer`, `ForResource(gvr)` | [`factory.for_resource(&gvr)`](SharedInformerFactory::for_resource) |
//! | `WithNamespace`, `WithTweakListOptions` | [`Scope`](factory::Scope), for the factory or for one informer; several namespaces too |
//! | `AddEventHandler`, `RemoveEventHandler` | [`add_handler`](SharedIndexInformer::add_handler), [`Registration::remove`](processor::Registration::remove), which waits |
//! | `AddIndexers`, `GetIndexer` | [`add_index`](SharedIndexInformer::add_index), [`indexer`](SharedIndexInformer::indexer) |
//! | `factory.Start` | [`factory.start()`](SharedInformerFactory::start); again after requesting more informers |
//! | `cache.WaitForCacheSync` | [`wait_for_sync`](SharedIndexInformer::wait_for_sync), which returns an error for an informer that cannot sync or was not started |
//! | `RemoveInformer` (controller-runtime) | [`factory.release(&informer)`](SharedInformerFactory::release) |
//! | `DeletedFinalStateUnknown` | [`Deleted::final_state_unknown`](event::Deleted::final_state_unknown); there always is an object |
//! | `cache.NewInformer` | [`controller::new_informer`] |
//! | cancelling the context, `factory.Shutdown` | [`shutdown`](SharedInformerFactory::shutdown) of the factory or of [one informer](SharedIndexInformer::shutdown), or dropping the last handle |

pub mod controller;
pub mod delta_fifo;
pub mod event;
pub mod factory;
mod freshness;
pub mod handler;
mod key;
mod keyed_queue;
mod lister;
mod object;
mod panic;
pub mod processor;
mod reader;
pub mod reflector;
mod resource_version;
mod shared_informer;
pub mod small_stores;
mod spawn;
mod start;
pub mod status;
mod store;
mod sync;
pub mod transition;
mod wakers;

pub use self::{
    factory::SharedInformerFactory,
    freshness::FreshnessError,
    key::{KeyError, ObjectKey},
    lister::{
        AnyObject, GenericLister, GenericNamespaceLister, GenericView, Lister, ListerView, NamespaceLister,
        NamespaceView, NotFound,
    },
    object::Object,
    reader::CacheReader,
    resource_version::ResourceVersion,
    shared_informer::{Distributor, InformerStats, SharedIndexInformer, StatusWatch, WeakInformer},
    spawn::{Spawn, Task},
    store::{
        Applied, EachOf, Index, IndexError, IndexFailure, IndexHealth, IndexValues, Indexer, NAMESPACE_INDEX,
        Replaced, Snapshot, Store, StoreError, StoreOp, StoreOpResult,
    },
};
