//! Schedules of the store.

use std::sync::Arc;

use crate::objects::{expected_index, key, keys_of, tagged, tags, version};
use k8s_openapi::api::core::v1::ConfigMap;
use shuttle::thread;
use watchkeeper_informer::{Snapshot, Store, StoreOp};

const SCHEDULES: usize = 5_000;

/// Checks that every index agrees with its function on the objects.
fn check(snapshot: &Snapshot<ConfigMap>) {
    for name in snapshot.index_names().filter(|name| name.starts_with("tags")) {
        let expected = expected_index(snapshot.iter(), tags);
        let values = snapshot.index_values(name).unwrap();
        assert!(values.iter().map(|value| &**value).eq(expected.keys().map(String::as_str)));
        for (value, keys) in &expected {
            assert_eq!(&keys_of(snapshot.by_index(name, value).unwrap()), keys);
        }
    }
}

fn batch(generation: &str) -> [StoreOp<ConfigMap>; 2] {
    ["a/x", "a/y"].map(|key| StoreOp::put(tagged(key, generation)).unwrap())
}

#[test]
fn a_reader_sees_a_batch_whole_with_its_version() {
    crate::explore(SCHEDULES, || {
        let store = Store::new();
        store.add_index("tags", tags).unwrap();
        store.apply(batch("1"), Some(&version("1"))).unwrap();
        let writer = {
            let store = store.clone();
            thread::spawn(move || {
                store.apply(batch("2"), Some(&version("2"))).unwrap();
                store.replace([tagged("a/x", "3"), tagged("a/y", "3")], Some(&version("3"))).unwrap();
            })
        };
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let store = store.clone();
                thread::spawn(move || {
                    let mut last = String::new();
                    for _ in 0..2 {
                        let snapshot = store.snapshot();
                        let at = snapshot.resource_version().unwrap().to_string();
                        assert!(at >= last);
                        assert!(snapshot.iter().all(|object| tags(&object) == [at.clone()]));
                        assert_eq!(snapshot.by_index_cached("tags", &at).unwrap().len(), 2);
                        assert!(store.by_index("tags", "2").unwrap().len() != 1, "half a batch");
                        last = at;
                    }
                })
            })
            .collect();
        writer.join().unwrap();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// A borrowed object stays unchanged under writes and drops of other snapshots, and is freed with its last
/// reader.
#[test]
fn a_snapshot_is_not_changed_by_writers_and_its_objects_are_freed() {
    crate::explore(SCHEDULES, || {
        let store = Store::new();
        store.add_index("tags", tags).unwrap();
        let first = [tagged("a/x", "1"), tagged("a/y", "1")];
        let watched = first.each_ref().map(Arc::downgrade);
        store.replace(first, Some(&version("1"))).unwrap();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let store = store.clone();
                thread::spawn(move || {
                    let snapshot = store.snapshot();
                    let read = snapshot.get("a/x").unwrap();
                    let other = || snapshot.get("a/y").map(|object| tags(&object));
                    let (before, others) = (tags(&read), other());
                    let found: Vec<_> = snapshot.by_index("tags", &before[0]).unwrap().collect();
                    thread::yield_now();
                    assert!(found.iter().any(|object| Arc::ptr_eq(object, &read)));
                    assert_eq!((tags(&read), other()), (before, others));
                })
            })
            .collect();
        store.apply(batch("2"), Some(&version("2"))).unwrap();
        store.add(tagged("a/x", "3")).unwrap();
        store.delete(&key("a/y"));
        store.replace([tagged("a/x", "4"), tagged("a/y", "4")], Some(&version("4"))).unwrap();
        threads.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(watched.iter().all(|object| object.strong_count() == 0));
    });
}

#[test]
fn concurrent_writers_lose_nothing() {
    crate::explore(SCHEDULES, || {
        let store = Store::new();
        store.add_index("tags", tags).unwrap();
        let writers: Vec<_> = (0..3)
            .map(|number| {
                let store = store.clone();
                thread::spawn(move || {
                    store.add(tagged(&format!("a/{number}"), "some.all")).unwrap();
                    store.add(tagged("a/shared", &number.to_string())).unwrap();
                    store.delete(&key(&format!("b/{number}")));
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let snapshot = store.snapshot();
        assert_eq!(keys_of(snapshot.iter()), ["a/0", "a/1", "a/2", "a/shared"]);
        check(&snapshot);
    });
}

#[test]
fn an_index_added_among_writes_agrees_with_them_from_the_first_moment_it_is_seen() {
    crate::explore(SCHEDULES, || {
        let store = Store::new();
        store.replace([tagged("a/x", "1"), tagged("a/y", "1.2"), tagged("a/z", "3")], None).unwrap();
        let writer = {
            let store = store.clone();
            thread::spawn(move || {
                store.delete(&key("a/x"));
                store.add(tagged("a/y", "2.3")).unwrap();
                store.add(tagged("a/w", "1")).unwrap();
            })
        };
        let adders: Vec<_> = (0..2)
            .map(|number| {
                let store = store.clone();
                thread::spawn(move || _ = store.add_index(format!("tags {number}"), tags).unwrap())
            })
            .collect();
        check(&store.snapshot());
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        check(&store.snapshot());
        writer.join().unwrap();
        let snapshot = store.snapshot();
        assert_eq!(snapshot.index_names().count(), 3);
        check(&snapshot);
    });
}
