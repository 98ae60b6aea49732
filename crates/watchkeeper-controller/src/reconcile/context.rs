//! The context of a reconcile: the client, the caches of the controller, and the stop request.

use std::{
    any::{Any, TypeId, type_name},
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use kube_core::Resource;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::kube_client::client::Body;
use watchkeeper_client::{
    Client,
    rest::{KnownScope, ResourceClient, ToResourceClient},
};
use watchkeeper_informer::{CacheReader, Lister, Object, ObjectKey};
use watchkeeper_workqueue::{Clock, TokioClock};

use super::stop::StopTokens;
use crate::writes::{WriteTracker, tracked_client};

/// The context of a reconcile: the client, the caches of the controller, and the stop request.
///
/// A context is a handle: clones refer to the same reconcile.
///
/// # Guarantees
///
/// 1. **Read your writes.** The caches show the writes that earlier reconciles of this key made with
///    [`client`](Self::client), unless [`freshness`](Self::freshness) is [`TimedOut`](Freshness::TimedOut).
/// 2. **Reads of caches are local.** [`lister`](Self::lister) and [`reader`](Self::reader) send no request. The cached
///    objects are shared and may be older than the server's, so a write that is based on them can conflict.
/// 3. **One client.** [`client`](Self::client) has the limits and deadlines of the controller's client.
///
/// # Example
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use watchkeeper_apiserver::ApiServer;
/// use watchkeeper_controller::{Action, Context, ReconcileError, Request};
///
/// async fn reconcile(request: Request<ConfigMap>, context: Context) -> Result<Action, ReconcileError> {
///     let maps = context.client().resource::<ConfigMap>().namespace("default");
///     let on_server = maps.get_opt(request.name()).await?;
///     println!("{}: {}", request.key, if on_server.is_some() { "exists" } else { "does not exist" });
///     Ok(Action::done())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A test calls the reconciler with a detached context, without a controller.
/// let server = ApiServer::in_process();
/// let request = Request::new("default/settings".parse()?, None);
/// let action = reconcile(request, Context::detached(server.client())).await;
/// assert_eq!(action.ok(), Some(Action::done()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    controller: Arc<ControllerContext>,
    /// The key of the reconcile. `None` without a controller.
    key: Option<ObjectKey>,
    id: u64,
    freshness: Freshness,
    tokens: Arc<StopTokens>,
    /// Created on first use, because most reconciles do not write.
    client: OnceLock<Client>,
    cancellation: OnceLock<CancellationToken>,
}

/// An allocation for the context of a reconcile. A worker reuses it for its next key, which saves an allocation and
/// contended updates of reference counts that all workers share.
pub(crate) struct ContextSlot(Arc<Inner>);

impl ContextSlot {
    pub(crate) fn new(controller: &Arc<ControllerContext>, tokens: &Arc<StopTokens>) -> Self {
        let inner = Inner {
            controller: Arc::clone(controller),
            key: None,
            id: 0,
            freshness: Freshness::Fresh,
            tokens: Arc::clone(tokens),
            client: OnceLock::new(),
            cancellation: OnceLock::new(),
        };
        Self(Arc::new(inner))
    }
}

/// The part of the context that all reconciles of a controller share.
pub(crate) struct ControllerContext {
    pub(crate) name: Arc<str>,
    pub(crate) client: Option<Client>,
    pub(crate) tracker: Option<Arc<WriteTracker>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) caches: Caches,
    pub(crate) values: Values,
}

/// Values of different types, one of each.
pub(crate) type Values = BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// The caches of a controller, by the type of their objects.
#[derive(Default)]
pub(crate) struct Caches(BTreeMap<TypeId, Box<dyn Any + Send + Sync>>);

struct Cache<W> {
    reader: CacheReader<W>,
    lister: Lister<W>,
}

/// The result of the wait before a reconcile for the writes of earlier reconciles of the same key, as returned by
/// [`Context::freshness`].
///
/// A reconcile does not begin before the caches of the controller contain these writes, or before
/// [`Controller::freshness_timeout`](crate::Controller::freshness_timeout) has elapsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// The caches contain all writes, or nothing was written. The reconcile was not delayed.
    Fresh,
    /// The caches contain all writes. The reconcile was delayed for this long until they did.
    Waited(Duration),
    /// The caches did not contain all writes after a delay of this length, the timeout. Reads from the caches may
    /// return older states.
    TimedOut(Duration),
}

