//! The store compared with a model: one map for every version.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use proptest::prelude::*;
use serde_json::json;

use super::*;

const TABLE: &str = "configmaps";
const WINDOW: HistoryWindow = HistoryWindow { events: 12, age: Duration::from_mins(1), bytes: usize::MAX };

#[derive(Debug, Clone)]
enum Step {
    /// Writes one of a few keys.
    Put(u8),
    /// Deletes one of the keys.
    Delete(u8),
    /// Writes to another table, which only increases the version.
    Elsewhere,
    Compact,
    /// Advances the time.
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..8_u8).prop_map(Step::Put),
        3 => (0..8_u8).prop_map(Step::Delete),
        2 => Just(Step::Elsewhere),
        1 => Just(Step::Compact),
        1 => (0..50_u8).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..60)
}

/// Returns keys whose order as text differs from the order by namespace and name.
fn object_key(key: u8) -> (&'static str, String) {
    (["a", "a-b"][usize::from(key % 2)], format!("n{}", key / 2))
}

pub(super) fn content(namespace: &str, name: &str, value: u64) -> Content {
    let metadata = json!({"name": name, "namespace": namespace, "labels": {"v": value.to_string()}});
    Content::new(&json!({"metadata": metadata}), Box::default()).unwrap()
}

type State = BTreeMap<String, u64>;

struct Model {
    store: MemoryStore,
    now: SystemTime,
    /// The content of the table after each version.
    states: BTreeMap<u64, State>,
}

impl Model {
    fn new() -> Self {
        let store = MemoryStore::new(WINDOW);
        let states = BTreeMap::from([(store.version(), State::new())]);
        Self { store, now: SystemTime::UNIX_EPOCH, states }
    }

    fn run(&mut self, step: &Step) {
        let (_, state) = self.states.last_key_value().unwrap();
        let mut state = state.clone();
        match *step {
            Step::Put(key) => {
                let (namespace, name) = object_key(key);
                let content = content(namespace, &name, self.store.version());
                let key = content.key();
                let current = self.store.get(TABLE, &key).map(|object| object.version);
                let expected = current.map_or(Precondition::Absent, Precondition::Version);
                let object = self.store.put(TABLE, content, expected, self.now).unwrap();
                state.insert(key, object.version);
            }
            Step::Delete(key) => {
                let (namespace, name) = object_key(key);
                let key = format!("{namespace}/{name}");
                let Some(current) = self.store.get(TABLE, &key) else { return };
                self.store.delete(TABLE, &key, current.version, self.now).unwrap();
                state.remove(&key);
            }
            Step::Elsewhere => {
                let content = content("", &self.store.version().to_string(), 0);
                self.store.put("nodes", content, Precondition::Absent, self.now).unwrap();
            }
            Step::Compact => self.store.compact(),
            Step::Wait(seconds) => self.now += Duration::from_secs(seconds.into()),
        }
        self.states.insert(self.store.version(), state);
    }

    fn at(&self, version: u64) -> &State {
        self.states.range(..=version).next_back().map(|(_, state)| state).unwrap()
    }

    fn list(&self, at: Option<u64>, start: &str, limit: Option<usize>) -> Result<Page, Expired> {
        self.store.list(TABLE, Query { prefix: "", start, at, limit, filter: None }, self.now)
    }
}

fn state_of(objects: &[Arc<Object>]) -> State {
    objects.iter().map(|object| (object.content.key(), object.version)).collect()
}

