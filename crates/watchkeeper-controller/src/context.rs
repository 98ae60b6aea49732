//! What a reconciler has at hand.

use std::{
    any::{Any, TypeId, type_name},
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{self, Wake, Waker},
    time::Duration,
};

use kube_client::client::Body;
use kube_core::Resource;
use tokio::task::coop::unconstrained;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::{
    Client,
    rest::{KnownScope, ResourceClient, ToResourceClient},
};
use watchkeeper_informer::{CacheReader, Lister, Object, ObjectKey};
use watchkeeper_workqueue::{Clock, TokioClock};

use crate::{memory::Memory, writes};

/// What a reconciler has at hand: a client, the caches of its controller, a word on whether to hurry.
///
/// A handle: clones are of the same reconcile.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    shared: Arc<Shared>,
    /// None when there is no controller.
    key: Option<ObjectKey>,
    id: u64,
    freshness: Freshness,
    signals: Arc<Signals>,
    /// Made when it is asked for: most reconciles find nothing to write.
    client: OnceLock<Client>,
    cancellation: OnceLock<CancellationToken>,
}

/// Where the context of a reconcile goes. A worker's next one takes that of its last: not every key then needs its own, nor
/// counts in what all workers share, which their processors would pass back and forth.
pub(crate) struct Room(Arc<Inner>);

impl Room {
    pub(crate) fn new(shared: &Arc<Shared>, signals: &Arc<Signals>) -> Self {
        let inner = Inner {
            shared: Arc::clone(shared),
            key: None,
            id: 0,
            freshness: Freshness::Fresh,
            signals: Arc::clone(signals),
            client: OnceLock::new(),
            cancellation: OnceLock::new(),
        };
        Self(Arc::new(inner))
    }
}

/// What all reconciles of a controller have in common.
pub(crate) struct Shared {
    pub(crate) controller: Arc<str>,
    pub(crate) client: Option<Client>,
    pub(crate) memory: Option<Arc<Memory>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) caches: Caches,
    pub(crate) values: Values,
}

/// How a run ends. Shared as a whole: each clone of a token takes its lock.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Nothing new is begun.
    pub(crate) stop: CancellationToken,
    /// What is being done is dropped.
    pub(crate) abort: CancellationToken,
    stop_sign: Arc<Sign>,
}

/// Goes up in the moment a token is cancelled. To look at a token takes a lock, which is much for every key of every worker.
#[derive(Debug, Default)]
struct Sign(AtomicBool);

impl Wake for Sign {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Signals {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop, abort: CancellationToken::new(), stop_sign: Arc::default() }
    }

    /// Sees to it that [`is_stopping`](Self::is_stopping) knows, for as long as what is returned is held.
    pub(crate) fn watch_stop(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // A task that has done much is told to yield by waking it, which is not what this waker is for.
        let mut cancelled = Box::pin(unconstrained(self.stop.cancelled()));
        let waker = Waker::from(Arc::clone(&self.stop_sign));
        if cancelled.as_mut().poll(&mut task::Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
        cancelled
    }

    /// Whether nothing new is to be begun. Asks the token only when there is reason to.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop_sign.0.load(Ordering::Acquire) && self.stop.is_cancelled()
    }
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

/// Whether the caches show what this controller last wrote for the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// They do, or nothing was written.
    Fresh,
    /// They do, after the reconcile was held back for this long.
    Waited(Duration),
    /// They do not: this long was waited in vain, and what is read may be older than what was written.
    TimedOut(Duration),
}

/// The controller does not watch objects of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{controller} has no cache of {type_name}; have the controller watch it, or read it from an informer of your own"
)]
#[non_exhaustive]
pub struct NotWatched {
    /// The controller.
    pub controller: Arc<str>,
    /// The Rust type.
    pub type_name: &'static str,
}

