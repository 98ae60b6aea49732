//! Readers on real threads, while a writer writes: whatever they read is of one moment.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
};

use super::objects::{key, labelled, version};
use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{Object, Snapshot, Store, StoreOp};

const OBJECTS: usize = 150;
const GENERATIONS: u32 = 600;

fn generation_of(object: &ConfigMap) -> String {
    super::objects::label(object, "generation").expect("labelled").to_owned()
}

fn generation(number: u32, objects: usize) -> Vec<Arc<ConfigMap>> {
    let text = number.to_string();
    (0..objects).map(|object| labelled(&format!("a/{object}"), &[("generation", text.as_str())])).collect()
}

/// All objects are of one generation, which is the snapshot's version, and the index knows no other.
fn check(snapshot: &Snapshot<ConfigMap>) -> u32 {
    let at = snapshot.resource_version().expect("at a version").to_string();
    for object in snapshot.iter() {
        assert_eq!(generation_of(&object), at);
        let again = snapshot.get(object.object_key().expect("has a name")).expect("is there");
        assert!(Arc::ptr_eq(&object, &again));
    }
    assert_eq!(snapshot.by_index_cached("generation", &at).expect("is there").len(), snapshot.len());
    assert_eq!(snapshot.index_values("generation").expect("is there").len(), 1);
    at.parse().expect("a number")
}

/// Each write is whole: every snapshot is of one generation, and no reader sees an older one after a newer one. The
/// number of objects changes too, so that slots move and tables grow.
#[test]
fn every_snapshot_is_of_one_write_and_they_never_go_back() {
    let store = Store::new();
    store.add_index("generation", generation_of).unwrap();
    store.replace(generation(1, OBJECTS), Some(&version("1"))).unwrap();
    let is_over = AtomicBool::new(false);
    let written = AtomicU32::new(1);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                let mut kept = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let floor = written.load(Ordering::SeqCst);
                    let snapshot = store.snapshot();
                    let seen = check(&snapshot);
                    assert!(seen >= last && seen >= floor, "{seen} after {last}, written was {floor}");
                    last = seen;
                    kept.push((seen, snapshot));
                    if kept.len() > 20 {
                        for (seen, snapshot) in kept.drain(..) {
                            assert_eq!(check(&snapshot), seen, "it changed");
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            // Single reads: each returns a generation that was written, and a read by index the requested one.
            while !is_over.load(Ordering::Relaxed) {
                let floor = written.load(Ordering::SeqCst);
                let object = store.get("a/0").unwrap();
                assert!(generation_of(&object).parse::<u32>().unwrap() >= floor);
                let at = floor.to_string();
                assert!(store.by_index("generation", &at).unwrap().iter().all(|it| generation_of(it) == at));
            }
        });
        for number in 2..GENERATIONS {
            let (objects, at) = (1 + (number as usize * 37) % OBJECTS, version(&number.to_string()));
            if number % 2 == 0 {
                store.replace(generation(number, objects), Some(&at)).unwrap();
            } else {
                // The same as changes: of every object that is there, and the end of some.
                let now = store.len();
                let puts = generation(number, now.max(objects))
                    .into_iter()
                    .map(|object| StoreOp::put(object).unwrap());
                let gone = (objects..now).map(|object| StoreOp::delete(key(&format!("a/{object}"))));
                store.apply(puts.chain(gone), Some(&at)).unwrap();
            }
            written.store(number, Ordering::SeqCst);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
