//! The store: what writes do and return, which version it is at, what it keeps alive and what it does not lock.

use std::{
    borrow::Cow,
    fmt::Debug,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use super::{
    is,
    objects::{at, key, keys_of, object, tagged, tags, version},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ObjectMeta, Resource};
use watchkeeper_informer::{KeyError, ResourceVersion, Store, StoreError, StoreOp, StoreOpResult};

fn put(object: &Arc<ConfigMap>) -> StoreOp<ConfigMap> {
    StoreOp::put(Arc::clone(object)).expect("has a key")
}

fn resource_version(store: &Store<ConfigMap>) -> Option<String> {
    let version = store.resource_version();
    assert_eq!(version.as_ref(), store.snapshot().resource_version());
    version.map(|version| version.to_string())
}

#[test]
fn an_added_object_is_found_by_its_key_until_it_is_deleted() {
    let store = Store::new();
    let (first, second) = (at("shop/web", "1"), at("shop/web", "2"));
    assert!(store.add(Arc::clone(&first)).unwrap().is_none());
    assert!(Arc::ptr_eq(&store.get("shop/web").unwrap(), &first));
    assert!(is(&store.update(Arc::clone(&second)).unwrap().unwrap(), &first), "the one before");
    assert!(Arc::ptr_eq(&store.get(key("shop/web")).unwrap(), &second));
    assert!(Arc::ptr_eq(&store.get_in(Some("shop"), "web").unwrap(), &second));
    assert_eq!((store.len(), store.contains("shop/web"), store.contains("web")), (1, true, false));
    assert!(is(&store.delete(&key("shop/web")).unwrap(), &second));
    assert!(store.delete(&key("shop/web")).is_none());
    assert!(store.get("shop/web").is_none());
    assert!(store.is_empty());
}

#[test]
fn a_text_that_is_no_key_finds_nothing() {
    let store = Store::<ConfigMap>::new();
    store.add(at("shop/web", "1")).unwrap();
    for text in ["", "/", "shop/", "/web", "shop/web/", "shop//web", "shop/web/0"] {
        assert!(store.get(text).is_none(), "{text:?}");
    }
}

#[test]
fn a_replacement_with_an_object_without_a_key_is_rejected_as_a_whole() {
    let store = Store::new();
    store.add(at("shop/web", "1")).unwrap();
    let unnamed = Arc::new(ConfigMap::default());
    assert_eq!(store.add(Arc::clone(&unnamed)).unwrap_err(), StoreError::Key(KeyError::NoName));
    assert!(store.replace([at("shop/db", "2"), unnamed], Some(&version("2"))).is_err());
    assert_eq!(
        (keys_of(store.list()), resource_version(&store)),
        (vec!["shop/web".to_owned()], Some("1".to_owned()))
    );
}

#[test]
fn a_batch_is_applied_in_order_and_each_operation_has_a_result() {
    let store = Store::new();
    let before = at("a/kept", "1");
    store.add(Arc::clone(&before)).unwrap();
    let (kept, fleeting, again) = (at("a/kept", "2"), at("a/fleeting", "3"), at("a/fleeting", "5"));
    let changes = [
        put(&kept),
        put(&fleeting),
        StoreOp::delete(key("a/fleeting")),
        put(&again),
        StoreOp::delete(key("a/unknown")),
    ];
    let applied = store.apply(changes, Some(&version("6"))).unwrap();
    let old: Vec<&str> = applied
        .results
        .iter()
        .map(|outcome| match outcome {
            StoreOpResult::Added => "added",
            StoreOpResult::Updated { old } if is(old, &before) => "updated the first",
            StoreOpResult::Deleted { old } if is(old, &fleeting) => "deleted the fleeting",
            StoreOpResult::Absent => "absent",
            StoreOpResult::Updated { .. } | StoreOpResult::Deleted { .. } => "something else",
        })
        .collect();
    assert_eq!(old, ["updated the first", "added", "deleted the fleeting", "added", "absent"]);
    assert_eq!(applied.resource_version, Some(version("6")));
    assert!(Arc::ptr_eq(&store.get("a/fleeting").unwrap(), &again));
}

#[test]
fn a_replacement_reports_added_updated_and_deleted_objects() {
    // Once in place and once on a copy, which the number of objects decides.
    for extra in [0, 500] {
        let store = Store::new();
        let extras: Vec<_> = (0..extra).map(|number| at(&format!("extra/{number}"), "1")).collect();
        let first = [at("a/gone", "1"), at("a/kept", "2"), at("a/changed", "3")];
        let all = first.iter().chain(&extras).cloned();
        let replaced = store.replace(all, Some(&version("10"))).unwrap();
        assert!(replaced.results.iter().all(|outcome| matches!(outcome, StoreOpResult::Added)));
        assert_eq!((replaced.results.len(), replaced.deleted.len()), (3 + extra, 0));

        let second = [at("a/new", "12"), Arc::clone(&first[1]), at("a/changed", "11"), at("a/new", "13")];
        let replaced = store.replace(second.iter().chain(&extras).cloned(), Some(&version("20"))).unwrap();
        let updated = |index: usize, expected: &Arc<ConfigMap>| matches!(&replaced.results[index], StoreOpResult::Updated { old } if is(old, expected));
        assert!(matches!(replaced.results[0], StoreOpResult::Added));
        assert!(updated(1, &first[1]) && updated(2, &first[2]));
        assert!(updated(3, &second[0]), "of two objects of one key the later counts");
        assert_eq!(keys_of(replaced.deleted), ["a/gone"]);
        assert_eq!(store.len(), 3 + extra);
        assert!(Arc::ptr_eq(&store.get("a/new").unwrap(), &second[3]));
        assert!(Arc::ptr_eq(&store.get("a/kept").unwrap(), &first[1]), "the very same object");
        assert_eq!(resource_version(&store).as_deref(), Some("20"));
    }
}

#[test]
fn which_version_the_store_is_at_after_each_write() {
    type Write = fn(&Store<ConfigMap>);
    let writes: [(&str, Write, Option<&str>); 12] = [
        ("nothing", |_| (), None),
        ("an object without a version", |store| _ = store.add(object("a/x")).unwrap(), None),
        ("an add", |store| _ = store.add(at("a/x", "5")).unwrap(), Some("5")),
        ("an update", |store| _ = store.update(at("a/x", "7")).unwrap(), Some("7")),
        ("an add of something older", |store| _ = store.add(at("a/y", "6")).unwrap(), Some("7")),
        ("a delete without a version", |store| _ = store.delete(&key("a/y")), Some("7")),
        (
            "a delete with the version of the event",
            |store| _ = store.apply([StoreOp::delete(key("a/x"))], Some(&version("9"))).unwrap(),
            Some("9"),
        ),
        (
            "a batch without a version",
            |store| _ = store.apply([put(&at("a/z", "99"))], None).unwrap(),
            Some("9"),
        ),
        (
            "a replacement",
            |store| _ = store.replace([at("a/x", "8")], Some(&version("20"))).unwrap(),
            Some("20"),
        ),
        ("a bookmark", |store| store.bookmark(&version("30")).unwrap(), Some("30")),
        ("the same bookmark again", |store| store.bookmark(&version("30")).unwrap(), Some("30")),
        ("a version of another length", |store| store.bookmark(&version("1000")).unwrap(), Some("1000")),
    ];
    let store = Store::new();
    for (what, write, expected) in writes {
        write(&store);
        assert_eq!(resource_version(&store).as_deref(), expected, "after {what}");
    }
}

#[test]
fn a_write_with_an_older_version_is_rejected_as_a_whole() {
    let store = Store::new();
    store.replace([at("a/x", "9"), at("a/y", "10")], Some(&version("10"))).unwrap();
    let backwards = |offered: &str| StoreError::Backwards { held: version("10"), offered: version(offered) };
    for offered in ["9", "010", "other"] {
        let offered_version = version(offered);
        let refused: [Result<(), StoreError>; 3] = [
            store.apply([StoreOp::delete(key("a/x"))], Some(&offered_version)).map(drop),
            store.replace([at("a/z", "3")], Some(&offered_version)).map(drop),
            store.bookmark(&offered_version),
        ];
        for refused in refused {
            assert_eq!(refused, Err(backwards(offered)));
        }
    }
    assert_eq!(keys_of(store.list()), ["a/x", "a/y"]);
    assert_eq!(resource_version(&store).as_deref(), Some("10"));
}

#[test]
fn a_declared_epoch_may_begin_at_any_version() {
    let store = Store::<ConfigMap>::new();
    store.replace([at("a/x", "1200")], Some(&version("1200"))).unwrap();
    let old = store.snapshot();
    store.replace_in_new_epoch([at("a/y", "1000")], Some(&version("1001"))).unwrap();
    let new = store.snapshot();
    assert_eq!((old.epoch(), new.epoch()), (0, 1));
    assert_eq!(
        (old.resource_version(), new.resource_version()),
        (Some(&version("1200")), Some(&version("1001")))
    );
    assert!(store.bookmark(&version("1000")).is_err(), "from there on it does not go back either");
}

#[test]
fn versions_without_an_order_are_taken_as_they_come() {
    let store = Store::new();
    for text in ["b", "a", "7"] {
        store.apply([put(&at("a/x", text))], Some(&version(text))).unwrap();
        assert_eq!(resource_version(&store).as_deref(), Some(text));
    }
    assert!(store.bookmark(&version("c")).is_err(), "once there is an order it is kept to");
}

#[test]
fn a_snapshot_does_not_change_and_reads_like_the_store() {
    let store = Store::new();
    store.add_index("tags", tags).unwrap();
    store
        .replace((0..200).map(|number| tagged(&format!("a/{number}"), "one.two")), Some(&version("1")))
        .unwrap();
    let snapshot = store.snapshot();
    store.replace([tagged("b/other", "three")], Some(&version("2"))).unwrap();
    store.add(at("a/7", "3")).unwrap();

    assert_eq!((snapshot.len(), snapshot.list().len(), snapshot.iter().count()), (200, 200, 200));
    assert_eq!(snapshot.resource_version(), Some(&version("1")));
    assert_eq!(keys_of(snapshot.get("a/7")), ["a/7"]);
    assert_eq!(snapshot.get_in(Some("a"), "7").unwrap().metadata.resource_version, None, "as it was then");
    assert!(!snapshot.contains("b/other") && snapshot.get("b/other").is_none());
    assert_eq!(snapshot.by_index_cached("tags", "two").unwrap().len(), 200);
    assert_eq!(snapshot.index_keys("tags", "two").unwrap().len(), 200);
    assert_eq!(snapshot.by_index_cached("tags", "three").unwrap().len(), 0);
    assert_eq!(snapshot.index_values("tags").unwrap().len(), 2);
    assert_eq!(snapshot.index_names().collect::<Vec<_>>(), ["namespace", "tags"]);
    assert_eq!(snapshot.filter(|object| object.metadata.name.as_deref() == Some("9")).len(), 1);

    assert_eq!(keys_of(store.list()), ["a/7", "b/other"]);
    assert_eq!(store.keys(), [key("a/7"), key("b/other")]);
}

#[test]
fn an_object_is_freed_with_the_last_of_store_and_snapshots() {
    let store = Store::new();
    store.add_index("tags", tags).unwrap();
    let objects: Vec<_> = (0..300).map(|number| tagged(&format!("a/{number}"), "one.two")).collect();
    let watched: Vec<_> = objects.iter().map(Arc::downgrade).collect();
    let alive = || watched.iter().filter(|object| object.strong_count() > 0).count();
    store.replace(objects, None).unwrap();
    let (one, two) = (store.snapshot(), store.snapshot());

    drop(store.add(tagged("a/0", "two")).unwrap());
    drop(store.delete(&key("a/1")));
    assert_eq!(alive(), 300, "the snapshots have them");
    drop(one);
    assert_eq!(alive(), 300, "there is another");
    drop(two);
    assert_eq!(alive(), 298);
    assert!(watched.iter().all(|object| object.strong_count() <= 1), "nothing else holds them");
    drop(store.replace([tagged("a/2", "one")], None).unwrap());
    assert_eq!(alive(), 0);
}

#[test]
fn a_borrowed_read_increments_no_reference_count_and_returns_the_stored_object() {
    let store = Store::new();
    store.add_index("tags", tags).unwrap();
    let object = tagged("a/x", "one");
    store.add(Arc::clone(&object)).unwrap();
    let counted = Arc::strong_count(&object);
    let snapshot = store.snapshot();
    let reads = [snapshot.get("a/x"), snapshot.get_in(Some("a"), "x"), snapshot.iter().next()];
    let more = [snapshot.by_index("tags", "one").unwrap().next(), snapshot.in_namespace("a").next()];
    for read in reads.into_iter().chain(more) {
        assert!(read.is_some_and(|read| Arc::ptr_eq(&read, &object)));
    }
    assert_eq!(Arc::strong_count(&object), counted);
    assert!(snapshot.get("a/xx").is_none() && snapshot.in_namespace("b").next().is_none());
}

/// An object that does something when it is dropped.
struct Probed {
    metadata: ObjectMeta,
    on_drop: Arc<dyn Fn() + Send + Sync>,
}

impl Drop for Probed {
    fn drop(&mut self) {
        (self.on_drop)();
    }
}

impl Resource for Probed {
    type DynamicType = ();
    type Scope = kube_core::DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Probed".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "probed".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Runs `work` on another thread and returns whether it ended. A lock that is held would block it.
fn comes_to_an_end<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, impl Debug> {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    ended.recv_timeout(Duration::from_secs(20))
}

#[test]
fn no_object_is_dropped_under_a_lock() {
    let store: Store<Probed> = Store::new();
    let drops = Arc::new(Mutex::new(Vec::new()));
    let on_drop: Arc<dyn Fn() + Send + Sync> = {
        let (store, drops) = (store.clone(), Arc::clone(&drops));
        Arc::new(move || {
            let store = store.clone();
            let is_free = comes_to_an_end(move || {
                let _ = (store.len(), store.delete(&key("a/unknown")));
            });
            drops.lock().unwrap().push(is_free.is_ok());
        })
    };
    let probed = |name: &str| {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        Arc::new(Probed { metadata, on_drop: Arc::clone(&on_drop) })
    };
    let dropped = || drops.lock().unwrap().len();

    store.replace([probed("x"), probed("y")], Some(&version("5"))).unwrap();
    store.add(probed("x")).unwrap();
    assert_eq!(dropped(), 1, "an update");
    store.delete(&"x".parse().unwrap());
    assert_eq!(dropped(), 2, "a delete");
    assert!(store.apply([StoreOp::put(probed("z")).unwrap()], Some(&version("4"))).is_err());
    assert_eq!(dropped(), 3, "a refused batch");
    assert!(store.replace([probed("z")], Some(&version("4"))).is_err());
    assert_eq!(dropped(), 4, "a refused replacement");
    store.replace((0..300).map(|number| probed(&number.to_string())), None).unwrap();
    assert_eq!(dropped(), 5, "a replacement, of y");
    let snapshot = store.snapshot();
    store.add(probed("7")).unwrap();
    store.replace(Vec::<Probed>::new(), None).unwrap();
    assert_eq!(dropped(), 6, "the 7 that the snapshot had not");
    drop(snapshot);
    assert_eq!(dropped(), 306, "a snapshot");
    assert!(drops.lock().unwrap().iter().all(|&is_free| is_free), "the store was usable from every drop");
}

#[test]
fn an_index_function_may_use_the_store_it_indexes() {
    let store: Store<ConfigMap> = Store::new();
    let inner = store.clone();
    let by_size = store
        .add_index("size", move |object: &ConfigMap| {
            let store = inner.clone();
            let is_nested = object.metadata.namespace.as_deref() == Some("nested");
            comes_to_an_end(move || {
                if !is_nested {
                    store.add(Arc::new(super::objects::object("nested/one"))).unwrap();
                }
                store.len().to_string()
            })
            .map_err(|_| "the store was locked")
        })
        .unwrap();
    store.add(at("a/x", "1")).unwrap();
    assert_eq!(by_size.health().failures, 0);
    assert_eq!(by_size.values(), ["0".into(), "1".into()], "of the nested one and of the outer one");
}

#[test]
fn a_version_is_cheap_to_hold_and_prints_as_it_came() {
    let version = ResourceVersion::new("42").unwrap();
    assert_eq!(
        (version.to_string(), format!("{version:?}"), version.as_str()),
        ("42".into(), "\"42\"".into(), "42")
    );
}