impl Context {
    /// The context of one reconcile.
    pub(crate) fn new(room: Room, key: &ObjectKey, id: u64, freshness: Freshness) -> Self {
        let Room(mut inner) = room;
        // Nobody else has it, so it is not cloned.
        let begun = Arc::make_mut(&mut inner);
        (begun.key, begun.id, begun.freshness) = (Some(key.clone()), id, freshness);
        Self { inner }
    }

    /// Ends the reconcile. Its room is free, unless something that outlives it kept a clone.
    pub(crate) fn end(mut self) -> Option<Room> {
        let ended = Arc::get_mut(&mut self.inner)?;
        (ended.key, ended.client, ended.cancellation) = (None, OnceLock::new(), OnceLock::new());
        Some(Room(self.inner))
    }

    /// Returns a context without a controller, for tests of a reconciler: without caches, and never stopping.
    pub fn detached(client: impl Into<Client>) -> Self {
        let shared = Shared {
            controller: "detached".into(),
            client: Some(client.into()),
            memory: None,
            clock: Arc::new(TokioClock::new()),
            caches: Caches::default(),
            values: Values::new(),
        };
        let signals = Arc::new(Signals::new(CancellationToken::new()));
        let Room(inner) = Room::new(&Arc::new(shared), &signals);
        Self { inner }
    }

    /// The name of the controller.
    pub fn controller(&self) -> &str {
        &self.inner.shared.controller
    }

    /// The number of this reconcile, counted from 1 since the controller was made; the same as in its logs.
    pub fn reconcile_id(&self) -> u64 {
        self.inner.id
    }

    /// Returns the client of the controller, with its limits and deadlines. Writes are tracked: the next reconcile of this key does
    /// not begin before the controller's caches show them. See
    /// [`Controller::freshness_timeout`](crate::Controller::freshness_timeout).
    ///
    /// Tracked are writes of a single object that an informer of the controller selects, once the response has arrived. Reads are
    /// sent to the server; [`lister`](Self::lister) reads the cache.
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
        let Inner { shared, key, client, .. } = &*self.inner;
        let tracked =
            client.get_or_init(|| match (&shared.client, shared.memory.as_ref().zip(key.as_ref())) {
                (Some(client), Some((memory, key))) if memory.is_tracking() => {
                    memory.expect_writes();
                    writes::tracked(client, memory, key)
                }
                (Some(client), _) => client.clone(),
                (None, _) => no_client(&shared.controller),
            });
        tracked.clone()
    }

    /// Returns a client whose writes are not tracked: the next reconcile does not wait for them, and they are not evidence of a
    /// [hot loop](crate::HotLoop).
    pub fn untracked_client(&self) -> Client {
        let shared = &self.inner.shared;
        shared.client.clone().unwrap_or_else(|| no_client(&shared.controller))
    }

    /// The cache of a kind that the controller watches, by name, namespace and label.
    ///
    /// # Errors
    /// When the controller watches no objects of this type.
    pub fn lister<W: Object>(&self) -> Result<Lister<W>, NotWatched> {
        self.cache().map(|cache| cache.lister.clone())
    }

    /// The cache of a kind that the controller watches, with its indexes.
    ///
    /// # Errors
    /// When the controller watches no objects of this type.
    pub fn reader<W: Object>(&self) -> Result<CacheReader<W>, NotWatched> {
        self.cache().map(|cache| cache.reader.clone())
    }

    /// A value that was given to the controller: [`Controller::with`](crate::Controller::with).
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.inner.shared.values.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// The clock of the controller: monotonic, and virtual in tests.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.shared.clock
    }

    /// Whether the caches show what was last written for this key.
    pub fn freshness(&self) -> Freshness {
        self.inner.freshness
    }

    /// Whether the controller has been asked to stop. The reconcile may go on to its end, but should not begin long work.
    pub fn is_stopping(&self) -> bool {
        self.inner.signals.stop.is_cancelled()
    }

    /// Cancelled when this reconcile is dropped before its end, because it took too long or the time to stop is over; and
    /// when the controller has stopped, for what outlives the reconcile.
    ///
    /// For what the reconcile started and does not await: tasks, blocking calls. The reconcile itself is dropped.
    pub fn cancellation(&self) -> CancellationToken {
        self.inner.cancellation.get_or_init(|| self.inner.signals.abort.child_token()).clone()
    }

    /// The reconcile was dropped before its end.
    pub(crate) fn cancel(&self) {
        self.cancellation().cancel();
    }

    fn cache<W: Object>(&self) -> Result<&Cache<W>, NotWatched> {
        let shared = &self.inner.shared;
        shared.caches.get().ok_or_else(|| NotWatched {
            controller: Arc::clone(&shared.controller),
            type_name: type_name::<W>(),
        })
    }
}

