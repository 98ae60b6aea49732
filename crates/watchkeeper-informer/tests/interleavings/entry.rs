//! Schedules of packed objects: reads, evictions, compression, the end of an entry, and changes of the budget.
//!
//! In every schedule reads return the content of the version that they read, and the accounts are exact in the end.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use shuttle::thread::{self, JoinHandle};
use watchkeeper_client::{
    decode::{Decode, Json},
    list_watch::ReceivedItem,
};
use watchkeeper_informer::{Cached, Store, StoreOp, internals::PackedTier};

use crate::objects::version;

const SCHEDULES: usize = 2_000;

/// A tier that is shared by threads, and the number of its objects on which it trains.
#[derive(Clone)]
struct Tier {
    tier: Arc<PackedTier<ConfigMap>>,
    decoder: Arc<dyn Decode<ConfigMap>>,
}

impl Tier {
    /// Creates a tier whose budget is that of this many objects.
    fn with_room_for(objects: usize, samples: usize) -> Self {
        let tier = PackedTier::new((objects * Self::bytes()) as u64, samples);
        Self { tier: Arc::new(tier), decoder: Arc::new(Json::new()) }
    }

    /// The bytes that each object of the tests takes decoded, as estimated.
    fn bytes() -> usize {
        size_of::<ConfigMap>() + 6 * encoded(&tagged("a/x", "1")).len()
    }

    fn keep(&self, object: &ConfigMap) -> Cached<ConfigMap> {
        let item = ReceivedItem::new(encoded(object).into(), "", Arc::clone(&self.decoder)).unwrap();
        self.tier.keep(item).unwrap()
    }

    /// Checks the accounts after all objects were dropped.
    fn check_empty(&self) {
        let stats = self.tier.stats();
        assert_eq!(self.tier.charged_bytes(), 0, "{stats:?}");
        assert_eq!((stats.encoded_objects, stats.encoded_bytes), (0, 0), "{stats:?}");
        assert_eq!((stats.decoded_objects, stats.decoded_bytes), (0, 0), "{stats:?}");
    }

    /// Checks the accounts while these are the only objects, and no thread reads.
    fn check(&self, objects: &[&Cached<ConfigMap>]) {
        let stats = self.tier.stats();
        let resident = objects.iter().filter(|object| object.decoded().is_some()).count();
        assert_eq!(stats.encoded_objects, objects.len() as u64, "{stats:?}");
        assert_eq!(stats.decoded_objects, resident as u64, "{stats:?}");
        assert_eq!(stats.decoded_bytes, (resident * Self::bytes()) as u64, "{stats:?}");
        assert_eq!(self.tier.charged_bytes(), resident * Self::bytes(), "{stats:?}");
        assert!(stats.decoded_bytes <= stats.budget_bytes, "{stats:?}");
    }
}

fn tagged(key: &str, tags: &str) -> ConfigMap {
    ConfigMap::clone(&crate::objects::tagged(key, tags))
}

fn encoded(object: &ConfigMap) -> Vec<u8> {
    serde_json::to_vec(object).unwrap()
}

/// Starts a thread that reads an object several times.
fn reader(cached: &Cached<ConfigMap>, object: &ConfigMap, reads: usize) -> JoinHandle<()> {
    let (cached, object) = (cached.clone(), object.clone());
    thread::spawn(move || {
        for _ in 0..reads {
            assert_eq!(*cached.get().unwrap(), object);
        }
    })
}

