//! A reflector with a scripted server at one end and a recording sink at the other.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_core::{Status, params::VersionMatch, response::StatusDetails};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::{Instant, timeout},
};
use watchkeeper_client::{
    decode::Identity,
    list_watch::{
        ListRequest, ListScript, ListStream, ListerWatcher, Opening, ScriptedSource, WatchRequest,
        WatchScript, WatchStream,
    },
};
use watchkeeper_informer::{
    reflector::{
        DeltaSink, ReceivedObject, Reflector, ReflectorOptions, SinkClosed, WatchDelta, WatchFailure,
    },
    status::Monitor,
};

pub(crate) type List = ListScript<ConfigMap>;
pub(crate) type Watch = WatchScript<ConfigMap>;

/// Longer than anything here takes, so that a wait for what never happens fails and does not hang.
const A_DAY: Duration = Duration::from_hours(24);

pub(crate) fn map(name: &str, version: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        uid: Some(format!("uid of {name}")),
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

pub(crate) fn identity(name: &str, version: &str) -> Identity {
    Identity::new("", name, &format!("uid of {name}"), version)
}

pub(crate) fn status(code: u16, reason: &str) -> Status {
    Status::failure("scripted", reason).with_code(code)
}

pub(crate) fn expired() -> Status {
    status(410, "Expired")
}

pub(crate) fn too_many(retry_after_seconds: u32) -> Status {
    let details = Some(StatusDetails { retry_after_seconds, ..details() });
    Status { details, ..status(429, "TooManyRequests") }
}

pub(crate) fn details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

pub(crate) fn too_large() -> Status {
    Status::failure("Too large resource version: 20, current: 10", "Timeout").with_code(504)
}

pub(crate) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Options for one thing at a time: neither streams nor probes.
pub(crate) fn plain() -> ReflectorOptions {
    let mut options = ReflectorOptions::default();
    options.seed = Some(7);
    options.streaming.is_enabled = false;
    options.history_check.on_reconnect = false;
    options.history_check.every = None;
    options
}

/// Returns the options of [`plain`] with streaming lists.
pub(crate) fn streaming() -> ReflectorOptions {
    let mut options = plain();
    options.streaming.is_enabled = true;
    options
}

#[expect(clippy::disallowed_methods, reason = "the only read of the tests' clock, which is paused")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A list that grows, and that can be waited on.
#[derive(Debug)]
pub(crate) struct Log<T> {
    entries: Arc<Mutex<Vec<T>>>,
    grown: Arc<Notify>,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self { entries: Arc::default(), grown: Arc::default() }
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self { entries: Arc::clone(&self.entries), grown: Arc::clone(&self.grown) }
    }
}

impl<T: Clone> Log<T> {
    pub(crate) fn push(&self, entry: T) {
        self.entries.lock().push(entry);
        self.grown.notify_waiters();
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.entries.lock().clone()
    }

    /// The first `n`, as soon as there are so many.
    pub(crate) async fn first(&self, n: usize) -> Vec<T> {
        let enough = async {
            loop {
                let grown = self.grown.notified();
                if self.entries.lock().len() >= n {
                    return;
                }
                grown.await;
            }
        };
        assert!(timeout(A_DAY, enough).await.is_ok(), "{n} of them never came");
        self.entries.lock()[..n].to_vec()
    }
}

/// A request to the server, as text, and its time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentRequest {
    pub(crate) at: Duration,
    pub(crate) what: String,
    pub(crate) timeout: Option<Duration>,
}

/// A scripted source that records its requests with their times.
#[derive(Clone)]
struct Clocked {
    source: ScriptedSource<ConfigMap>,
    since: Instant,
    sent: Log<SentRequest>,
}

impl Clocked {
    fn note(&self, what: String, timeout: Option<Duration>) {
        self.sent.push(SentRequest { at: now() - self.since, what, timeout });
    }
}

fn in_short_list(request: &ListRequest) -> String {
    if let (Some(object), version) = (&request.object, &request.resource_version) {
        let at = version.as_ref().map_or_else(|| "now".to_owned(), |version| format!("at {version}"));
        assert_eq!(request.version_match, version.as_ref().map(|_| VersionMatch::Exact));
        return format!("check {} {at}", object.name);
    }
    let from = match (&request.continue_token, &request.resource_version) {
        (Some(token), None) => format!("continue={token}"),
        (None, Some(version)) if request.version_match == Some(VersionMatch::Exact) => format!("={version}"),
        (None, Some(version)) => version.clone(),
        (None, None) => "newest".to_owned(),
        (Some(_), Some(_)) => panic!("a continue token and a version exclude each other"),
    };
    match request.limit {
        Some(limit) => format!("list {from} limit={limit}"),
        None => format!("list {from}"),
    }
}