impl Caches {
    /// Adds a cache, if there is none of its type.
    pub(crate) fn add<W: Object>(&mut self, reader: CacheReader<W>, lister: Lister<W>) {
        self.0.entry(TypeId::of::<W>()).or_insert_with(|| Box::new(Cache { reader, lister }));
    }

    fn get<W: Object>(&self) -> Option<&Cache<W>> {
        self.0.get(&TypeId::of::<W>())?.downcast_ref()
    }
}

/// A client that says what is missing.
fn no_client(controller: &Arc<str>) -> Client {
    let controller = Arc::clone(controller);
    let refuse = tower::service_fn(move |_: http::Request<Body>| {
        let message = format!(
            "{controller} was made without a client; give it one, or a factory that has one, to read and write"
        );
        async move { Err::<http::Response<Body>, _>(tower::BoxError::from(message)) }
    });
    Client::from_service(refuse, "default")
}

/// The objects in all namespaces, by the client of [`Context::client`].
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
            .field("controller", &self.inner.shared.controller)
            .field("key", &self.inner.key)
            .field("reconcile_id", &self.inner.id)
            .field("freshness", &self.inner.freshness)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_reconcile_finds_nothing_of_the_one_before_and_what_was_kept_of_that_stays_as_it_was() {
        let Inner { shared, signals, .. } = &*Context::detached(no_client(&"maps".into())).inner;
        let (first, second) = ("shop/web".parse().unwrap(), "shop/cart".parse().unwrap());
        let context = Context::new(Room::new(shared, signals), &first, 1, Freshness::Fresh);
        context.cancel();
        let room = context.end().expect("nobody kept it");
        let waited = Freshness::Waited(Duration::from_secs(1));
        let context = Context::new(room, &second, 2, waited);
        assert!(!context.cancellation().is_cancelled(), "that was the first");
        assert_eq!((context.reconcile_id(), context.freshness()), (2, waited));
        assert_eq!(context.inner.key, Some(second.clone()));

        let kept = context.clone();
        assert!(context.end().is_none(), "somebody needs it");
        assert_eq!((kept.reconcile_id(), &kept.inner.key), (2, &Some(second)));
    }

    #[test]
    fn a_stop_is_known_in_the_moment_it_is_asked_for() {
        let asked = CancellationToken::new();
        let signals = Signals::new(asked.child_token());
        let watched = signals.watch_stop();
        assert!(!signals.is_stopping());
        asked.cancel();
        assert!(signals.is_stopping(), "nobody had to be polled for it");
        drop(watched);

        let signals = Signals::new(asked.child_token());
        let _watched = signals.watch_stop();
        assert!(signals.is_stopping(), "it was asked for before");
    }

    #[tokio::test]
    async fn a_task_that_is_to_yield_does_not_stop_anybody() {
        // Whatever else waits would wake it, to be polled again later.
        while tokio::task::coop::has_budget_remaining() {
            tokio::task::coop::consume_budget().now_or_never();
        }
        let asked = CancellationToken::new();
        let signals = Signals::new(asked.child_token());
        let _watched = signals.watch_stop();
        assert!(!signals.stop_sign.0.load(Ordering::Relaxed));
        asked.cancel();
        assert!(signals.is_stopping());
    }
}
