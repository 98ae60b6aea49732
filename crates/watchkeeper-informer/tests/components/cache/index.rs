//! Indexes: what they list, when they are added, and what happens when their function fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use super::objects::{at, expected_index, key, keys_of, label, labelled, object, tagged, tags, version};
use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{EachOf, Index, IndexError, NAMESPACE_INDEX, Store};

/// The complete contents of an index.
fn contents(index: &Index<ConfigMap>) -> BTreeMap<String, Vec<String>> {
    let values = index.values();
    values.iter().map(|value| (value.to_string(), keys_of(index.get(value)))).collect()
}

fn expected(lines: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    lines
        .iter()
        .map(|(value, keys)| ((*value).to_owned(), keys.iter().map(|key| (*key).to_owned()).collect()))
        .collect()
}

#[test]
fn several_values_are_kept_exact_through_adds_updates_and_deletes() {
    let store = Store::new();
    let index = store.add_index("tags", tags).unwrap();
    store.add(tagged("one", "ernie.bert")).unwrap();
    store.add(tagged("two", "bert.oscar")).unwrap();
    store.add(tagged("three", "ernie.elmo.oscar")).unwrap();
    let all = [
        ("bert", &["one", "two"][..]),
        ("elmo", &["three"]),
        ("ernie", &["one", "three"]),
        ("oscar", &["three", "two"]),
    ];
    assert_eq!(contents(&index), expected(&all));

    store.update(tagged("three", "elmo")).unwrap();
    let moved =
        [("bert", &["one", "two"][..]), ("elmo", &["three"]), ("ernie", &["one"]), ("oscar", &["two"])];
    assert_eq!(contents(&index), expected(&moved));

    store.update(tagged("two", "")).unwrap();
    store.delete(&key("one"));
    assert_eq!(contents(&index), expected(&[("elmo", &["three"])]), "emptied values are gone");
    assert_eq!((index.count("elmo"), index.count("bert")), (1, 0));
    assert!(index.get("bert").is_empty() && index.keys("bert").is_empty());
    assert_eq!(index.keys("elmo"), [key("three")]);
}

#[test]
fn a_value_repeated_by_the_function_counts_once() {
    let store = Store::new();
    let index = store.add_index("tags", tags).unwrap();
    store.add(tagged("one", "a.a")).unwrap();
    store.add(tagged("two", "b.a.b")).unwrap();
    assert_eq!(contents(&index), expected(&[("a", &["one", "two"]), ("b", &["two"])]));
}

#[test]
fn every_form_an_index_function_may_return() {
    let store = Store::new();
    let name = |object: &ConfigMap| object.metadata.name.clone();
    store.add_index("option", name).unwrap();
    store.add_index("string", |object: &ConfigMap| object.metadata.name.clone().unwrap()).unwrap();
    store.add_index("constant", |_: &ConfigMap| "x").unwrap();
    store.add_index("array", |_: &ConfigMap| ["x", "y"]).unwrap();
    store.add_index("set", |_: &ConfigMap| BTreeSet::from(["x", "y"])).unwrap();
    store.add_index("iterator", |_: &ConfigMap| EachOf((0..3).map(|number| number.to_string()))).unwrap();
    store.add_index("result", move |object: &ConfigMap| name(object).ok_or("no name")).unwrap();
    store.add(Arc::new(object("x"))).unwrap();
    for (index, values) in [
        ("option", &["x"][..]),
        ("string", &["x"]),
        ("constant", &["x"]),
        ("array", &["x", "y"]),
        ("set", &["x", "y"]),
        ("iterator", &["0", "1", "2"]),
        ("result", &["x"]),
    ] {
        let listed = store.index_values(index).unwrap();
        assert_eq!(listed.iter().map(|value| &**value).collect::<Vec<_>>(), values, "{index}");
    }
}

#[test]
fn every_store_has_an_index_by_namespace() {
    let store = Store::<ConfigMap>::new();
    for key in ["a/x", "a/y", "b/x", "cluster-wide"] {
        store.add(at(key, "1")).unwrap();
    }
    assert_eq!(keys_of(store.by_index(NAMESPACE_INDEX, "a").unwrap()), ["a/x", "a/y"]);
    assert_eq!(store.index_values(NAMESPACE_INDEX).unwrap(), ["a".into(), "b".into()], "only namespaces");
    assert_eq!(store.index_keys(NAMESPACE_INDEX, "a").unwrap(), [key("a/x"), key("a/y")]);
}