fn in_short_watch(request: &WatchRequest) -> String {
    assert!(request.bookmarks, "bookmarks are always requested");
    match (request.send_initial_events, &request.resource_version) {
        (true, None) => "stream newest".to_owned(),
        (true, Some(version)) => format!("stream >={version}"),
        (false, version) => format!("watch {}", version.as_deref().unwrap_or("anywhere")),
    }
}

impl ListerWatcher<ConfigMap> for Clocked {
    fn list(&self, request: ListRequest) -> Opening<ListStream<ConfigMap>> {
        self.note(in_short_list(&request), None);
        self.source.list(request)
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<ConfigMap>> {
        self.note(in_short_watch(&request), request.timeout);
        self.source.watch(request)
    }
}

/// A change that the sink received, as text and as the value.
#[derive(Clone)]
struct Recording(Log<String>, Log<Arc<WatchDelta<ConfigMap>>>);

impl DeltaSink<ConfigMap> for Recording {
    async fn push(&mut self, change: WatchDelta<ConfigMap>) -> Result<(), SinkClosed> {
        let in_short = in_short(&change);
        self.1.push(Arc::new(change));
        self.0.push(in_short);
        Ok(())
    }
}

fn in_short(change: &WatchDelta<ConfigMap>) -> String {
    let at =
        |identity: &Identity| format!("{}@{}", identity.key(), identity.resource_version().unwrap_or("none"));
    let object = |object: &ReceivedObject<ConfigMap>| at(&object.identity);
    match change {
        WatchDelta::Added(added) => format!("add {}", object(added)),
        WatchDelta::Updated(updated) => format!("update {}", object(updated)),
        WatchDelta::Deleted { identity, object: Some(_) } => format!("delete {}", at(identity)),
        WatchDelta::Deleted { identity, object: None } => {
            format!("delete {} (last state unknown)", at(identity))
        }
        WatchDelta::Replaced(with) => {
            let objects: Vec<_> = with.objects.iter().map(object).collect();
            let kept: Vec<_> = with.kept.iter().map(at).collect();
            let keep = if kept.is_empty() { String::new() } else { format!(" keep {}", kept.join(" ")) };
            let epoch = if with.is_new_epoch { " (new epoch)" } else { "" };
            format!("replace {}: {}{keep}{epoch}", with.resource_version, objects.join(" "))
        }
        WatchDelta::Bookmark { resource_version } => format!("bookmark {resource_version}"),
        WatchDelta::Resync => "resync".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// A reflector that runs.
pub(crate) struct Rig {
    pub(crate) source: ScriptedSource<ConfigMap>,
    pub(crate) monitor: Monitor,
    pub(crate) sent: Log<SentRequest>,
    pub(crate) received: Log<String>,
    pub(crate) changes: Log<Arc<WatchDelta<ConfigMap>>>,
    pub(crate) failures: Log<WatchFailure>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinSet<()>,
}

impl Rig {
    pub(crate) fn start(options: ReflectorOptions) -> Self {
        Self::start_with(options, |_| {}, |reflector| reflector)
    }

    /// A reflector whose server has scripts before the first request, with further settings.
    pub(crate) fn start_with(
        options: ReflectorOptions,
        script: impl FnOnce(&ScriptedSource<ConfigMap>),
        set_up: impl FnOnce(Reflector<ConfigMap>) -> Reflector<ConfigMap>,
    ) -> Self {
        let source = ScriptedSource::new();
        script(&source);
        let sent = Log::default();
        let clocked = Clocked { source: source.clone(), since: now(), sent: sent.clone() };
        let (failures, received, changes) = (Log::default(), Log::default(), Log::default());
        let noted = failures.clone();
        let reflector = Reflector::new("test", Arc::new(clocked))
            .options(options)
            .on_watch_error(move |failure| noted.push(failure.clone()));
        let reflector = set_up(reflector);
        let monitor = reflector.monitor();
        let sink = Recording(received.clone(), changes.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let mut running = JoinSet::new();
        running.spawn(reflector.run(sink, async move { drop(stopped.await) }));
        Self { source, monitor, sent, received, changes, failures, stop: Some(stop), running }
    }

    /// The first `n` requests, in short.
    pub(crate) async fn requests(&self, n: usize) -> Vec<String> {
        self.sent.first(n).await.into_iter().map(|sent| sent.what).collect()
    }

    /// The first `n` changes, in short.
    pub(crate) async fn deliveries(&self, n: usize) -> Vec<String> {
        self.received.first(n).await
    }

    /// How long it took from request `n` to the next, counting from 0.
    pub(crate) async fn delay_after(&self, n: usize) -> Duration {
        let sent = self.sent.first(n + 2).await;
        sent[n + 1].at.saturating_sub(sent[n].at)
    }

    /// Lets `duration` pass.
    pub(crate) async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        // And what falls due at its end happen.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// Stops the reflector and waits for its end.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        assert!(timeout(A_DAY, self.running.join_next()).await.is_ok(), "it does not stop");
    }
}
