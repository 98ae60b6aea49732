//! Random sequences of writes, each result compared with maps, and every snapshot with the maps of its moment.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    is,
    objects::{expected_index, key, keys_of, label, labelled, tags, version},
};
use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use watchkeeper_informer::{Cached, CachedRef, Snapshot, Store, StoreOp, StoreOpResult};

type Model = BTreeMap<String, Arc<ConfigMap>>;

/// An object of the tests: which one, with which tags, and whether the picky index takes it.
#[derive(Debug, Clone)]
struct Seed {
    key: u16,
    tags: &'static str,
    is_odd: bool,
}

impl Seed {
    fn key(&self) -> String {
        key_of(self.key)
    }

    fn object(&self) -> Arc<ConfigMap> {
        labelled(&self.key(), &[("tags", self.tags), ("odd", if self.is_odd { "yes" } else { "no" })])
    }
}

/// In four namespaces and none.
fn key_of(number: u16) -> String {
    match number % 5 {
        0 => format!("cluster-{number}"),
        namespace => format!("ns-{namespace}/name-{number}"),
    }
}

#[derive(Debug, Clone)]
enum Write {
    Add(Seed),
    Delete(u16),
    Apply(Vec<Result<Seed, u16>>),
    Replace { seeds: Vec<Seed>, keep_every: usize },
    AddIndex,
    Snapshot,
}

fn seed() -> impl Strategy<Value = Seed> {
    let tags = prop_oneof![Just(""), Just("a"), Just("b"), Just("a.b"), Just("b.a.b.c"), Just("c.d.e")];
    (0..400_u16, tags, prop::bool::weighted(0.2)).prop_map(|(key, tags, is_odd)| Seed { key, tags, is_odd })
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let change = prop_oneof![3 => seed().prop_map(Ok), 1 => (0..400_u16).prop_map(Err)];
    let write = prop_oneof![
        6 => seed().prop_map(Write::Add),
        3 => (0..400_u16).prop_map(Write::Delete),
        4 => prop::collection::vec(change, 0..120).prop_map(Write::Apply),
        2 => (prop::collection::vec(seed(), 0..300), 1..4_usize)
            .prop_map(|(seeds, keep_every)| Write::Replace { seeds, keep_every }),
        1 => Just(Write::AddIndex),
        2 => Just(Write::Snapshot),
    ];
    prop::collection::vec(write, 1..25)
}

fn is_same(returned: Option<&Cached<ConfigMap>>, object: Option<&Arc<ConfigMap>>) -> bool {
    match (returned, object) {
        (Some(returned), Some(object)) => is(returned, object),
        (None, None) => true,
        _ => false,
    }
}

/// Whether the outcome is what happens to a map that had `old` under the key.
fn is_outcome(outcome: &StoreOpResult<ConfigMap>, is_put: bool, before: Option<&Arc<ConfigMap>>) -> bool {
    match outcome {
        StoreOpResult::Added => is_put && before.is_none(),
        StoreOpResult::Updated { old } => is_put && is_same(Some(old), before),
        StoreOpResult::Deleted { old } => !is_put && is_same(Some(old), before),
        StoreOpResult::Absent => !is_put && before.is_none(),
    }
}

fn namespace(object: &ConfigMap) -> Vec<String> {
    object.metadata.namespace.clone().into_iter().collect()
}

/// Refuses odd objects.
fn picky(object: &ConfigMap) -> Result<Vec<String>, &'static str> {
    if label(object, "odd") == Some("yes") { Err("odd") } else { Ok(tags(object)) }
}

/// Compares the contents of a snapshot with the model at that time.
fn compare(snapshot: &Snapshot<ConfigMap>, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(snapshot.len(), model.len());
    let keys: Vec<String> = snapshot.keys().iter().map(ToString::to_string).collect();
    prop_assert_eq!(&keys, &model.keys().cloned().collect::<Vec<_>>());
    prop_assert_eq!(keys_of(snapshot.iter()), keys);
    for number in 0..400 {
        let key = key_of(number);
        prop_assert!(is_same(snapshot.cached(&key), model.get(&key)), "{}", key);
        let read = snapshot.get(&key).map(CachedRef::into_arc).map(Cached::from);
        prop_assert!(is_same(read.as_ref(), model.get(&key)), "{}", key);
    }
    for name in snapshot.index_names() {
        let values = |object: &ConfigMap| match name {
            "namespace" => namespace(object),
            "tags" => tags(object),
            _ => picky(object).unwrap_or_default(),
        };
        let expected = expected_index(model.values(), values);
        let listed: Vec<String> =
            snapshot.index_values(name).expect("is there").iter().map(ToString::to_string).collect();
        prop_assert_eq!(&listed, &expected.keys().cloned().collect::<Vec<_>>(), "values of {}", name);
        for (value, keys) in &expected {
            prop_assert_eq!(
                &keys_of(snapshot.by_index(name, value).expect("is there")),
                keys,
                "{} {}",
                name,
                value
            );
            let sorted = snapshot.index_keys(name, value).expect("is there");
            prop_assert_eq!(&sorted.iter().map(ToString::to_string).collect::<Vec<_>>(), keys);
        }
        if name == "namespace" {
            for (value, keys) in &expected {
                prop_assert_eq!(&keys_of(snapshot.in_namespace(value)), keys);
            }
        }
        prop_assert_eq!(snapshot.by_index_cached(name, "absent").expect("is there").len(), 0);
    }
    Ok(())
}