/// The error returned by reads of a type that the controller does not watch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "read cache of {type_name}: controller {controller} does not watch this type; add a watch with owns or watches, or \
     read an informer of your own"
)]
#[non_exhaustive]
#[doc(alias = "ReaderFailOnMissingInformer")]
pub struct NotWatched {
    /// The name of the controller.
    pub controller: Arc<str>,
    /// The Rust type.
    pub type_name: &'static str,
}

impl Context {
    /// Creates the context of one reconcile.
    pub(crate) fn new(slot: ContextSlot, key: &ObjectKey, id: u64, freshness: Freshness) -> Self {
        let ContextSlot(mut inner) = slot;
        // The slot holds the only reference, so this does not clone.
        let fields = Arc::make_mut(&mut inner);
        (fields.key, fields.id, fields.freshness) = (Some(key.clone()), id, freshness);
        Self { inner }
    }

    /// Ends the reconcile. Returns the slot for reuse, unless a clone of the context outlives the reconcile.
    pub(crate) fn end(mut self) -> Option<ContextSlot> {
        let fields = Arc::get_mut(&mut self.inner)?;
        (fields.key, fields.client, fields.cancellation) = (None, OnceLock::new(), OnceLock::new());
        Some(ContextSlot(self.inner))
    }

    /// Returns a context without a controller, for tests of a reconciler. The context has no caches and is never
    /// stopped.
    pub fn detached(client: impl Into<Client>) -> Self {
        let controller = ControllerContext {
            name: "detached".into(),
            client: Some(client.into()),
            tracker: None,
            clock: Arc::new(TokioClock::new()),
            caches: Caches::default(),
            values: Values::new(),
        };
        let tokens = Arc::new(StopTokens::new(CancellationToken::new()));
        let ContextSlot(inner) = ContextSlot::new(&Arc::new(controller), &tokens);
        Self { inner }
    }

    /// Returns the name of the controller.
    pub fn controller(&self) -> &str {
        &self.inner.controller.name
    }

    /// Returns the number of this reconcile, counted from 1 for each controller. Logs contain it as `reconcile_id`.
    #[doc(alias = "ReconcileIDFromContext")]
    pub fn reconcile_id(&self) -> u64 {
        self.inner.id
    }

    /// Returns the client of the controller, with its limits and deadlines. Writes are tracked: the next reconcile of this
    /// key does not begin before the controller's caches show them. See
    /// [`Controller::freshness_timeout`](crate::Controller::freshness_timeout).
    ///
    /// Tracked are writes of a single object that an informer of the controller selects, once the response has arrived.
    /// Reads are sent to the server; [`lister`](Self::lister) reads the cache.
    ///
    /// Every request fails if the controller has no client.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use watchkeeper_controller::{Action, Context, ReconcileError, Request};
    /// # async fn reconcile(request: Request<ConfigMap>, context: Context) -> Result<Action, ReconcileError> {
    /// let maps = context.client().resource::<ConfigMap>().namespace("default");
    /// let settings = maps.get_opt("settings").await?;
    /// # Ok(Action::done())
    /// # }
    /// ```
    #[doc(alias = "GetClient")]
    pub fn client(&self) -> Client {
        let Inner { controller, key, client, .. } = &*self.inner;
        let tracked = client.get_or_init(|| {
            match (&controller.client, controller.tracker.as_ref().zip(key.as_ref())) {
                (Some(client), Some((tracker, key))) if tracker.is_tracking() => {
                    tracker.expect_writes();
                    tracked_client(client, tracker, key)
                }
                (Some(client), _) => client.clone(),
                (None, _) => missing_client(&controller.name),
            }
        });
        tracked.clone()
    }

    /// Returns a client whose writes are not tracked: the next reconcile does not wait for them, and they are not
    /// evidence of a [hot loop](crate::HotLoop).
    #[doc(alias = "DisableReadYourWritesConsistency")]
    pub fn untracked_client(&self) -> Client {
        let controller = &self.inner.controller;
        controller.client.clone().unwrap_or_else(|| missing_client(&controller.name))
    }