proptest! {
    #[test]
    fn every_version_in_the_window_lists_its_own_state_and_replays_to_the_latest(steps in steps()) {
        let mut model = Model::new();
        for step in &steps {
            model.run(step);
        }
        let newest = model.store.version();
        let now = model.list(None, "", None).unwrap();
        prop_assert_eq!(now.version, newest);
        prop_assert_eq!(&state_of(&now.objects), model.at(newest));
        prop_assert_eq!(model.store.count(TABLE), model.at(newest).len());
        let log = model.store.log(TABLE);
        prop_assert!(log.len() <= WINDOW.events);

        for version in 1..=newest {
            let listed = model.list(Some(version), "", None);
            let position = log.position_after(version);
            if version < log.oldest() {
                prop_assert_eq!(listed.unwrap_err(), Expired { oldest: log.oldest() });
                prop_assert!(position.is_err());
                continue;
            }
            let listed = listed.unwrap();
            let keys: Vec<String> = listed.objects.iter().map(|object| object.content.key()).collect();
            prop_assert!(keys.is_sorted(), "lists are in the order of keys: {:?}", keys);
            let mut state = state_of(&listed.objects);
            prop_assert_eq!(&state, model.at(version));

            let mut position = position.unwrap();
            let mut last = version;
            let mut events = VecDeque::new();
            loop {
                log.read(&mut position, 3, &mut events).unwrap();
                if events.is_empty() {
                    break;
                }
                for event in events.drain(..) {
                    prop_assert!(event.version > last, "in order, and each once");
                    last = event.version;
                    let key = event.object.content.key();
                    let before = match event.change {
                        EventType::Deleted => state.remove(&key),
                        EventType::Added | EventType::Modified => state.insert(key, event.version),
                    };
                    prop_assert_eq!(before.is_some(), event.change != EventType::Added);
                    let previous = event.previous.as_ref().map(|previous| previous.version);
                    prop_assert_eq!(previous.is_some(), event.change == EventType::Modified);
                    prop_assert!(previous.is_none() || previous == before);
                    prop_assert_eq!(&state, model.at(event.version), "a state there was, never half of one");
                }
            }
            prop_assert_eq!(&state, model.at(newest));
        }
    }

    #[test]
    fn pages_of_a_list_share_one_version_despite_concurrent_writes(
        before in steps(),
        between in prop::collection::vec((0..8_u8).prop_map(Step::Put), 0..10),
        limit in 1..4_usize,
    ) {
        let mut model = Model::new();
        for step in &before {
            model.run(step);
        }
        let first = model.list(None, "", Some(limit)).unwrap();
        let mut objects = first.objects;
        let mut rest = first.rest;
        let mut between = between.into_iter();
        while let Some((start, remaining)) = rest {
            prop_assert_eq!(objects.len() + remaining, model.at(first.version).len());
            if let Some(step) = between.next() {
                model.run(&step);
            }
            let page = model.list(Some(first.version), &start, Some(limit)).unwrap();
            prop_assert!(page.objects.len() <= limit && !page.objects.is_empty());
            objects.extend(page.objects);
            rest = page.rest;
        }
        prop_assert_eq!(&state_of(&objects), model.at(first.version));
    }
}

#[test]
fn a_commit_fails_unless_its_precondition_holds() {
    let store = MemoryStore::new(WINDOW);
    let now = SystemTime::UNIX_EPOCH;
    let first = store.put(TABLE, content("ns", "x", 1), Precondition::Absent, now).unwrap();
    let taken = store.put(TABLE, content("ns", "x", 2), Precondition::Absent, now).unwrap_err();
    assert_eq!(taken.current.map(|current| current.version), Some(first.version));
    let second = store.put(TABLE, content("ns", "x", 2), Precondition::Version(first.version), now).unwrap();
    assert!(store.put(TABLE, content("ns", "x", 3), Precondition::Version(first.version), now).is_err());
    assert!(store.delete(TABLE, "ns/x", first.version, now).is_err());
    assert!(store.delete(TABLE, "ns/y", first.version, now).is_err());
    assert_eq!(store.version(), second.version, "a failed commit has no version");
    assert_eq!(store.delete(TABLE, "ns/x", second.version, now).unwrap(), second.version + 1);
    assert!(store.get(TABLE, "ns/x").is_none());
}

