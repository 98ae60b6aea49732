//! An informer with a scripted server at one end and recording handlers at the other.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_core::Status;
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use watchkeeper_client::list_watch::{ListScript, ListerWatcher, ScriptedSource, WatchHandle, WatchScript};
use watchkeeper_informer::{
    CacheReader, Cached, Object, ResourceVersion, SharedIndexInformer,
    controller::Config,
    event::Event,
    handler::{HandlerOptions, Registration},
};

pub(crate) type List = ListScript<ConfigMap>;
pub(crate) type Watch = WatchScript<ConfigMap>;
pub(crate) type Source = ScriptedSource<ConfigMap>;
pub(crate) type Informer = SharedIndexInformer<ConfigMap>;

/// Longer than anything here takes, so that a wait for what never happens fails and does not hang.
const A_DAY: Duration = Duration::from_hours(24);

/// `NAMESPACE/NAME` (or `NAME`) at a version, its uid made of the name.
pub(crate) fn map(key: &str, version: u64) -> ConfigMap {
    incarnation(key, "1", version)
}

/// Returns an object like [`map`], with another `uid`.
pub(crate) fn incarnation(key: &str, uid: &str, version: u64) -> ConfigMap {
    let (namespace, name) = match key.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, key),
    };
    let metadata = ObjectMeta {
        namespace,
        name: Some(name.to_owned()),
        uid: Some(format!("{key}-{uid}")),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// Returns `KEY@VERSION` of an object.
pub(crate) fn label(object: &Cached<ConfigMap>) -> String {
    let key = object.key().expect("objects here are named");
    format!("{key}@{}", object.metadata().resource_version().unwrap_or("none"))
}

pub(crate) fn status(code: u16, reason: &str) -> Status {
    Status::failure("scripted", reason).with_code(code)
}

/// A configuration for one thing at a time: neither streams nor probes.
pub(crate) fn plain(source: &Source) -> Config<ConfigMap> {
    plain_of(source.clone())
}

/// Returns a configuration like [`plain`], for another source.
pub(crate) fn plain_of<K: Object>(source: impl ListerWatcher<K>) -> Config<K> {
    Config::new("config maps", source).reflector_with(|options| {
        options.seed = Some(7);
        options.streaming.is_enabled = false;
        options.history_check.on_reconnect = false;
        options.history_check.every = None;
    })
}

/// Returns an event as text.
fn in_short(event: &Event<ConfigMap>) -> String {
    let object = label(event.object());
    match event {
        Event::Added { is_initial: true, .. } => format!("initial {object}"),
        Event::Added { .. } => format!("add {object}"),
        Event::Updated { old, .. } => format!("update {} to {object}", label(old)),
        Event::Synced(_) => format!("sync {object}"),
        Event::Deleted(deleted) if deleted.final_state_unknown => format!("lost {object}"),
        Event::Deleted(_) => format!("delete {object}"),
    }
}

/// A handler's memory, with the promises every handler is made checked at each event.
#[derive(Clone)]
pub(crate) struct Deliveries {
    events: Arc<watch::Sender<Vec<String>>>,
    view: Arc<Mutex<BTreeMap<String, Cached<ConfigMap>>>>,
}

impl Deliveries {
    pub(crate) fn new() -> Self {
        Self { events: Arc::new(watch::Sender::new(Vec::new())), view: Arc::default() }
    }

    /// Takes an event in, and checks that it continues the story of its key, and that the cache is not behind
    /// it.
    pub(crate) fn take(&self, event: &Event<ConfigMap>, cache: &CacheReader<ConfigMap>) {
        let key = event.object().key().expect("objects here are named").to_string();
        let version = |object: &Cached<ConfigMap>| {
            let version = object.metadata().resource_version().unwrap_or_default();
            version.parse::<u64>().expect("versions here are numbers")
        };
        {
            let mut view = self.view.lock();
            match (event.last_seen(), view.get(&key)) {
                (None, None) => {}
                (Some(last), Some(known)) => {
                    assert!(last.ptr_eq(known), "{} after {}", in_short(event), label(known));
                }
                (_, known) => panic!("{} after {:?}", in_short(event), known.map(label)),
            }
            if let Event::Deleted(_) = event {
                view.remove(&key);
            } else {
                if let Some(stored) = cache.cached(&key)
                    && stored.metadata().uid() == event.object().metadata().uid()
                {
                    assert!(
                        version(&stored) >= version(event.object()),
                        "the cache is behind {}",
                        in_short(event)
                    );
                }
                view.insert(key, event.object().clone());
            }
        }
        self.events.send_modify(|events| events.push(in_short(event)));
    }

    /// Takes an event in, with nothing checked.
    pub(crate) fn take_unchecked(&self, event: &Event<ConfigMap>) {
        self.events.send_modify(|events| events.push(in_short(event)));
    }

    /// All events delivered so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.events.borrow().clone()
    }

    /// The first `n` events, as soon as there are so many.
    pub(crate) async fn first(&self, n: usize) -> Vec<String> {
        let mut events = self.events.subscribe();
        let enough = timeout(A_DAY, events.wait_for(|events| events.len() >= n)).await;
        let Ok(Ok(events)) = enough else {
            panic!("{n} events never came, only {:?}", self.all());
        };
        events[..n].to_vec()
    }

    /// Returns the objects according to the events, as labels in the order of keys.
    pub(crate) fn view(&self) -> Vec<String> {
        self.view.lock().values().map(label).collect()
    }
}

