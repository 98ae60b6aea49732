//! Controllers: the reconcile loop, the manager and their helpers, on top of informers and work queues.
//!
//! A controller makes the actual state match the desired state of its objects. It is called with the key of
//! an object that may have changed, reads the object and its dependents, and makes the missing changes. This
//! crate provides everything around the reconcile function: event sources, workers, retries, read-your-writes
//! consistency, and the program that runs it.
//!
//! # Example
//!
//! A controller that copies each annotated config map, on the embedded API server. With a client of a real
//! cluster the code is the same.
//!
//! ```
//! use std::{collections::BTreeMap, time::Duration};
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_core::{ObjectMeta, params::PostParams};
//! use tokio_util::sync::CancellationToken;
//! use watchkeeper_apiserver::ApiServer;
//! use watchkeeper_client::{Client, wait};
//! use watchkeeper_controller::{Action, Context, Controller, ReconcileError, Request, manager::Runnable};
//! use watchkeeper_informer::ObjectKey;
//!
//! async fn copy(request: Request<ConfigMap>, ctx: Context) -> Result<Action, ReconcileError> {
//!     // The object was deleted. This controller has no cleanup.
//!     let Some(original) = request.object else { return Ok(Action::done()) };
//!     let Some(name) = original.metadata.annotations.as_ref().and_then(|it| it.get("copy-to")) else {
//!         return Ok(Action::done());
//!     };
//!     let namespace = original.metadata.namespace.as_deref().unwrap_or_default();
//!     // The cache shows the writes of earlier reconciles, so a missing copy has to be created.
//!     if !ctx.lister::<ConfigMap>()?.contains(ObjectKey::new(Some(namespace), name)?) {
//!         let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
//!         let copy = ConfigMap { metadata, ..ConfigMap::clone(&original) };
//!         let maps = ctx.client().resource::<ConfigMap>().namespace(namespace);
//!         maps.create(&PostParams::default(), &copy).await?;
//!     }
//!     Ok(Action::done())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::in_process();
//! let client = Client::from(server.client());
//! let controller = Controller::<ConfigMap>::new(&client).workers(2).reconcile_with(copy);
//!
//! let stop = CancellationToken::new();
//! let user = async {
//!     let maps = client.resource::<ConfigMap>().default_namespace();
//!     let annotations = BTreeMap::from([("copy-to".to_owned(), "b".to_owned())]);
//!     let metadata =
//!         ObjectMeta { name: Some("a".into()), annotations: Some(annotations), ..ObjectMeta::default() };
//!     maps.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
//!     maps.await_condition("b", wait::exists(), Duration::from_secs(30)).await.unwrap();
//!     stop.cancel();
//! };
//! let (ended, ()) = tokio::join!(controller.run(stop.clone()), user);
//! ended?; // in a program that is one controller: Controller::run, which ends with Ctrl-C
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! The guarantees of the loop are documented on [`Controller`]. In short: after the last change of an object,
//! or of an object that maps to it, its key is reconciled with that change in the cache; by one worker at a
//! time; and not before the cache shows the earlier writes of that key's reconciles. A failure, a panic, a
//! reconcile that does not return and a watch that does not work are isolated, counted and logged. A stop
//! request ends everything within its timeout.
//!
//! Not guaranteed: one reconcile per change, because consecutive changes may be merged; any order between
//! keys; that the cached object is the latest state, which is why writes can conflict.
//!
//! # Contents
//!
//! | item | content |
//! |---|---|
//! | [`Controller`], [`ReconcileLoop`] | the reconcile loop: sources, workers, start and stop |
//! | [`Reconciler`], [`Request`], [`Context`], [`Action`], [`ReconcileError`] | the reconcile function, its input and its result |
//! | [`Watch`], [`predicate`], [`Change`], [`each_state`], [`each_metadata`], [`Triggers`] | which changes enqueue which keys |
//! | [`HotLoop`], [`HotLoopLimits`] | detection of keys that trigger themselves |
//! | [`metrics`] | metrics of controllers, informers, requests and the process, under the metric names of controller-runtime and client-go |
//! | [`objects`] | finalizers, owner references, conditions, apply |
//! | [`events`] | recording of Kubernetes events |
//! | [`manager`] | several controllers as one program, with ordered start and stop |
//! | [`options`] | manager options, in code and from the command line |
//! | [`leader`] | leader election with a `Lease` |
//! | [`http`] | health, readiness and metrics endpoints of a manager |
//! | [`rbac`] | declared API access, the RBAC rules and manifests for it, and a check at startup that it is granted |
//! | [`time`] | injected clocks |
//!
//! # Coming from controller-runtime
//!
//! | controller-runtime | here |
//! |---|---|
//! | `ctrl.NewControllerManagedBy(mgr).For(&Foo{})` | [`Controller::<Foo>::on(&factory)`](Controller::on) |
//! | `Owns`, `Watches` with `EnqueueRequestsFromMapFunc`, `WatchesRawSource` | [`owns`](Controller::owns), [`watches`](Controller::watches), [`watches_informer`](Controller::watches_informer), [`channel`](Controller::channel) |
//! | `WithEventFilter`, `builder.WithPredicates` | [`filter`](Controller::filter), [`Watch::filter`] |
//! | `Result{RequeueAfter}`, `Result.Priority` | [`Action::requeue_after`], [`Action::with_priority`] |
//! | `reconcile.TerminalError` | [`ReconcileError::terminal`]; conflicts are [requeued soon](ErrorClass::Conflict), without a warning |
//! | `MaxConcurrentReconciles`, `ReconciliationTimeout`, `RecoverPanic` | [`workers`](Controller::workers), [`timeout`](Controller::timeout); panics are always recovered |
//! | `IgnoreNotFound` after a `Get` | [`Request::object`] is none |
//! | a cached client that reads its own writes | [`Context::client`]; the next reconcile of the key waits for the writes, reads do not wait |
//! | a CRD that is missing stops the manager | [`Watch::optional`] |
//! | `manager.Manager`, `AddHealthzCheck`, `GetEventRecorder` | [`Manager`](manager::Manager), [`add_health_check`](manager::Manager::add_health_check), [`recorder`](manager::Manager::recorder) |
//! | metrics in the global registry, controller names validated against duplicates | [`Manager::add`](manager::Manager::add) registers [`metrics`] and rejects duplicate names |
//! | `LeaderElection`, `LeaderElectionReleaseOnCancel` | [`LeaderElection`](leader::LeaderElection); released when the work has ended, by default |
//! | `controllerutil`: `SetControllerReference`, `AddFinalizer`, `CreateOrUpdate` | [`owner::set_controller`](objects::owner::set_controller), [`finalize`](objects::finalizer::finalize), [`create_or_update`](objects::write::create_or_update) |
//! | `meta.SetStatusCondition`, `retry.RetryOnConflict` | [`conditions::set`](objects::conditions::set), [`retry_on_conflict`](objects::write::retry_on_conflict) |
//! | `+kubebuilder:rbac` markers | [`Controller::uses`], [`rbac::Manifests`] |

pub mod events;
mod hot_loop;
pub mod http;
pub mod leader;
pub mod manager;
pub mod metrics;
pub mod objects;
pub mod options;
mod panic;
pub mod rbac;
mod reconcile;
pub mod time;
mod trigger;
mod writes;

pub use watchkeeper_workqueue::{Cause, Causes, Priority};

pub use self::{
    hot_loop::{HotLoop, HotLoopLimits, WriteCount},
    reconcile::{
        AbandonReason, AbandonedKey, Action, Context, Controller, ErrorClass, Freshness, NotWatched,
        ReconcileError, ReconcileLoop, Reconciler, Request,
    },
    trigger::{Change, ChangeKind, SourceStatus, Triggers, Watch, each_metadata, each_state, predicate},
};