#[test]
fn an_index_added_later_has_the_objects_that_were_there() {
    let store = Store::new();
    store.replace((0..1000).map(|number| tagged(&format!("a/{number}"), "old.every")), None).unwrap();
    let index = store.add_index("tags", tags).unwrap();
    assert_eq!((index.count("old"), index.count("every")), (1000, 1000));
    store.add(tagged("a/0", "new")).unwrap();
    assert_eq!((index.count("old"), index.count("new")), (999, 1));
    assert_eq!(keys_of(store.index("tags").unwrap().get("new")), ["a/0"]);
}

#[test]
fn an_index_added_while_the_store_changes_misses_nothing_and_is_never_seen_half_done() {
    let store = Store::new();
    let generation = |number: u32| {
        (0..500).map(move |object| tagged(&format!("a/{object}"), &format!("g{}.all", number % 7)))
    };
    store.replace(generation(0), None).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let objects: Vec<_> = generation(number).collect();
                match number % 3 {
                    0 => _ = store.replace(objects, None).unwrap(),
                    1 => objects.into_iter().step_by(50).for_each(|object| _ = store.add(object).unwrap()),
                    _ => {
                        (0..500)
                            .step_by(60)
                            .for_each(|object| _ = store.delete(&key(&format!("a/{object}"))));
                    }
                }
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let snapshot = store.snapshot();
                for name in snapshot.index_names().skip(1) {
                    assert_eq!(keys_of(snapshot.by_index(name, "all").unwrap()), keys_of(snapshot.iter()));
                }
            }
        });
        for number in 0..10 {
            store.add_index(format!("index {number}"), tags).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let snapshot = store.snapshot();
    for number in 0..10 {
        let index = store.index(&format!("index {number}")).unwrap();
        assert_eq!(contents(&index), expected_index(snapshot.iter(), tags));
    }
}

#[test]
fn objects_stored_while_an_index_is_being_added_are_in_it_as_they_are_then() {
    let store = Store::new();
    store.replace([tagged("a/first", "x"), tagged("a/changed", "x")], None).unwrap();
    let ((at_work, started), (go_on, may_go_on)) = (mpsc::channel(), mpsc::channel::<()>());
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let store = &store;
    // What is moved in is dropped when an assertion fails, and lets the other thread go.
    thread::scope(move |scope| {
        let adding = scope.spawn(move || {
            store.add_index("tags", move |object: &ConfigMap| {
                if object.metadata.name.as_deref() == Some("first") {
                    at_work.send(()).unwrap();
                    may_go_on.lock().unwrap().recv().unwrap();
                }
                tags(object)
            })
        });
        started.recv().unwrap();
        // The function is in the middle of the first object, and has the second as it was still before it.
        assert!(matches!(store.index("tags"), Err(IndexError::Unknown { .. })), "half done");
        assert_eq!(store.index_names(), ["namespace"]);
        assert!(matches!(store.add_index("tags", tags), Err(IndexError::Duplicate { .. })), "but taken");
        store.add(tagged("a/second", "x")).unwrap();
        store.delete(&key("a/first"));
        store.add(tagged("a/third", "x")).unwrap();
        store.add(tagged("a/changed", "y")).unwrap();
        go_on.send(()).unwrap();
        let index = adding.join().unwrap().unwrap();
        assert_eq!(contents(&index), expected(&[("x", &["a/second", "a/third"]), ("y", &["a/changed"])]));
    });
}

#[test]
fn duplicate_and_unknown_names_are_different_errors() {
    let store: Store<ConfigMap> = Store::new();
    store.add_index("tags", tags).unwrap();
    assert_eq!(store.add_index("tags", tags).unwrap_err(), IndexError::Duplicate { name: "tags".to_owned() });
    assert!(store.add_index(NAMESPACE_INDEX, tags).is_err());
    let unknown = IndexError::Unknown {
        name: "node".to_owned(),
        known: vec!["namespace".to_owned(), "tags".to_owned()],
    };
    assert_eq!(store.by_index("node", "n1").unwrap_err(), unknown);
    assert_eq!(store.index_keys("node", "n1").unwrap_err(), unknown);
    assert_eq!(store.index_values("node").unwrap_err(), unknown);
    assert_eq!(store.snapshot().by_index("node", "n1").err(), Some(unknown));
}

