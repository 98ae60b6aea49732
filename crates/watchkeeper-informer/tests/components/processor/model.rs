//! Random histories with handlers that pass, stall, come and go at random. Each handler must receive events
//! that match the history, and end with the contents of the cache.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use watchkeeper_informer::{
    Cached,
    delta_fifo::DeltaKind::{self, Added, Replaced, Sync, Updated},
    event::Event,
    handler::HandlerOptions,
};

use super::{DELETED, Informer, Listener, describe, fifo_fixture::incarnation, settle};

const GONE: DeltaKind = DeltaKind::Deleted { final_state_unknown: true };

#[derive(Debug, Clone)]
enum Step {
    /// Changes of some keys, published together.
    Apply(Vec<(u8, Change)>),
    MarkSynced,
    Resync,
    Add {
        max_lag: u64,
        every_event: bool,
        unchanged: bool,
    },
    Remove(usize),
    /// A handler returns from so many events.
    Pass(usize, usize),
    Settle,
    Wait(u64),
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Update,
    Recreate,
    Delete,
    Vanish,
    Relist,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = prop_oneof![
        8 => Just(Change::Update),
        2 => Just(Change::Recreate),
        4 => Just(Change::Delete),
        1 => Just(Change::Vanish),
        2 => Just(Change::Relist),
    ];
    let changes = prop::collection::vec((0..5_u8, change), 1..4);
    let add = (prop_oneof![Just(0_u64), 1..6_u64, Just(1_000)], prop::bool::weighted(0.2), any::<bool>())
        .prop_map(|(max_lag, every_event, unchanged)| Step::Add { max_lag, every_event, unchanged });
    let step = prop_oneof![
        12 => changes.prop_map(Step::Apply),
        1 => Just(Step::MarkSynced),
        1 => Just(Step::Resync),
        2 => add,
        1 => any::<usize>().prop_map(Step::Remove),
        8 => (any::<usize>(), 1..6_usize).prop_map(|(which, events)| Step::Pass(which, events)),
        6 => Just(Step::Settle),
        1 => (1..5_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..80)
}

/// A handler and the events that it should have received.
struct Watched {
    listener: Listener,
    options: HandlerOptions,
    /// All events, if none is coalesced.
    expected: Vec<String>,
    is_removed: bool,
    /// The number of events to receive before the handler may be synced, once the informer is.
    due_for_sync: Option<usize>,
    /// The contents of the cache according to the events.
    view: BTreeMap<String, Cached<ConfigMap>>,
    received: Vec<Event<ConfigMap>>,
}

impl Watched {
    /// Checks the events since the last call against the history.
    fn check(
        &mut self,
        history: &[Event<ConfigMap>],
        snapshots: &[Cached<ConfigMap>],
    ) -> Result<(), TestCaseError> {
        let new = std::mem::take(&mut *self.listener.received.lock());
        for event in &new {
            let key = event.object().metadata().name().to_owned();
            let context = format!("{} after {:?}", describe(event), self.view.get(&key).map(super::label));
            let known = self.view.get(&key);
            // The story: an object is new exactly when nothing is known of it, and what it was is what it was
            // delivered last.
            match (event.last_seen(), known) {
                (None, None) => {}
                (Some(last), Some(known)) => {
                    prop_assert!(last.ptr_eq(known), "broken chain: {context}");
                }
                _ => prop_assert!(false, "not a story: {context}"),
            }
            // Nothing is invented.
            let is_published = history.iter().any(|published| published.object().ptr_eq(event.object()));
            let is_initial = snapshots.iter().any(|object| object.ptr_eq(event.object()));
            prop_assert!(is_published || (is_initial && event.is_initial()), "invented: {context}");
            if let (Event::Updated { old, new }, Some(_)) = (event, known) {
                prop_assert_eq!(old.metadata().uid(), new.metadata().uid(), "another object: {}", context);
                prop_assert!(version(old) < version(new), "back in time: {context}");
            }
            if let Event::Deleted(deleted) = event {
                let is_true = |published: &Event<ConfigMap>| match published {
                    Event::Deleted(it) => {
                        it.object.ptr_eq(&deleted.object)
                            && it.final_state_unknown == deleted.final_state_unknown
                    }
                    _ => false,
                };
                prop_assert!(history.iter().any(is_true), "a deletion that was not observed: {context}");
                self.view.remove(&key);
            } else {
                self.view.insert(key, event.object().clone());
            }
        }
        self.received.extend(new);
        let status = self.listener.registration.status();
        if let Some(status) = status.filter(|status| status.has_synced) {
            let due = self.due_for_sync.ok_or_else(|| TestCaseError::fail("in sync before the informer"))?;
            let delivered = status.delivered + status.events_coalesced;
            prop_assert!(delivered >= due as u64, "in sync after {delivered} of {due} initial events");
        }
        Ok(())
    }
}

fn version(object: &Cached<ConfigMap>) -> u64 {
    object.metadata().resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

struct World {
    informer: Informer,
    /// The objects on the server, which are ahead of the cache.
    server: BTreeMap<String, Cached<ConfigMap>>,
    history: Vec<Event<ConfigMap>>,
    snapshots: Vec<Cached<ConfigMap>>,
    watched: Vec<Watched>,
    version: u64,
    is_synced: bool,
}

impl World {
    fn new() -> Self {
        let mut informer = Informer::new(Duration::from_secs(1));
        informer.start();
        Self {
            informer,
            server: BTreeMap::new(),
            history: Vec::new(),
            snapshots: Vec::new(),
            watched: Vec::new(),
            version: 0,
            is_synced: false,
        }
    }

    async fn run(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Apply(changes) => {
                let mut deltas = Vec::new();
                for (key, change) in changes {
                    deltas.push(self.delta(key, change));
                }
                let events = self.informer.apply(deltas);
                self.note(events, false);
            }
            Step::MarkSynced => {
                self.informer.processor.lock().mark_synced();
                if !std::mem::replace(&mut self.is_synced, true) {
                    for watched in &mut self.watched {
                        watched.due_for_sync = Some(watched.expected.len());
                    }
                }
            }
            Step::Resync => {
                if self.informer.processor.mark_due() {
                    let cached: Vec<_> = self.informer.cache.values().cloned().collect();
                    let events = self.informer.apply(cached.into_iter().map(|object| (Sync, object)));
                    // Who was due is the other tests' concern; here a resync only must not break a story.
                    self.note(events, true);
                }
            }
            Step::Add { max_lag, every_event, unchanged } => {
                let mut options =
                    HandlerOptions::new("handler").max_lag_events(max_lag).resync_period(Duration::ZERO);
                options.every_event = every_event;
                options.unchanged = unchanged;
                options.max_lag_age = Duration::from_secs(3);
                let listener = self.informer.add(options.clone());
                listener.block();
                self.snapshots.extend(self.informer.cache.values().cloned());
                let expected: Vec<String> = self
                    .informer
                    .cache
                    .values()
                    .map(|object| format!("added! {}", super::label(object)))
                    .collect();
                let due_for_sync = self.is_synced.then_some(expected.len());
                let (received, view) = (Vec::new(), BTreeMap::new());
                self.watched.push(Watched {
                    listener,
                    options,
                    expected,
                    is_removed: false,
                    due_for_sync,
                    view,
                    received,
                });
            }
            Step::Remove(which) => {
                if let Some(watched) = pick(&mut self.watched, which) {
                    watched.listener.registration.stop();
                    watched.is_removed = true;
                }
            }
            Step::Pass(which, events) => {
                if let Some(watched) = pick(&mut self.watched, which) {
                    watched.listener.pass(events);
                }
            }
            Step::Settle => settle().await,
            Step::Wait(seconds) => tokio::time::advance(Duration::from_secs(seconds)).await,
        }
        for watched in &mut self.watched {
            watched.check(&self.history, &self.snapshots)?;
        }
        Ok(())
    }

    fn delta(&mut self, key: u8, change: Change) -> (DeltaKind, Cached<ConfigMap>) {
        self.version += 1;
        let name = format!("key-{key}");
        let uid = |object: &Cached<ConfigMap>| {
            let uid = object.metadata().uid().unwrap_or_default();
            uid.rsplit('-').next().unwrap_or_default().to_owned()
        };
        let there = self.server.get(&name);
        let same = there.map_or_else(|| self.version.to_string(), uid);
        let (kind, object) = match (change, there) {
            (Change::Relist, Some(there)) => (Replaced, incarnation(&name, &same, version(there))),
            (Change::Vanish, Some(there)) => (GONE, there.clone()),
            (Change::Recreate, _) => (Updated, incarnation(&name, &self.version.to_string(), self.version)),
            (Change::Delete | Change::Vanish, _) => (DELETED, incarnation(&name, &same, self.version)),
            (Change::Update, Some(_)) => (Updated, incarnation(&name, &same, self.version)),
            (Change::Update | Change::Relist, None) => (Added, incarnation(&name, &same, self.version)),
        };
        match kind {
            DeltaKind::Deleted { .. } => self.server.remove(&name),
            _ => self.server.insert(name, object.clone()),
        };
        (kind, object)
    }

    fn note(&mut self, events: Vec<Event<ConfigMap>>, is_resync: bool) {
        for event in events {
            for watched in self.watched.iter_mut().filter(|watched| !watched.is_removed) {
                let is_for_it =
                    !matches!(event, Event::Synced(_)) || (watched.options.unchanged && !is_resync);
                if is_for_it {
                    watched.expected.push(describe(&event));
                }
            }
            self.history.push(event);
        }
    }

    /// Lets everybody finish, and compares what they know with the cache.
    async fn finish(mut self) -> Result<(), TestCaseError> {
        for watched in &self.watched {
            watched.listener.unblock();
        }
        self.run(Step::Settle).await?;
        for watched in self.watched.iter().filter(|watched| !watched.is_removed) {
            let status = watched.listener.status();
            prop_assert!(status.pending == 0 && !status.is_coalescing);
            prop_assert_eq!(status.has_synced, self.is_synced);
            prop_assert_eq!(watched.view.len(), self.informer.cache.len());
            for (key, object) in &self.informer.cache {
                prop_assert!(watched.view.get(key).is_some_and(|known| known.ptr_eq(object)), "{}", key);
            }
            prop_assert_eq!(status.delivered + status.events_coalesced, watched.expected.len() as u64);
            if watched.options.every_event {
                prop_assert_eq!(status.times_coalesced, 0);
            }
            if status.times_coalesced == 0 {
                let received: Vec<String> = watched.received.iter().map(describe).collect();
                prop_assert_eq!(&received, &watched.expected);
            }
        }
        self.informer.stop().await;
        Ok(())
    }
}

fn pick(watched: &mut [Watched], which: usize) -> Option<&mut Watched> {
    let len = watched.len();
    watched.get_mut(which.checked_rem(len)?)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn each_handler_receives_a_consistent_sequence_of_the_published_events(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let mut world = World::new();
            for step in steps {
                world.run(step).await?;
            }
            world.finish().await
        })?;
    }
}