/// A store with its model, and snapshots with the models that they must equal.
struct Pair {
    store: Store<ConfigMap>,
    model: Model,
    taken: Vec<(Snapshot<ConfigMap>, Model, String)>,
    versions: u32,
    odd_indexed: u64,
}

impl Pair {
    fn write(&mut self, write: Write) -> Result<(), TestCaseError> {
        self.versions += 1;
        let at = version(&self.versions.to_string());
        match write {
            Write::Add(seed) => {
                let object = seed.object();
                self.expect_odd([&seed]);
                let old = self.store.add(Arc::clone(&object)).expect("has a key");
                prop_assert!(is_same(old.as_ref(), self.model.insert(seed.key(), object).as_ref()));
                self.store.bookmark(&at).expect("newer");
            }
            Write::Delete(number) => {
                let old = self.store.delete(&key(&key_of(number)));
                prop_assert!(is_same(old.as_ref(), self.model.remove(&key_of(number)).as_ref()));
                self.store.bookmark(&at).expect("newer");
            }
            Write::Apply(changes) => {
                let mut requested = Vec::new();
                let mut expected = Vec::new();
                for change in changes {
                    match change {
                        Ok(seed) => {
                            let object = seed.object();
                            self.expect_odd([&seed]);
                            requested.push(StoreOp::put(Arc::clone(&object)).expect("has a key"));
                            expected.push((true, self.model.insert(seed.key(), object)));
                        }
                        Err(number) => {
                            requested.push(StoreOp::delete(key(&key_of(number))));
                            expected.push((false, self.model.remove(&key_of(number))));
                        }
                    }
                }
                let applied = self.store.apply(requested, Some(&at)).expect("newer");
                prop_assert_eq!(applied.results.len(), expected.len());
                for (outcome, (is_put, before)) in applied.results.iter().zip(&expected) {
                    prop_assert!(is_outcome(outcome, *is_put, before.as_ref()));
                }
            }
            Write::Replace { seeds, keep_every } => self.replace(&seeds, keep_every, &at)?,
            Write::AddIndex => {
                if self.store.add_index("picky", picky).is_ok() {
                    let is_odd = |object: &&Arc<ConfigMap>| picky(object).is_err();
                    self.odd_indexed = self.model.values().filter(is_odd).count() as u64;
                }
                self.store.bookmark(&at).expect("newer");
            }
            Write::Snapshot => {
                self.store.bookmark(&at).expect("newer");
                self.taken.push((self.store.snapshot(), self.model.clone(), at.to_string()));
            }
        }
        prop_assert_eq!(self.store.resource_version(), Some(at));
        Ok(())
    }

    /// New objects for the seeds, and for some of the others the very objects that are there.
    fn replace(
        &mut self,
        seeds: &[Seed],
        keep_every: usize,
        at: &watchkeeper_informer::ResourceVersion,
    ) -> Result<(), TestCaseError> {
        let kept =
            self.model.iter().step_by(keep_every).map(|(key, object)| (key.clone(), Arc::clone(object)));
        let mut list: Vec<(String, Arc<ConfigMap>)> = kept.collect();
        self.expect_odd(seeds);
        let odd_kept = list.iter().filter(|(_, object)| picky(object).is_err()).count();
        if self.store.index("picky").is_ok() {
            self.odd_indexed += odd_kept as u64;
        }
        list.extend(seeds.iter().map(|seed| (seed.key(), seed.object())));
        let replaced =
            self.store.replace(list.iter().map(|(_, object)| Arc::clone(object)), Some(at)).expect("newer");

        let mut before = std::mem::take(&mut self.model);
        prop_assert_eq!(replaced.results.len(), list.len());
        for ((key, object), outcome) in list.into_iter().zip(&replaced.results) {
            let earlier = self.model.insert(key.clone(), object);
            let old = earlier.or_else(|| before.remove(&key));
            prop_assert!(is_outcome(outcome, true, old.as_ref()));
            before.remove(&key);
        }
        prop_assert_eq!(keys_of(replaced.deleted), keys_of(before.into_values()));
        Ok(())
    }

    /// Counts how often the picky index, once there is one, has to refuse.
    fn expect_odd<'a>(&mut self, seeds: impl IntoIterator<Item = &'a Seed>) {
        if self.store.index("picky").is_ok() {
            self.odd_indexed += seeds.into_iter().filter(|seed| seed.is_odd).count() as u64;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_map_its_indexes_agree_and_its_snapshots_stay(writes in writes()) {
        let store = Store::new();
        store.add_index("tags", tags).unwrap();
        let mut pair =
            Pair { store, model: Model::new(), taken: Vec::new(), versions: 0, odd_indexed: 0 };
        for write in writes {
            pair.write(write)?;
        }
        if let Ok(picky) = pair.store.index("picky") {
            prop_assert_eq!(picky.health().failures, pair.odd_indexed);
        }
        compare(&pair.store.snapshot(), &pair.model)?;
        for (snapshot, model, at) in &pair.taken {
            prop_assert_eq!(snapshot.resource_version().map(ToString::to_string), Some(at.clone()));
            compare(snapshot, model)?;
        }
    }
}