fn join(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn reads_within_a_budget_of_one_object_keep_the_budget() {
    crate::explore(SCHEDULES, || {
        let tier = Tier::with_room_for(1, 100);
        let objects = ["a/x", "a/y", "a/z"].map(|key| tagged(key, "1"));
        let [x, y, z] = objects.each_ref().map(|object| tier.keep(object));
        join(vec![reader(&x, &objects[0], 2), reader(&y, &objects[1], 2), reader(&z, &objects[2], 2)]);
        tier.check(&[&x, &y, &z]);
        drop((x, y, z));
        tier.check_empty();
    });
}

#[test]
fn concurrent_reads_of_one_object_leave_it_resident_once() {
    crate::explore(SCHEDULES, || {
        let tier = Tier::with_room_for(0, 100);
        let object = tagged("a/x", "1");
        let x = tier.keep(&object);
        tier.tier.set_budget(Tier::bytes());
        join(vec![reader(&x, &object, 1), reader(&x, &object, 1), reader(&x, &object, 1)]);
        assert!(Arc::ptr_eq(&x.get().unwrap(), &x.get().unwrap()));
        tier.check(&[&x]);
        drop(x);
        tier.check_empty();
    });
}

#[test]
fn objects_are_compressed_while_they_are_read_and_dropped() {
    crate::explore(SCHEDULES, || {
        let tier = Tier::with_room_for(1, 3);
        let objects = ["a/x", "a/y", "a/z"].map(|key| tagged(key, "1"));
        let (x, y) = (tier.keep(&objects[0]), tier.keep(&objects[1]));
        let readers = [reader(&x, &objects[0], 2), reader(&y, &objects[1], 1)];
        // Only the reader holds it.
        drop(y);
        let receiver = {
            let (tier, z) = (tier.clone(), objects[2].clone());
            // Beyond the budget and enough samples, so all objects are compressed.
            thread::spawn(move || {
                let kept = [tier.keep(&z), tier.keep(&z)];
                kept.iter().for_each(|kept| assert_eq!(*kept.get().unwrap(), z));
            })
        };
        join(readers.into_iter().chain([receiver]).collect());
        assert_eq!(*x.get().unwrap(), objects[0]);
        tier.check(&[&x]);
        drop(x);
        tier.check_empty();
    });
}

#[test]
fn a_budget_is_kept_after_changes_while_objects_are_read_and_dropped() {
    crate::explore(SCHEDULES, || {
        let tier = Tier::with_room_for(3, 100);
        let objects = ["a/x", "a/y", "a/z"].map(|key| tagged(key, "1"));
        let [x, y, z] = objects.each_ref().map(|object| tier.keep(object));
        let threads = vec![
            reader(&x, &objects[0], 2),
            reader(&z, &objects[2], 1),
            {
                let tier = tier.clone();
                thread::spawn(move || {
                    tier.tier.set_budget(0);
                    tier.tier.set_budget(Tier::bytes());
                })
            },
            thread::spawn(move || drop(y)),
        ];
        drop(z);
        join(threads);
        tier.check(&[&x]);
        tier.tier.set_budget(0);
        assert!(x.decoded().is_none());
        tier.check(&[&x]);
        drop(x);
        tier.check_empty();
    });
}

#[test]
fn a_store_of_packed_objects_is_read_while_it_is_written() {
    crate::explore(SCHEDULES, || {
        let tier = Tier::with_room_for(1, 3);
        let store = Store::<ConfigMap>::new();
        let batch = |generation: &str| {
            ["a/x", "a/y"].map(|key| StoreOp::<ConfigMap>::put(tier.keep(&tagged(key, generation))).unwrap())
        };
        store.apply(batch("1"), Some(&version("1"))).unwrap();
        let readers = (0..2).map(|_| {
            let store = store.clone();
            thread::spawn(move || {
                let snapshot = store.snapshot();
                let generation = snapshot.resource_version().unwrap().to_string();
                for key in ["a/x", "a/y"] {
                    assert_eq!(**snapshot.get(key).unwrap(), tagged(key, &generation));
                }
                assert_eq!(snapshot.iter().count(), 2);
            })
        });
        let threads: Vec<_> = readers.collect();
        store.apply(batch("2"), Some(&version("2"))).unwrap();
        join(threads);
        let stats = tier.tier.stats();
        assert_eq!((stats.encoded_objects, stats.dictionaries), (2, 1), "{stats:?}");
        assert!(stats.decoded_bytes <= stats.budget_bytes, "{stats:?}");
        drop(store);
        tier.check_empty();
    });
}