#[test]
fn a_namespaced_list_excludes_other_namespaces() {
    let store = MemoryStore::new(WINDOW);
    for (namespace, name) in [("a", "x"), ("a-b", "y"), ("a.b", "z"), ("ab", "w")] {
        store.put(TABLE, content(namespace, name, 1), Precondition::Absent, SystemTime::UNIX_EPOCH).unwrap();
    }
    let query = Query { prefix: "a/", start: "a/", at: None, limit: None, filter: None };
    let page = store.list(TABLE, query, SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(page.objects.len(), 1);
}

#[test]
fn history_expires_by_age_without_writes() {
    let store = MemoryStore::new(WINDOW);
    let start = SystemTime::UNIX_EPOCH;
    let first = store.put(TABLE, content("ns", "x", 1), Precondition::Absent, start).unwrap().version;
    store.put(TABLE, content("ns", "x", 2), Precondition::Version(first), start).unwrap();
    let list =
        |at, now| store.list(TABLE, Query { prefix: "", start: "", at, limit: None, filter: None }, now);
    assert!(list(Some(first), start + WINDOW.age).is_ok());
    let later = start + WINDOW.age + Duration::from_secs(1);
    assert!(list(Some(first), later).is_err());
    assert_eq!(list(None, later).unwrap().objects.len(), 1);
}

#[test]
fn a_write_frees_the_versions_that_have_left_the_window() {
    let store = MemoryStore::new(WINDOW);
    let now = SystemTime::UNIX_EPOCH;
    let mut written: Vec<Weak<Object>> = Vec::new();
    let mut expected = Precondition::Absent;
    for value in 0..40 {
        let object = store.put(TABLE, content("ns", "x", value), expected, now).unwrap();
        expected = Precondition::Version(object.version);
        written.push(Arc::downgrade(&object));
    }
    let held = || written.iter().rev().take_while(|object| object.strong_count() > 0).count();
    assert_eq!(store.log(TABLE).len(), WINDOW.events);
    assert_eq!(
        held(),
        WINDOW.events + 1,
        "the versions of the events, and the version before the oldest event"
    );
    assert_eq!(written.iter().filter(|object| object.strong_count() > 0).count(), held());
    store.compact();
    assert_eq!(held(), 1);
    store.delete(TABLE, "ns/x", store.version(), now).unwrap();
    assert_eq!(held(), 1, "the version before the deletion can still be listed");
    store.compact();
    assert_eq!(held(), 0);
}

#[test]
fn a_write_drops_only_events_older_than_the_window() {
    let store = MemoryStore::new(WINDOW);
    let start = SystemTime::UNIX_EPOCH;
    for (name, after, kept) in [("a", 0, 1), ("b", 60, 2), ("c", 61, 2), ("d", 122, 1)] {
        let now = start + Duration::from_secs(after);
        store.put(TABLE, content("ns", name, 0), Precondition::Absent, now).unwrap();
        assert_eq!(store.log(TABLE).len(), kept, "after {after} s");
    }
}

#[test]
fn compaction_expires_the_older_versions_of_every_table() {
    let store = MemoryStore::new(WINDOW);
    let now = SystemTime::UNIX_EPOCH;
    store.log("watched");
    for table in ["early", "late"] {
        store.put(table, content("ns", "x", 0), Precondition::Absent, now).unwrap();
    }
    store.compact();
    let newest = store.version();
    for table in ["watched", "early", "late", "unknown"] {
        let list = |at| {
            let query = Query { prefix: "", start: "", at: Some(at), limit: None, filter: None };
            store.list(table, query, now).map(|page| page.version)
        };
        assert_eq!(list(newest), Ok(newest), "{table}");
        assert_eq!(list(newest - 1), Err(Expired { oldest: newest }), "{table}");
        assert_eq!(store.log(table).oldest(), newest, "{table}");
    }
}

fn sized(name: &str, bytes: usize) -> Content {
    let metadata = json!({"name": name, "namespace": "ns", "annotations": {"a": "x".repeat(bytes)}});
    Content::new(&json!({"metadata": metadata}), Box::default()).unwrap()
}

/// Rewrites an object and returns its last version.
fn rewrite(store: &MemoryStore, table: &str, name: &str, times: usize, bytes: usize) -> u64 {
    let mut last = 0;
    for _ in 0..times {
        let current = store.get(table, &format!("ns/{name}")).map(|object| object.version);
        let expected = current.map_or(Precondition::Absent, Precondition::Version);
        last = store.put(table, sized(name, bytes), expected, SystemTime::UNIX_EPOCH).unwrap().version;
    }
    last
}

#[test]
fn history_is_bounded_by_bytes_and_by_count() {
    let window = HistoryWindow { events: 10_000, age: Duration::from_hours(1), bytes: 1024 * 1024 };
    let store = MemoryStore::new(window);
    let first = rewrite(&store, "small", "s", 50, 10);
    let old = Arc::downgrade(&store.get("small", "ns/s").unwrap());
    let last = rewrite(&store, TABLE, "x", 400, 100 * 1024);
    let log = store.log(TABLE);
    assert!(log.bytes() <= 1024 * 1024 && log.len() >= 6, "{} events of {} bytes", log.len(), log.bytes());
    assert!(log.position_after(last - 1).is_ok(), "the newest event is kept");
    let lagged = log.position_after(first + 1).unwrap_err();
    assert_eq!(lagged.oldest, log.oldest());
    let list = |version| {
        let query = Query { prefix: "", start: "", at: Some(version), limit: None, filter: None };
        store.list(TABLE, query, SystemTime::UNIX_EPOCH)
    };
    assert_eq!(list(first + 1).unwrap_err(), Expired { oldest: log.oldest() });
    assert_eq!(list(last - 2).unwrap().objects.len(), 1);
    assert_eq!(store.log("small").len(), 50, "tables with a short history keep it");
    assert!(old.upgrade().is_some());
}

#[test]
fn an_object_larger_than_the_window_still_produces_an_event() {
    let window = HistoryWindow { events: 10_000, age: Duration::from_hours(1), bytes: 1024 };
    let store = MemoryStore::new(window);
    let log = store.log(TABLE);
    for _ in 0..5 {
        let before = store.version();
        let mut position = log.position_after(before.max(log.oldest())).unwrap();
        rewrite(&store, TABLE, "x", 1, 10_000);
        let mut events = VecDeque::new();
        log.read(&mut position, 64, &mut events).unwrap();
        assert_eq!(events.len(), 1);
    }
    assert_eq!(log.len(), 1);
}

#[test]
fn a_list_with_a_selector_does_not_block_writers() {
    let store = MemoryStore::new(WINDOW);
    store.put(TABLE, content("ns", "a", 1), Precondition::Absent, SystemTime::UNIX_EPOCH).unwrap();
    // A write inside the selector would deadlock if the list held the lock.
    let is_match = |object: &Object| {
        let name = format!("from-{}", object.content.name);
        store.put(TABLE, content("ns", &name, 1), Precondition::Absent, SystemTime::UNIX_EPOCH).is_ok()
    };
    let query = Query { prefix: "", start: "", at: None, limit: None, filter: Some(&is_match) };
    let page = store.list(TABLE, query, SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!((page.objects.len(), store.count(TABLE)), (1, 2));
}
