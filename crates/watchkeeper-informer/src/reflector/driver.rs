//! The async driver of the state machine: sends requests, reads responses, waits, and passes changes to the
//! sink.

use std::{fmt, sync::Arc, time::Duration};

use fastrand::Rng;
use tokio::{sync::OwnedSemaphorePermit, task::coop::consume_budget};
use tracing::{debug, info, warn};
use watchkeeper_client::list_watch::{ListPart, ListRequest, ListerWatcher, ReceivedItem, WatchEvent};
use watchkeeper_time::Clock as _;

use super::{
    DeltaSink, ReflectorOptions, RelistLimiter, SinkClosed, TransformError, VersionLookup, WatchDelta,
    WatchFailure,
    connection::{OpenResponse, PendingCheck, Received, checked, next, read_check},
    failure::WatchErrorHook,
    intake::{Incoming, Intake, Keep, Transform},
    machine::{DriverAction, EventKind, Input, Machine, ReflectorEvent, StepOutput},
    outage::OutageLog,
};
use crate::status::{Monitor, Reporter};

/// A reflector: it lists and watches a collection, and passes every change to a [`DeltaSink`].
///
/// # Guarantees
///
/// 1. **A complete history.** The first change is a [`WatchDelta::Replaced`] with the whole collection. Later
///    changes arrive in the order of the server's history and without a gap: after a lost connection the
///    watch is resumed from the last change, or the collection is relisted as another `Replaced`.
/// 2. **Never back in time.** Within one run, no older state follows a newer one, whichever API server
///    replica responds. If the server's history was replaced (its storage was restored from a backup), the
///    reflector detects this before it resumes a watch, relists from scratch and reports a new epoch:
///    [`Replacement::is_new_epoch`](super::Replacement::is_new_epoch). [`HistoryCheck`](super::HistoryCheck)
///    describes the evidence; without evidence the collection is relisted.
/// 3. **No silent loss.** A received object is passed to the sink, or is quarantined and reported
///    ([`Monitor::quarantined`]), or ends the list or watch with a counted error and is requested again.
/// 4. **Low load on the server, fast recovery.** A broken watch is resumed, not relisted. Failures are
///    followed by growing, jittered delays, with a backoff for each class of failure
///    ([`BackoffOptions`](super::BackoffOptions)) that respects `Retry-After`. Listed objects that a
///    [`VersionLookup`] returns are not decoded again. The size of a list is not limited.
/// 5. **Observable.** [`Monitor`] returns the status at any time, and its waits can fail.
///
/// A reflector does not report every state of an object: an object that changes twice while the connection is
/// lost may be reported once. It reports that the sink accepted a change, not that the change was processed.
///
/// A reflector runs in the task that polls [`Reflector::run`], and spawns no task.
///
/// ```
/// use std::{future::pending, sync::Arc};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use tokio::sync::mpsc;
/// use watchkeeper_client::list_watch::{ListScript, ScriptedSource, WatchScript};
/// use watchkeeper_informer::reflector::{WatchDelta, Reflector, ReflectorOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let source = ScriptedSource::<ConfigMap>::new(); // in a program: a ListWatch
/// let _server = source.open_watch(WatchScript::new().initial_events_end("7"));
///
/// let reflector = Reflector::new("config maps", Arc::new(source.clone()));
/// let monitor = reflector.monitor();
/// let (sink, mut changes) = mpsc::channel(64);
/// tokio::select! {
///     () = reflector.run(sink, pending()) => unreachable!("not stopped"),
///     first = changes.recv() => assert!(matches!(first, Some(WatchDelta::Replaced(_)))),
/// }
/// assert_eq!(monitor.last_sync_resource_version().as_deref(), Some("7"));
/// # }
/// ```
#[must_use = "a reflector does nothing until it is run"]
#[doc(alias = "NewReflector")]
#[doc(alias = "RetryWatcher")]
#[doc(alias = "watcher")]
#[doc(alias = "watchHandler")]
#[doc(alias = "NewNamedReflector")]
#[doc(alias = "syncWith")]
pub struct Reflector<K> {
    name: Arc<str>,
    source: Arc<dyn ListerWatcher<K>>,
    options: ReflectorOptions,
    intake: Intake<K>,
    limiter: Option<RelistLimiter>,
    hook: Option<WatchErrorHook>,
    reporter: Reporter,
}