    /// Returns a lister on the cache of a watched kind: objects by name, namespace and labels.
    ///
    /// # Errors
    /// Returns [`NotWatched`] if the controller does not watch objects of this type.
    pub fn lister<W: Object>(&self) -> Result<Lister<W>, NotWatched> {
        self.cache().map(|cache| cache.lister.clone())
    }

    /// Returns a reader of the cache of a watched kind, including its indexes.
    ///
    /// # Errors
    /// Returns [`NotWatched`] if the controller does not watch objects of this type.
    pub fn reader<W: Object>(&self) -> Result<CacheReader<W>, NotWatched> {
        self.cache().map(|cache| cache.reader.clone())
    }

    /// Returns the value of type `T` that was passed to [`Controller::with`](crate::Controller::with).
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.inner.controller.values.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// Returns the clock of the controller, which is virtual in tests.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.controller.clock
    }

    /// Returns whether the caches contain the writes of earlier reconciles of this key.
    pub fn freshness(&self) -> Freshness {
        self.inner.freshness
    }

    /// Returns whether a stop was requested. The reconcile may finish, but should not begin long work.
    pub fn is_stopping(&self) -> bool {
        self.inner.tokens.stop.is_cancelled()
    }

    /// Returns a token for tasks and blocking calls that the reconcile starts and does not await.
    ///
    /// The token is cancelled when the reconcile is dropped before its end, because it timed out or the controller is
    /// stopping, and when the controller has stopped.
    pub fn cancellation(&self) -> CancellationToken {
        self.inner.cancellation.get_or_init(|| self.inner.tokens.abort.child_token()).clone()
    }

    /// Cancels the token of this reconcile, which was dropped before its end.
    pub(crate) fn cancel(&self) {
        self.cancellation().cancel();
    }

    fn cache<W: Object>(&self) -> Result<&Cache<W>, NotWatched> {
        let controller = &self.inner.controller;
        controller.caches.get().ok_or_else(|| NotWatched {
            controller: Arc::clone(&controller.name),
            type_name: type_name::<W>(),
        })
    }
}

impl Caches {
    /// Adds a cache. The first cache of a type takes precedence.
    pub(crate) fn add<W: Object>(&mut self, reader: CacheReader<W>, lister: Lister<W>) {
        self.0.entry(TypeId::of::<W>()).or_insert_with(|| Box::new(Cache { reader, lister }));
    }

    fn get<W: Object>(&self) -> Option<&Cache<W>> {
        self.0.get(&TypeId::of::<W>())?.downcast_ref()
    }
}

/// Returns a client whose requests fail with the reason that the controller has no client.
fn missing_client(controller: &Arc<str>) -> Client {
    let controller = Arc::clone(controller);
    let reject = tower::service_fn(move |_: http::Request<Body>| {
        let message = format!(
            "controller {controller} has no client; set one with Controller::client, or create the factory \
             with one"
        );
        async move { Err::<http::Response<Body>, _>(tower::BoxError::from(message)) }
    });
    Client::from_service(reject, "default")
}

/// Uses [`Context::client`], for the objects in all namespaces.
impl<K> ToResourceClient<K> for Context
where
    K: Resource<Scope: KnownScope>,
    K::DynamicType: Default,
{
    fn to_resource_client(&self) -> ResourceClient<K> {
        self.client().resource()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.inner.controller.name)
            .field("key", &self.inner.key)
            .field("reconcile_id", &self.inner.id)
            .field("freshness", &self.inner.freshness)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reused_slot_keeps_no_state_and_a_kept_context_stays_unchanged() {
        let Inner { controller, tokens, .. } = &*Context::detached(missing_client(&"maps".into())).inner;
        let (first, second) = ("shop/web".parse().unwrap(), "shop/cart".parse().unwrap());
        let context = Context::new(ContextSlot::new(controller, tokens), &first, 1, Freshness::Fresh);
        context.cancel();
        let slot = context.end().expect("no clone exists");
        let waited = Freshness::Waited(Duration::from_secs(1));
        let context = Context::new(slot, &second, 2, waited);
        assert!(!context.cancellation().is_cancelled(), "only the first was cancelled");
        assert_eq!((context.reconcile_id(), context.freshness()), (2, waited));
        assert_eq!(context.inner.key, Some(second.clone()));

        let kept = context.clone();
        assert!(context.end().is_none(), "a clone exists");
        assert_eq!((kept.reconcile_id(), &kept.inner.key), (2, &Some(second)));
    }
}
