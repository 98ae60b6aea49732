//! The same histories through a whole informer: reflector, queue, cache, indexes and handlers, compared with
//! the server's log.
//!
//! The invariants, by the names they have in the design of the tests:
//!
//! | | |
//! |---|---|
//! | S1 | with an empty queue the cache equals the server's log, replayed to the resourceVersion of the cache, which never decreases |
//! | S2 | every state that a handler receives was written |
//! | S3, S4, S5 | the events of a key: versions increase, the first event is an addition, each `old` is the object received last |
//! | S6 | a deletion that was observed has the version of the deletion; another one has the last known state |
//! | S7 | the cache is never older than the events of a handler |
//! | S8 | every index agrees with its function on the cached objects |
//! | S9 | a handler is synced only when it has received everything, and receives nothing twice |
//! | S11 | in the end no handler misses anything |
//! | S12 | an object that cannot be decoded is quarantined and reported, and no other is |
//! | S13 | no object changes after it was returned |
//!
//! They hold under every memory policy. With the smallest budgets, objects are packed and decoded all the time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time::sleep;
use watchkeeper_client::decode::Identity;
use watchkeeper_informer::{
    CacheReader, Cached, MemoryPolicy, SharedIndexInformer, Snapshot,
    controller::Config,
    event::Event,
    handler::{HandlerOptions, Registration},
    reflector::ReflectorOptions,
};

use super::{
    server::{Shared, World},
    story::{SOON, Step, random_options, run_paused, steps},
};

/// An event of the informer, beside those of its server.
#[derive(Debug, Clone)]
enum Act {
    Server(Step),
    /// A handler that may lag so many events, and takes so long for each.
    AddHandler {
        max_lag: u64,
        millis: u64,
        is_resynced: bool,
    },
    RemoveHandler(usize),
    AddIndex,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let others = prop_oneof![
        4 => (prop_oneof![Just(0), 1..4_u64, Just(1_000)], prop_oneof![3 => Just(0), 1 => 1..2000_u64], any::<bool>())
            .prop_map(|(max_lag, millis, is_resynced)| Act::AddHandler { max_lag, millis, is_resynced }),
        1 => (0..4_usize).prop_map(Act::RemoveHandler),
        1 => Just(Act::AddIndex),
    ];
    (steps(), prop::collection::vec((0..80_usize, others), 0..8)).prop_map(|(steps, others)| {
        let mut acts: Vec<Act> = steps.into_iter().map(Act::Server).collect();
        for (at, act) in others {
            acts.insert(at.min(acts.len()), act);
        }
        acts
    })
}

fn identity(object: &Cached<ConfigMap>) -> Identity {
    let metadata = object.metadata();
    Identity::new(
        metadata.namespace().unwrap_or_default(),
        metadata.name(),
        metadata.uid().unwrap_or_default(),
        metadata.resource_version().unwrap_or_default(),
    )
}