impl<K: Send + Sync + 'static> Reflector<K> {
    /// Creates a reflector of `source`. `name` is used in logs.
    pub fn new(name: impl Into<Arc<str>>, source: Arc<dyn ListerWatcher<K>>) -> Self {
        Self {
            name: name.into(),
            source,
            options: ReflectorOptions::default(),
            intake: Intake::default(),
            limiter: None,
            hook: None,
            reporter: Reporter::new(),
        }
    }

    /// Sets the options. Defaults to [`ReflectorOptions::default`].
    pub fn options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets a lookup of cached objects, which need not be decoded again.
    pub fn reuse(mut self, lookup: impl VersionLookup<K>) -> Self {
        self.intake.set_lookup(lookup);
        self
    }

    /// Sets a function that transforms each object once, when it is received. An object for which the
    /// function fails or panics is quarantined like one that cannot be decoded.
    pub fn transform(self, transform: impl Fn(K) -> Result<K, TransformError> + Send + Sync + 'static) -> Self
    where
        K: Clone,
    {
        // A newly decoded object has one owner, so nothing is cloned.
        self.transform_shared(Arc::new(move |object| transform(Arc::unwrap_or_clone(object)).map(Arc::new)))
    }

    pub(crate) fn transform_shared(mut self, transform: Transform<K>) -> Self {
        self.intake.set_transform(transform);
        self
    }

    /// Sets the form in which objects are passed on. Replaces the transform.
    pub(crate) fn keep(mut self, keep: Arc<dyn Keep<K>>) -> Self {
        self.intake.set_keep(keep);
        self
    }

    /// Limits concurrent lists together with the other reflectors that share `limiter`.
    pub fn limiter(mut self, limiter: RelistLimiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Sets a function that is called with each failure, before the retry. No lock is held, and the reflector
    /// waits for the function.
    pub fn on_watch_error(mut self, hook: impl Fn(&WatchFailure) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Returns a monitor, which can be used before, during and after the run.
    pub fn monitor(&self) -> Monitor {
        self.reporter.monitor()
    }

    /// Lists and watches until `stop` completes or the sink is closed. Both end the reflector immediately, as
    /// does dropping the future.
    #[doc(alias = "ListAndWatch")]
    pub async fn run<S: DeltaSink<K>>(self, sink: S, stop: impl Future<Output = ()> + Send) {
        let name = Arc::clone(&self.name);
        let run = Run::new(self, sink).until_closed();
        tokio::select! {
            biased;
            () = stop => debug!(reflector = &*name, "reflector stopped"),
            SinkClosed = run => debug!(reflector = &*name, "reflector stopped: sink closed"),
        }
    }
}

impl<K> fmt::Debug for Reflector<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A running reflector.
struct Run<K, S> {
    name: Arc<str>,
    source: Arc<dyn ListerWatcher<K>>,
    intake: Intake<K>,
    limiter: Option<RelistLimiter>,
    hook: Option<WatchErrorHook>,
    reporter: Reporter,
    machine: Machine<K>,
    resync: ResyncTimer,
    outage: OutageLog,
    sink: S,
    connection: OpenResponse<K>,
    check: Option<PendingCheck>,
    /// Held while a list is being read.
    permit: Option<OwnedSemaphorePermit>,
}

/// The resync schedule.
struct ResyncTimer {
    period: Option<Duration>,
    /// The time of the next resync, or `None` before the first list.
    due: Option<Duration>,
}

impl<K: Send + Sync + 'static, S: DeltaSink<K>> Run<K, S> {
    fn new(reflector: Reflector<K>, sink: S) -> Self {
        let Reflector { name, source, options, intake, limiter, hook, reporter } = reflector;
        let random = options.seed.map_or_else(Rng::new, Rng::with_seed);
        let period = options.resync_period.filter(|period| !period.is_zero());
        let resync = ResyncTimer { period, due: None };
        let machine = Machine::new(options, random);
        Self {
            name,
            source,
            intake,
            limiter,
            hook,
            reporter,
            machine,
            resync,
            outage: OutageLog::default(),
            sink,
            connection: OpenResponse::None,
            check: None,
            permit: None,
        }
    }

    async fn until_closed(mut self) -> SinkClosed {
        let mut input = Input::Started;
        loop {
            input = match self.step(input).await {
                Ok(input) => input,
                Err(closed) => return closed,
            };
        }
    }

    /// Makes one step of the machine, executes its action, and returns the next input.
    async fn step(&mut self, input: Input<K>) -> Result<Input<K>, SinkClosed> {
        // A source and a sink that are always ready must not keep the task from being stopped.
        consume_budget().await;
        let now = self.reporter.clock().now();
        let StepOutput { change, events, check, action } = self.machine.step(now, input);
        if !matches!(action, DriverAction::Read { .. }) {
            self.connection = OpenResponse::None;
            self.check = None;
        }
        if !self.machine.is_listing() {
            self.permit = None;
        }
        if let Some(change) = change {
            self.sink.push(change).await?;
            self.reporter.reached(self.machine.version());
        }
        for event in &events {
            self.record(event);
        }
        if let Some(request) = check {
            self.check = Some(self.open_check(request));
        }
        self.act(action).await
    }

    async fn act(&mut self, action: DriverAction) -> Result<Input<K>, SinkClosed> {
        match action {
            DriverAction::List(request) => {
                self.acquire_permit().await?;
                let opening = self.source.list(request);
                Ok(match self.with_resyncs(opening).await? {
                    Ok(page) => {
                        self.connection = OpenResponse::List(page);
                        Input::Opened
                    }
                    Err(error) => Input::Failed(error.into()),
                })
            }
            DriverAction::Watch(request) => {
                if self.machine.is_listing() {
                    self.acquire_permit().await?;
                }
                let opening = self.source.watch(request);
                Ok(match self.with_resyncs(opening).await? {
                    Ok(watch) => {
                        self.connection = OpenResponse::Watch(watch);
                        Input::Opened
                    }
                    Err(error) => Input::Failed(error.into()),
                })
            }
            DriverAction::Check(request) => {
                let check = self.open_check(request);
                Ok(Input::Checked(self.with_resyncs(check).await?))
            }
            DriverAction::Read { deadline } => {
                let received = self.receive(deadline).await?;
                Ok(self.input_of(received))
            }
            DriverAction::Wait { until } => {
                let timer = self.reporter.clock().timer(until);
                self.with_resyncs(timer).await?;
                Ok(Input::Timer)
            }
        }
    }

    fn open_check(&self, request: ListRequest) -> PendingCheck {
        Box::pin(read_check(self.source.list(request)))
    }

    async fn acquire_permit(&mut self) -> Result<(), SinkClosed> {
        if self.permit.is_none()
            && let Some(limiter) = self.limiter.clone()
        {
            self.permit = self.with_resyncs(async move { limiter.acquire().await }).await?;
        }
        Ok(())
    }

    /// Waits for `future`, and passes a resync to the sink whenever one is due.
    async fn with_resyncs<T>(&mut self, future: impl Future<Output = T>) -> Result<T, SinkClosed> {
        let mut future = std::pin::pin!(future);
        loop {
            self.resync_if_due().await?;
            let Some(due) = self.resync.due else {
                return Ok(future.await);
            };
            tokio::select! {
                biased;
                done = &mut future => return Ok(done),
                () = self.reporter.clock().timer(due) => {}
            }
        }
    }

    async fn receive(&mut self, deadline: Option<Duration>) -> Result<Received<K>, SinkClosed> {
        loop {
            self.resync_if_due().await?;
            let clock = *self.reporter.clock();
            let wake = deadline.into_iter().chain(self.resync.due).min();
            tokio::select! {
                biased;
                found = checked(&mut self.check) => {
                    self.check = None;
                    return Ok(Received::Checked(found));
                }
                // Before the timer: data that has arrived is not silence, even if it was delayed on this
                // side.
                received = next(&mut self.connection) => return Ok(received),
                () = clock.timer(wake.unwrap_or_default()), if wake.is_some() => {
                    if deadline.is_some_and(|deadline| clock.now() >= deadline) {
                        return Ok(Received::Timer);
                    }
                }
            }
        }
    }

    async fn resync_if_due(&mut self) -> Result<(), SinkClosed> {
        if let (Some(due), Some(period)) = (self.resync.due, self.resync.period)
            && self.reporter.clock().now() >= due
        {
            self.sink.push(WatchDelta::Resync).await?;
            self.reporter.counters().resynced();
            self.resync.due = Some(self.reporter.clock().now().saturating_add(period));
        }
        Ok(())
    }

    fn input_of(&self, received: Received<K>) -> Input<K> {
        match received {
            Received::Timer => return Input::Timer,
            Received::Checked(found) => return Input::Checked(found),
            Received::Part(_) | Received::Event(_) => {}
        }
        let counters = self.reporter.counters();
        counters.received(self.reporter.clock().now());
        match received {
            Received::Part(Some(Ok(ListPart::Item(item)))) => {
                counters.listed();
                Input::Item(self.listed(item))
            }
            Received::Part(Some(Ok(ListPart::End(end)))) => Input::PageEnd(end),
            Received::Event(Some(Ok(event))) => {
                counters.event(&event);
                match event {
                    WatchEvent::Added(item) => Input::Event(EventKind::Added, self.received(item)),
                    WatchEvent::Modified(item) => Input::Event(EventKind::Modified, self.received(item)),
                    WatchEvent::Deleted(item) => Input::Event(EventKind::Deleted, self.received(item)),
                    WatchEvent::Bookmark(bookmark) => Input::Bookmark(bookmark),
                }
            }
            Received::Part(Some(Err(error))) | Received::Event(Some(Err(error))) => {
                Input::Failed(error.into())
            }
            Received::Part(None) | Received::Event(None) | Received::Timer | Received::Checked(_) => {
                Input::Ended
            }
        }
    }

    /// Returns the object of an event. The initial events of a streaming list are listed objects.
    fn received(&self, item: ReceivedItem<K>) -> Incoming<K> {
        if self.machine.is_listing() { self.listed(item) } else { self.taken(item) }
    }

    /// Returns a listed object, which may be cached already.
    fn listed(&self, item: ReceivedItem<K>) -> Incoming<K> {
        let identity = item.identity();
        let held = || self.intake.lookup(identity).or_else(|| self.machine.recall(identity));
        match self.machine.may_reuse().then(held).flatten() {
            Some(object) => {
                self.reporter.counters().reused();
                Incoming { identity: identity.clone(), object: Ok(object), content: item.content() }
            }
            None => self.taken(item),
        }
    }

    fn taken(&self, item: ReceivedItem<K>) -> Incoming<K> {
        let incoming = self.intake.take(item);
        if incoming.object.is_err() {
            self.reporter.counters().rejected();
        }
        incoming
    }

    fn record(&mut self, event: &ReflectorEvent) {
        self.reporter.record(event);
        let reflector = &*self.name;
        let now = self.reporter.clock().now();
        if matches!(event, ReflectorEvent::Synced | ReflectorEvent::WatchOpened)
            && let Some(recovery) = self.outage.recovered(now)
        {
            recovery.log(reflector);
        }
        match event {
            ReflectorEvent::Synced => {
                debug!(reflector, version = self.machine.version(), "list complete");
                let period = self.resync.period;
                self.resync.due = self.resync.due.or(period.map(|period| now.saturating_add(period)));
            }
            ReflectorEvent::Failed(failure) => {
                self.outage.failed(now, failure.retry_in).log(reflector, failure);
                if let Some(hook) = &self.hook {
                    hook(failure);
                }
            }
            ReflectorEvent::Quarantined(object) => {
                let (key, version, error) =
                    (&*object.key, object.resource_version.as_deref(), &*object.error);
                warn!(reflector, key, version, error, "object quarantined");
            }
            ReflectorEvent::Released(key) => {
                info!(reflector, key = &**key, "object released from quarantine");
            }
            ReflectorEvent::VersionWentBack { what, found, seen } => {
                warn!(reflector, what, found, seen, "server sent an older version than before; rejected");
            }
            ReflectorEvent::NewEpoch { found, seen } => {
                warn!(reflector, found, seen, "server history was replaced; starting a new epoch");
            }
            ReflectorEvent::StreamingFallback { why } => {
                info!(
                    reflector,
                    why, "streaming list not supported by server; falling back to paginated LIST"
                );
            }
            ReflectorEvent::ListStarted { is_streaming, cause } => {
                debug!(reflector, is_streaming, cause, "list started");
            }
            ReflectorEvent::Listed { .. }
            | ReflectorEvent::WatchRestarted { .. }
            | ReflectorEvent::WatchOpened
            | ReflectorEvent::HistoryChecked => {}
        }
    }
}