/// Adds a handler that remembers.
pub(crate) fn listen(informer: &Informer, options: HandlerOptions) -> (Deliveries, Registration<ConfigMap>) {
    let delivered = Deliveries::new();
    let (received, cache) = (delivered.clone(), informer.reader());
    let handler = move |event: &Event<ConfigMap>| received.take(event, &cache);
    let registration = informer.add_handler_with(handler, options).expect("the informer is running");
    (delivered, registration)
}

pub(crate) fn options() -> HandlerOptions {
    HandlerOptions::new("recorder")
}

/// The labels of what a cache holds, in the order of keys.
pub(crate) fn held(informer: &Informer) -> Vec<String> {
    let cache = informer.snapshot();
    cache.keys().iter().map(|key| label(cache.cached(key).expect("of one moment"))).collect()
}

/// An informer that has synced a list of these, with its watch in hand.
pub(crate) async fn synced(
    objects: impl IntoIterator<Item = ConfigMap>,
    version: u64,
) -> (Informer, Source, WatchHandle<ConfigMap>) {
    synced_with(objects, version, |config| config).await
}

pub(crate) async fn synced_with(
    objects: impl IntoIterator<Item = ConfigMap>,
    version: u64,
    configure: impl FnOnce(Config<ConfigMap>) -> Config<ConfigMap>,
) -> (Informer, Source, WatchHandle<ConfigMap>) {
    let source = Source::new();
    source.on_list(objects.into_iter().fold(List::at(version.to_string()), List::item));
    let server = source.open_watch(Watch::new());
    let informer = SharedIndexInformer::new(configure(plain(&source)));
    informer.start();
    within(informer.wait_for_sync(None)).await.expect("a list that is there is synced");
    (informer, source, server)
}

/// Returns the output of a future, and fails after a time limit.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(A_DAY, future).await.expect("it never comes to an end")
}

pub(crate) fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(&number.to_string()).expect("a number is a version")
}

/// Waits until the cache contains everything up to a version.
pub(crate) async fn reached(informer: &Informer, number: u64) {
    within(informer.wait_until(&version(number))).await.expect("the version is reached");
}

/// Runs other tasks until a condition holds, and fails after a time limit.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never comes to be so");
}

/// Waits again and again for what is refused at first, a second apart.
pub(crate) async fn at_last<E, F: Future<Output = Result<(), E>>>(wait: impl Fn() -> F) {
    for _ in 0..1_000 {
        if within(wait()).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("it is refused for ever");
}