fn version(object: &Cached<ConfigMap>) -> u64 {
    object.metadata().resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn contents(snapshot: &Snapshot<ConfigMap>) -> BTreeMap<String, Identity> {
    snapshot.iter_cached().map(|object| (identity(object).key().to_owned(), identity(object))).collect()
}

/// The events of one handler, and the violations found.
#[derive(Default)]
struct Received {
    view: BTreeMap<String, Cached<ConfigMap>>,
    /// Objects with what they were when they came.
    first_seen: Vec<(Arc<ConfigMap>, ConfigMap)>,
    wrong: Vec<String>,
}

impl Received {
    fn take(&mut self, event: &Event<ConfigMap>, cache: &CacheReader<ConfigMap>, world: &World) {
        let object = event.object();
        let identity = identity(object);
        let key = identity.key().to_owned();
        let before = self.view.get(&key);
        let mut wrong =
            |what: &str| self.wrong.push(format!("{what}: {event:?} of {identity:?} after {before:?}"));
        match (event.last_seen(), before) {
            (None, None) => {}
            (Some(last), Some(known)) if last.ptr_eq(known) => {}
            _ => wrong("not the next part of the story"),
        }
        match event {
            Event::Updated { old, new } => {
                if version(old) >= version(new) || old.metadata().uid() != new.metadata().uid() {
                    wrong("not newer, or another");
                }
            }
            Event::Deleted(deleted) if !deleted.final_state_unknown => {
                if !world.has_written(&identity, true) {
                    wrong("no such deletion");
                }
            }
            Event::Deleted(deleted) => {
                if version(&deleted.object) < version(&deleted.last_seen) {
                    wrong("an older last state");
                }
                if !world.has_deleted(identity.uid()) {
                    wrong("it was never deleted");
                }
            }
            Event::Added { .. } | Event::Synced(_) => {}
        }
        if !matches!(event, Event::Deleted(deleted) if !deleted.final_state_unknown)
            && !world.has_written(&identity, false)
        {
            wrong("never written");
        }
        if let Some(stored) = cache.cached(&key)
            && stored.metadata().uid() == object.metadata().uid()
            && version(&stored) < version(object)
        {
            wrong("the cache is behind");
        }
        let decoded = object.get().expect("decodes");
        self.first_seen.push((Arc::clone(&decoded), ConfigMap::clone(&decoded)));
        match event {
            Event::Deleted(_) => self.view.remove(&key),
            _ => self.view.insert(key, object.clone()),
        };
    }
}

struct Listener {
    registration: Registration<ConfigMap>,
    received: Arc<Mutex<Received>>,
}

struct Stage {
    world: Shared,
    informer: SharedIndexInformer<ConfigMap>,
    listeners: Vec<Listener>,
    indexes: usize,
    reached: u64,
}

fn by_parity(object: &ConfigMap) -> [String; 2] {
    let version: u64 = object
        .metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default();
    [format!("version {}", version % 3), object.metadata.uid.clone().unwrap_or_default()]
}

impl Stage {
    fn add_handler(&mut self, max_lag: u64, millis: u64, is_resynced: bool) {
        let received = Arc::new(Mutex::new(Received::default()));
        let (record, cache, world) = (Arc::clone(&received), self.informer.reader(), self.world.clone());
        let handler = move |event: Event<ConfigMap>| {
            record.lock().take(&event, &cache, &world.0.lock());
            async move { sleep(Duration::from_millis(millis)).await }
        };
        let period = if is_resynced { Duration::from_secs(40) } else { Duration::ZERO };
        let options = HandlerOptions::new("listener").max_lag_events(max_lag).resync_period(period);
        if let Ok(registration) = self.informer.add_async_handler(handler, options) {
            self.listeners.push(Listener { registration, received });
        }
    }

    /// Checks the invariants that hold at every moment.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let snapshot = self.informer.snapshot();
        for n in 0..self.indexes {
            let mut expected: BTreeMap<String, usize> = BTreeMap::new();
            for value in snapshot.iter().flat_map(|object| by_parity(&object)) {
                *expected.entry(value).or_default() += 1;
            }
            let index = format!("index {n}");
            let values =
                snapshot.index_values(&index).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let found = values.iter().map(|value| {
                (
                    value.to_string(),
                    snapshot.by_index_cached(&index, value).map_or(0, |objects| objects.len()),
                )
            });
            prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
        }
        let Some(at) = snapshot.resource_version().and_then(|version| version.as_str().parse::<u64>().ok())
        else {
            return Ok(());
        };
        prop_assert!(at >= self.reached, "the cache went back from {} to {at}", self.reached);
        self.reached = at;
        if self.informer.stats().queued_keys == 0 {
            let differences = self.world.0.lock().differences_at(at, &contents(&snapshot));
            prop_assert!(differences.is_empty(), "{differences:#?}");
        }
        for Listener { registration, received } in &self.listeners {
            let received = received.lock();
            prop_assert!(received.wrong.is_empty(), "{:#?}", received.wrong);
            prop_assert!(
                !registration.has_synced() || self.informer.has_synced(),
                "in sync before its informer"
            );
        }
        Ok(())
    }

    /// Checks the invariants that hold at the end.
    fn check_end(&mut self) -> Result<(), TestCaseError> {
        self.check()?;
        let world = self.world.0.lock();
        let snapshot = self.informer.snapshot();
        let differences = world.differences_at(world.version(), &contents(&snapshot));
        prop_assert!(differences.is_empty(), "{differences:#?} {:?}", self.informer.stats());
        let aside: Vec<String> =
            self.informer.quarantined().iter().map(|object| object.key.to_string()).collect();
        prop_assert_eq!(aside, world.broken());
        for Listener { registration, received } in &self.listeners {
            let received = received.lock();
            prop_assert!(registration.has_synced());
            prop_assert_eq!(received.view.len(), snapshot.len());
            for (key, delivered) in &received.view {
                let stored = snapshot.cached(key);
                prop_assert!(
                    stored.is_some_and(|stored| stored.ptr_eq(delivered)),
                    "{key} is not the object delivered last"
                );
            }
            prop_assert!(
                received.first_seen.iter().all(|(object, first)| **object == *first),
                "an object was changed"
            );
        }
        Ok(())
    }
}