#[test]
fn an_object_the_function_fails_on_is_stored_and_not_in_that_index() {
    let store = Store::new();
    let index = store
        .add_index("strict", |object: &ConfigMap| match label(object, "kind") {
            Some("bad") => Err("the label is bad"),
            Some("worse") => panic!("no such kind: {}", "worse"),
            Some("worst") => std::panic::panic_any(7),
            other => Ok(other.map(str::to_owned)),
        })
        .unwrap();
    let kind = |key: &str, kind: &str| labelled(key, &[("kind", kind)]);
    store.add(kind("a/x", "good")).unwrap();
    assert_eq!((index.health().failures, index.health().last_failure), (0, None));

    for (failures, (bad, reason)) in [
        ("bad", "the label is bad"),
        ("worse", "panicked: no such kind: worse"),
        ("worst", "panicked: (payload is not a string)"),
    ]
    .into_iter()
    .enumerate()
    {
        store.add(kind("a/x", "good")).unwrap();
        assert_eq!(keys_of(index.get("good")), ["a/x"]);
        store.add(kind("a/x", bad)).unwrap();
        assert!(index.values().is_empty(), "its earlier value is not kept");
        assert!(store.contains("a/x"));
        assert_eq!(keys_of(store.by_index(NAMESPACE_INDEX, "a").unwrap()), ["a/x"], "other indexes have it");
        let health = index.health();
        assert_eq!(health.failures, failures as u64 + 1);
        let failure = health.last_failure.unwrap();
        assert_eq!(
            (failure.index.as_str(), failure.key.as_str(), failure.reason.as_str()),
            ("strict", "a/x", reason)
        );
    }
    assert_eq!(
        index.health().last_failure.unwrap().to_string(),
        r#"index "strict" could not index "a/x": panicked: (payload is not a string)"#
    );
}

#[test]
fn objects_like_another_are_those_that_share_a_value_with_it() {
    let store = Store::new();
    let index = store.add_index("tags", tags).unwrap();
    for (key, tags) in [("one", "a.b"), ("two", "b.c"), ("three", "c"), ("four", "")] {
        store.add(tagged(key, tags)).unwrap();
    }
    assert_eq!(keys_of(index.like(&tagged("other", "a.b"))), ["one", "two"], "each once");
    assert_eq!(keys_of(index.like(&tagged("other", "c.d"))), ["three", "two"]);
    assert!(index.like(&tagged("other", "")).is_empty());
}

#[test]
fn a_function_that_changes_its_mind_leaves_nothing_behind() {
    let store = Store::new();
    let says_left = Arc::new(AtomicBool::new(true));
    let mind = Arc::clone(&says_left);
    let index = store
        .add_index("fickle", move |_: &ConfigMap| if mind.load(Ordering::Relaxed) { "left" } else { "right" })
        .unwrap();
    store.add(at("a/x", "1")).unwrap();
    store.add(at("a/y", "1")).unwrap();
    says_left.store(false, Ordering::Relaxed);
    store.delete(&key("a/x"));
    assert_eq!(contents(&index), expected(&[("left", &["a/y"])]), "what was put in is taken out");
    store.add(at("a/y", "2")).unwrap();
    assert_eq!(contents(&index), expected(&[("right", &["a/y"])]));
}

#[test]
fn an_index_with_one_value_foreverything_stays_exact_when_it_is_large() {
    let store = Store::new();
    let index = store.add_index("all", |_: &ConfigMap| "x").unwrap();
    store.replace((0..3000).map(|number| at(&format!("a/{number}"), "1")), Some(&version("1"))).unwrap();
    let snapshot = store.snapshot();
    for number in (0..3000).step_by(3) {
        store.delete(&key(&format!("a/{number}")));
    }
    assert_eq!(keys_of(index.get("x")), keys_of(store.list()));
    assert_eq!((index.count("x"), snapshot.by_index_cached("all", "x").unwrap().len()), (2000, 3000));
}
