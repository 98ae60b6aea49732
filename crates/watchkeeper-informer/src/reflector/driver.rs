//! The machine's hands: asks, reads, waits and hands on, and decides nothing.

use std::{fmt, future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use fastrand::Rng;
use tokio::{sync::OwnedSemaphorePermit, task::coop::consume_budget, time::sleep_until};
use tracing::{debug, info, warn};
use watchkeeper_client::{
    Error,
    classify::{Failure, Reason},
    error::TransportKind,
    list_watch::{Item, ListPart, ListRequest, ListStream, ListerWatcher, Opening, WatchEvent, WatchStream},
};

use super::{
    Change, DeltaSink, Known, ReflectorOptions, RelistLimiter, SinkClosed, TransformError, WatchFailure,
    intake::{Incoming, Intake, Transform},
    machine::{Action, EventKind, Found, Input, Machine, Notice, Outcome, Trouble},
    outage::OutageLog,
};
use crate::status::{Monitor, Reporter};

/// The most objects that are read as evidence of a server's history; one is asked for.
const MOST_CHECKED: usize = 8;

type Hook = Arc<dyn Fn(&WatchFailure) + Send + Sync>;
type Check = Pin<Box<dyn Future<Output = Result<Found, Trouble>> + Send>>;

/// Follows a collection on a server and hands every change of it to a [`DeltaSink`].
///
/// # What it promises
///
/// 1. **A true story.** The first change is a [`Change::Replaced`] with everything there is. After each, changes come in the
///    order of the server's history, with no gap: what was missed while there was no connection comes by resuming behind
///    the last change handed on, or as another `Replaced`.
/// 2. **Never back in time.** Within one run nothing older is handed on after something newer, whatever replica answers.
///    When the server's history was replaced (its storage was restored from a backup), the reflector notices before it
///    resumes a watch, lists from scratch and declares a new epoch:
///    [`Replacement::is_new_epoch`](super::Replacement::is_new_epoch). [`HistoryCheck`](super::HistoryCheck) describes the
///    evidence; without evidence the collection is listed again.
/// 3. **Nothing is lost in silence.** What was received is handed on, or set aside and reported
///    ([`Monitor::quarantined`]), or ends the list or watch with a counted error, after which it is asked for again.
/// 4. **The server is spared, and a recovery is noticed soon.** A broken watch is resumed, not listed again. Failures are
///    followed by growing, jittered waits, one backoff for each class of failure ([`BackoffOptions`](super::BackoffOptions));
///    `Retry-After` is respected. Listed objects that are [`Known`] are not decoded again. A list may be of any size.
/// 5. **It can be seen.** [`Monitor`] tells at any time how it is going, and its waits can fail.
///
/// It does not promise every state an object went through: what changes twice while there is no connection may be told once.
/// And it does not tell whether the sink's side has processed a change, only that it took it.
///
/// It runs in the task that polls [`Reflector::run`], starts no task of its own, and ends with it.
///
/// ```
/// use std::{future::pending, sync::Arc};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use tokio::sync::mpsc;
/// use watchkeeper_client::list_watch::{ListScript, ScriptedSource, WatchScript};
/// use watchkeeper_informer::reflector::{Change, Reflector, ReflectorOptions};
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
///     () = reflector.run(sink, pending()) => unreachable!("nobody stops it"),
///     first = changes.recv() => assert!(matches!(first, Some(Change::Replaced(_)))),
/// }
/// assert_eq!(monitor.last_sync_resource_version().as_deref(), Some("7"));
/// # }
/// ```
#[must_use = "a reflector does nothing until it is run"]
pub struct Reflector<K> {
    name: Arc<str>,
    source: Arc<dyn ListerWatcher<K>>,
    options: ReflectorOptions,
    intake: Intake<K>,
    limiter: Option<RelistLimiter>,
    hook: Option<Hook>,
    reporter: Reporter,
}

impl<K: Send + Sync + 'static> Reflector<K> {
    /// A reflector of what `source` has; `name` is for logs.
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

    /// Sets what can be chosen.
    pub fn options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self
    }

    /// Looks up here what need not be decoded again.
    pub fn known(mut self, known: impl Known<K>) -> Self {
        self.intake.set_known(known);
        self
    }

    /// Changes each object before it is handed on: once, when it is received. An object it refuses, or panics over, is set
    /// aside like one that cannot be decoded.
    pub fn transform(self, transform: impl Fn(K) -> Result<K, TransformError> + Send + Sync + 'static) -> Self
    where
        K: Clone,
    {
        // An object that was just decoded has one owner, so nothing is cloned.
        self.transform_shared(Arc::new(move |object| transform(Arc::unwrap_or_clone(object)).map(Arc::new)))
    }

    pub(crate) fn transform_shared(mut self, transform: Transform<K>) -> Self {
        self.intake.set_transform(transform);
        self
    }

    /// Takes turns with others in reading lists.
    pub fn limiter(mut self, limiter: RelistLimiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Is called with each failure, before it is waited or tried again. No lock is held, and the reflector does nothing else
    /// meanwhile.
    pub fn on_watch_error(mut self, hook: impl Fn(&WatchFailure) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Tells how it is going, before, during and after the run.
    pub fn monitor(&self) -> Monitor {
        self.reporter.monitor()
    }

    /// Follows the collection until `stop` is done or the sink is closed. Either ends it at once, in the middle of whatever it
    /// is doing or waiting for; so does dropping the future.
    pub async fn run<S: DeltaSink<K>>(self, sink: S, stop: impl Future<Output = ()> + Send) {
        let name = Arc::clone(&self.name);
        let run = Run::new(self, sink).until_closed();
        tokio::select! {
            biased;
            () = stop => debug!(reflector = &*name, "stopped"),
            SinkClosed = run => debug!(reflector = &*name, "stopped: {SinkClosed}"),
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

/// What is being read.
enum Connection<K> {
    None,
    List(ListStream<K>),
    Watch(WatchStream<K>),
}

/// What was heard while reading.
enum Heard<K> {
    Part(Option<Result<ListPart<K>, Error>>),
    Event(Option<Result<WatchEvent<K>, Error>>),
    Checked(Result<Found, Trouble>),
    Timer,
}

/// A reflector that is running.
struct Run<K, S> {
    name: Arc<str>,
    source: Arc<dyn ListerWatcher<K>>,
    intake: Intake<K>,
    limiter: Option<RelistLimiter>,
    hook: Option<Hook>,
    reporter: Reporter,
    machine: Machine<K>,
    resync: Resync,
    outage: OutageLog,
    sink: S,
    connection: Connection<K>,
    check: Option<Check>,
    /// Held while a list is being read.
    turn: Option<OwnedSemaphorePermit>,
}

/// When everything is to be gone over again.
struct Resync {
    period: Option<Duration>,
    /// None before there is anything to go over.
    due: Option<Duration>,
}

impl<K: Send + Sync + 'static, S: DeltaSink<K>> Run<K, S> {
    fn new(reflector: Reflector<K>, sink: S) -> Self {
        let Reflector { name, source, options, intake, limiter, hook, reporter } = reflector;
        let random = options.seed.map_or_else(Rng::new, Rng::with_seed);
        let period = options.resync_period.filter(|period| !period.is_zero());
        let resync = Resync { period, due: None };
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
            connection: Connection::None,
            check: None,
            turn: None,
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

    /// One step of the machine, what it asks for, and what comes of that.
    async fn step(&mut self, input: Input<K>) -> Result<Input<K>, SinkClosed> {
        // A source and a sink that are always ready must not keep the task from being stopped.
        consume_budget().await;
        let now = self.reporter.clock().now();
        let Outcome { change, notices, check, action } = self.machine.step(now, input);
        if !matches!(action, Action::Read { .. }) {
            self.connection = Connection::None;
            self.check = None;
        }
        if !self.machine.is_listing() {
            self.turn = None;
        }
        if let Some(change) = change {
            self.sink.push(change).await?;
            self.reporter.reached(self.machine.version());
        }
        for notice in &notices {
            self.tell(notice);
        }
        if let Some(request) = check {
            self.check = Some(self.open_check(request));
        }
        self.act(action).await
    }

    async fn act(&mut self, action: Action) -> Result<Input<K>, SinkClosed> {
        match action {
            Action::List(request) => {
                self.take_turn().await?;
                let opening = self.source.list(request);
                Ok(match self.meanwhile(opening).await? {
                    Ok(page) => {
                        self.connection = Connection::List(page);
                        Input::Opened
                    }
                    Err(error) => Input::Failed(error.into()),
                })
            }
            Action::Watch(request) => {
                if self.machine.is_listing() {
                    self.take_turn().await?;
                }
                let opening = self.source.watch(request);
                Ok(match self.meanwhile(opening).await? {
                    Ok(watch) => {
                        self.connection = Connection::Watch(watch);
                        Input::Opened
                    }
                    Err(error) => Input::Failed(error.into()),
                })
            }
            Action::Check(request) => {
                let check = self.open_check(request);
                Ok(Input::Checked(self.meanwhile(check).await?))
            }
            Action::Read { deadline } => {
                let heard = self.hear(deadline).await?;
                Ok(self.understand(heard))
            }
            Action::Wait { until } => {
                let until = self.reporter.clock().at(until);
                self.meanwhile(sleep_until(until)).await?;
                Ok(Input::Timer)
            }
        }
    }

    fn open_check(&self, request: ListRequest) -> Check {
        Box::pin(read_check(self.source.list(request)))
    }

    async fn take_turn(&mut self) -> Result<(), SinkClosed> {
        if self.turn.is_none()
            && let Some(limiter) = self.limiter.clone()
        {
            self.turn = self.meanwhile(async move { limiter.turn().await }).await?;
        }
        Ok(())
    }

    /// Waits for `future`, and tells the sink of the resyncs that fall due meanwhile.
    async fn meanwhile<T>(&mut self, future: impl Future<Output = T>) -> Result<T, SinkClosed> {
        let mut future = std::pin::pin!(future);
        loop {
            self.resync_if_due().await?;
            let Some(due) = self.resync.due else {
                return Ok(future.await);
            };
            tokio::select! {
                biased;
                done = &mut future => return Ok(done),
                () = sleep_until(self.reporter.clock().at(due)) => {}
            }
        }
    }

    async fn hear(&mut self, deadline: Option<Duration>) -> Result<Heard<K>, SinkClosed> {
        loop {
            self.resync_if_due().await?;
            let clock = *self.reporter.clock();
            let wake = deadline.into_iter().chain(self.resync.due).min();
            tokio::select! {
                biased;
                found = answer(&mut self.check) => {
                    self.check = None;
                    return Ok(Heard::Checked(found));
                }
                // Before the timer: what is there to be heard is no silence, though it was long on its way through here.
                heard = next(&mut self.connection) => return Ok(heard),
                () = sleep_until(clock.at(wake.unwrap_or_default())), if wake.is_some() => {
                    if deadline.is_some_and(|deadline| clock.now() >= deadline) {
                        return Ok(Heard::Timer);
                    }
                }
            }
        }
    }

    async fn resync_if_due(&mut self) -> Result<(), SinkClosed> {
        if let (Some(due), Some(period)) = (self.resync.due, self.resync.period)
            && self.reporter.clock().now() >= due
        {
            self.sink.push(Change::Resync).await?;
            self.reporter.counters().resynced();
            self.resync.due = Some(self.reporter.clock().now().saturating_add(period));
        }
        Ok(())
    }

    fn understand(&self, heard: Heard<K>) -> Input<K> {
        match heard {
            Heard::Timer => return Input::Timer,
            Heard::Checked(found) => return Input::Checked(found),
            Heard::Part(_) | Heard::Event(_) => {}
        }
        let counters = self.reporter.counters();
        counters.heard(self.reporter.clock().now());
        match heard {
            Heard::Part(Some(Ok(ListPart::Item(item)))) => {
                counters.listed();
                Input::Item(self.listed(item))
            }
            Heard::Part(Some(Ok(ListPart::End(end)))) => Input::PageEnd(end),
            Heard::Event(Some(Ok(event))) => {
                counters.event(&event);
                match event {
                    WatchEvent::Added(item) => Input::Event(EventKind::Added, self.received(item)),
                    WatchEvent::Modified(item) => Input::Event(EventKind::Modified, self.received(item)),
                    WatchEvent::Deleted(item) => Input::Event(EventKind::Deleted, self.received(item)),
                    WatchEvent::Bookmark(bookmark) => Input::Bookmark(bookmark),
                }
            }
            Heard::Part(Some(Err(error))) | Heard::Event(Some(Err(error))) => Input::Failed(error.into()),
            Heard::Part(None) | Heard::Event(None) | Heard::Timer | Heard::Checked(_) => Input::Ended,
        }
    }

    /// An object of an event. Those that begin a stream are a list.
    fn received(&self, item: Item<K>) -> Incoming<K> {
        if self.machine.is_listing() { self.listed(item) } else { self.taken(item) }
    }

    /// An object of a list, which may be held already.
    fn listed(&self, item: Item<K>) -> Incoming<K> {
        let identity = item.identity();
        let held = || self.intake.recognise(identity).or_else(|| self.machine.recall(identity));
        match self.machine.may_reuse().then(held).flatten() {
            Some(object) => {
                self.reporter.counters().reused();
                Incoming { identity: identity.clone(), object: Ok(object), content: item.bytes().cloned() }
            }
            None => self.taken(item),
        }
    }

    fn taken(&self, item: Item<K>) -> Incoming<K> {
        let incoming = self.intake.take(item);
        if incoming.object.is_err() {
            self.reporter.counters().rejected();
        }
        incoming
    }

    fn tell(&mut self, notice: &Notice) {
        self.reporter.tell(notice);
        let reflector = &*self.name;
        let now = self.reporter.clock().now();
        if matches!(notice, Notice::Synced | Notice::WatchOpened)
            && let Some(recovery) = self.outage.recovered(now)
        {
            recovery.log(reflector);
        }
        match notice {
            Notice::Synced => {
                debug!(reflector, version = self.machine.version(), "the list is complete");
                let period = self.resync.period;
                self.resync.due = self.resync.due.or(period.map(|period| now.saturating_add(period)));
            }
            Notice::Failed(failure) => {
                self.outage.failed(now, failure.retry_in).log(reflector, failure);
                if let Some(hook) = &self.hook {
                    hook(failure);
                }
            }
            Notice::Quarantined(object) => warn!(reflector, "set aside: {object}"),
            Notice::Released(key) => info!(reflector, key = &**key, "no longer set aside"),
            Notice::WentBack { what, found, seen } => {
                warn!(reflector, what, found, seen, "the server sent something older than before");
            }
            Notice::NewEpoch { found, seen } => {
                warn!(reflector, found, seen, "the server's versions begin anew");
            }
            Notice::StreamingGivenUp { why } => {
                info!(reflector, why, "the server does not do lists as streams; asking for pages");
            }
            Notice::ListStarted { is_streaming, cause } => {
                debug!(reflector, is_streaming, cause, "a list begins");
            }
            Notice::Listed { .. }
            | Notice::WatchRestarted { .. }
            | Notice::WatchOpened
            | Notice::HistoryChecked => {}
        }
    }
}

/// The next thing of what is being read. Of nothing, there is none.
async fn next<K>(connection: &mut Connection<K>) -> Heard<K> {
    match connection {
        Connection::List(page) => Heard::Part(poll_fn(|cx| page.as_mut().poll_next(cx)).await),
        Connection::Watch(watch) => Heard::Event(poll_fn(|cx| watch.as_mut().poll_next(cx)).await),
        Connection::None => Heard::Event(None),
    }
}

async fn answer(check: &mut Option<Check>) -> Result<Found, Trouble> {
    match check {
        Some(check) => check.await,
        None => std::future::pending().await,
    }
}

/// Reads a list of a few objects. A server that ignores what it was asked for, and sends more, is not read to the end.
async fn read_check<K>(opening: Opening<ListStream<K>>) -> Result<Found, Trouble> {
    let mut page = opening.await?;
    let mut found = Found::default();
    while let Some(part) = poll_fn(|cx| page.as_mut().poll_next(cx)).await {
        match part? {
            ListPart::Item(item) if found.objects.len() < MOST_CHECKED => {
                found.objects.push((item.identity().clone(), item.bytes().cloned()));
            }
            ListPart::Item(item) => {
                let message =
                    format!("a list of one object has more than {MOST_CHECKED}: {:?}", item.identity().key());
                return Err(Trouble::new(Failure::new(Reason::Protocol), message));
            }
            ListPart::End(end) => {
                found.resource_version = end.resource_version;
                found.remaining_item_count = end.remaining_item_count;
                return Ok(found);
            }
        }
    }
    let failure = Failure::new(Reason::Transport(TransportKind::UnexpectedEof));
    Err(Trouble::new(failure, "the list broke off before its end"))
}