/// A memory policy, and the number of objects on which a dictionary is trained.
fn memory() -> impl Strategy<Value = (MemoryPolicy, usize)> {
    let policy = prop_oneof![
        Just(MemoryPolicy::Decoded),
        Just(MemoryPolicy::Auto),
        Just(MemoryPolicy::Packed),
        // Enough for none, one or a few of the objects.
        (1..20_000_u64).prop_map(MemoryPolicy::Budget),
    ];
    (policy, prop_oneof![1..12_usize, Just(1_000)])
}

async fn perform(
    acts: Vec<Act>,
    options: ReflectorOptions,
    (policy, samples): (MemoryPolicy, usize),
) -> Result<(), TestCaseError> {
    let world = Shared(Arc::new(Mutex::new(World::without_sink())));
    let config = Config::new("story", world.encoded())
        .reflector(options)
        .resync_period(Duration::from_hours(1))
        .memory(policy)
        .dictionary_samples(samples)
        .batch_keys(3);
    let informer = SharedIndexInformer::new(config);
    let mut stage = Stage { world, informer, listeners: Vec::new(), indexes: 0, reached: 0 };
    stage.add_handler(2, 0, true);
    stage.informer.start();
    for act in acts {
        match act {
            Act::Server(Step::Write { key, what, gap }) => stage.world.0.lock().write(key, what, gap),
            Act::Server(Step::Compact) => stage.world.0.lock().compact(),
            Act::Server(Step::Hurt(hurt)) => stage.world.0.lock().hurt(hurt),
            Act::Server(Step::Plan(plan)) => stage.world.0.lock().plan(plan),
            Act::Server(Step::Pass { millis }) => sleep(Duration::from_millis(millis)).await,
            Act::AddHandler { max_lag, millis, is_resynced } => {
                stage.add_handler(max_lag, millis, is_resynced);
            }
            Act::RemoveHandler(n) if n < stage.listeners.len() => {
                let Listener { registration, received } = stage.listeners.swap_remove(n);
                registration.remove().await;
                let delivered = received.lock().first_seen.len();
                tokio::task::yield_now().await;
                prop_assert_eq!(received.lock().first_seen.len(), delivered, "called after its removal");
            }
            Act::RemoveHandler(_) => {}
            Act::AddIndex => {
                let name = format!("index {}", stage.indexes);
                stage
                    .informer
                    .add_index(name, by_parity)
                    .map_err(|error| TestCaseError::fail(error.to_string()))?;
                stage.indexes += 1;
            }
        }
        // Some of the time nothing has had a chance to happen yet, and some of the time a little.
        tokio::task::yield_now().await;
        stage.check()?;
    }
    stage.world.0.lock().behave();
    // And what the slowest handler needs for what is left.
    sleep(SOON + Duration::from_mins(10)).await;
    stage.check_end()?;
    stage.informer.shutdown().await;
    Ok(())
}

proptest! {
    #[test]
    fn with_any_faults_cache_indexes_and_handlers_agree_with_the_server(
        acts in acts(),
        is_streaming in any::<bool>(),
        has_pages in any::<bool>(),
        seed in any::<u64>(),
        memory in memory(),
    ) {
        run_paused(perform(acts, random_options(seed, is_streaming, has_pages), memory))?;
    }
}
