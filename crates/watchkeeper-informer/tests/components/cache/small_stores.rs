//! The small stores: FIFO, undelta, expiring.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use super::objects::{at, key, keys_of, version};
use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::small_stores::{ExpiringCache, Fifo, FifoItem, UndeltaStore};

fn shown(popped: Option<FifoItem<ConfigMap>>) -> Option<(String, String, bool)> {
    let FifoItem { object, is_in_initial_list, .. } = popped?;
    let key = keys_of([Arc::clone(&object)]).remove(0);
    Some((key, object.metadata.resource_version.clone().unwrap_or_default(), is_in_initial_list))
}

fn popped(fifo: &Fifo<ConfigMap>) -> Vec<(String, String)> {
    std::iter::from_fn(|| shown(fifo.try_pop())).map(|(key, version, _)| (key, version)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, version)| ((*key).to_owned(), (*version).to_owned())).collect()
}

#[test]
fn a_fifo_pops_the_latest_state_at_the_place_of_the_first() {
    let fifo = Fifo::new();
    fifo.add(at("a", "1")).unwrap();
    fifo.add(at("b", "2")).unwrap();
    fifo.update(at("a", "3")).unwrap();
    assert_eq!((fifo.len(), fifo.list().len(), fifo.keys()), (2, 2, vec![key("a"), key("b")]));
    assert_eq!(fifo.get("a").unwrap().metadata.resource_version.as_deref(), Some("3"));
    assert_eq!(popped(&fifo), pairs(&[("a", "3"), ("b", "2")]));
    fifo.add(at("a", "4")).unwrap();
    assert_eq!(popped(&fifo), pairs(&[("a", "4")]), "popped ones can come again");
}

#[test]
fn a_fifo_drops_deleted_objects_and_a_re_added_key_keeps_its_position() {
    let fifo = Fifo::new();
    for (name, version) in [("a", "1"), ("b", "2"), ("c", "3")] {
        fifo.add(at(name, version)).unwrap();
    }
    fifo.delete(&key("a"));
    fifo.delete(&key("b"));
    assert_eq!((fifo.len(), fifo.get("a").is_none()), (1, true));
    fifo.add(at("b", "4")).unwrap();
    assert_eq!(popped(&fifo), pairs(&[("b", "4"), ("c", "3")]));
    assert!(fifo.is_empty());
}

#[test]
fn after_a_replacement_only_its_objects_are_popped() {
    let fifo = Fifo::new();
    fifo.add(at("old", "1")).unwrap();
    fifo.replace([at("b", "2"), at("a", "3"), at("b", "4")]).unwrap();
    assert_eq!(popped(&fifo), pairs(&[("b", "4"), ("a", "3")]), "in the order of the list");
    assert!(fifo.replace([Arc::new(ConfigMap::default())]).is_err());
}

#[test]
fn a_fifo_has_synced_when_the_first_list_is_popped_or_something_else_came_first() {
    type Steps = fn(&Fifo<ConfigMap>);
    let cases: [(&str, Steps, bool); 9] = [
        ("nothing", |_| (), false),
        ("an add", |fifo| fifo.add(at("a", "1")).unwrap(), true),
        ("a delete", |fifo| fifo.delete(&key("a")), true),
        ("an empty list", |fifo| fifo.replace([]).unwrap(), true),
        ("a list of two", |fifo| fifo.replace([at("a", "1"), at("b", "1")]).unwrap(), false),
        (
            "a list of two, one popped",
            |fifo| {
                fifo.replace([at("a", "1"), at("b", "1")]).unwrap();
                fifo.try_pop();
            },
            false,
        ),
        (
            "a list of two, both popped",
            |fifo| {
                fifo.replace([at("a", "1"), at("b", "1")]).unwrap();
                assert_eq!(shown(fifo.try_pop()), Some(("a".into(), "1".into(), true)));
                assert_eq!(shown(fifo.try_pop()), Some(("b".into(), "1".into(), true)));
            },
            true,
        ),
        (
            "a list of one key twice, popped once",
            |fifo| {
                fifo.replace([at("a", "1"), at("a", "2")]).unwrap();
                fifo.try_pop();
            },
            true,
        ),
        (
            "a list of one, deleted and passed over",
            |fifo| {
                fifo.replace([at("a", "1")]).unwrap();
                fifo.delete(&key("a"));
                assert!(fifo.try_pop().is_none());
            },
            true,
        ),
    ];
    for (what, steps, expected) in cases {
        let fifo = Fifo::new();
        steps(&fifo);
        assert_eq!(fifo.has_synced(), expected, "after {what}");
    }
    let fifo = Fifo::new();
    fifo.replace([at("a", "1")]).unwrap();
    fifo.try_pop();
    fifo.add(at("b", "1")).unwrap();
    assert_eq!(shown(fifo.try_pop()), Some(("b".into(), "1".into(), false)), "no longer the initial list");
}

#[tokio::test]
async fn waiting_poppers_get_one_object_each_and_end_when_the_fifo_is_closed() {
    let fifo = Arc::new(Fifo::new());
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let fifo = Arc::clone(&fifo);
        waiting.spawn(async move { shown(fifo.pop().await).map(|(key, ..)| key) });
    }
    tokio::task::yield_now().await;
    fifo.replace([at("a", "1"), at("b", "1")]).unwrap();
    let mut got = [waiting.join_next().await.unwrap().unwrap(), waiting.join_next().await.unwrap().unwrap()];
    got.sort_unstable();
    assert_eq!(got, [Some("a".to_owned()), Some("b".to_owned())]);
    fifo.close();
    assert_eq!(waiting.join_next().await.unwrap().unwrap(), None);

    fifo.add(at("c", "1")).unwrap();
    assert!(fifo.is_closed());
    assert!(fifo.pop().await.is_some(), "a closed one is still emptied");
    assert!(fifo.pop().await.is_none());
}

#[test]
fn a_pop_that_was_given_up_takes_no_wake_up_with_it() {
    let fifo = Fifo::new();
    let mut context = Context::from_waker(Waker::noop());
    let mut kept = pin!(fifo.pop());
    {
        let mut given_up = Box::pin(fifo.pop());
        assert!(given_up.as_mut().poll(&mut context).is_pending());
        assert!(kept.as_mut().poll(&mut context).is_pending());
        fifo.add(at("a", "1")).unwrap();
    }
    let Poll::Ready(popped) = kept.as_mut().poll(&mut context) else { panic!("the object is not popped") };
    assert_eq!(shown(popped), Some(("a".into(), "1".into(), false)));
}

#[test]
fn an_undelta_store_passes_its_whole_contents_on_after_each_change() {
    let pushed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&pushed);
    let store = UndeltaStore::new(move |contents: &watchkeeper_informer::Snapshot<ConfigMap>| {
        seen.lock().unwrap().push(keys_of(contents.iter()).join(" "));
    });
    store.add(at("a", "1")).unwrap();
    store.add(at("b", "2")).unwrap();
    store.update(at("a", "3")).unwrap();
    store.delete(&key("a"));
    store.replace([at("c", "4"), at("d", "5")], Some(&version("6"))).unwrap();
    assert_eq!(*pushed.lock().unwrap(), ["a", "a b", "a b", "b", "c d"]);
    assert!(store.add(Arc::new(ConfigMap::default())).is_err());
    assert!(store.replace([], Some(&version("5"))).is_err());
    assert_eq!(pushed.lock().unwrap().len(), 5, "what is refused is not passed on");
    assert_eq!(store.snapshot().resource_version(), Some(&version("6")));
    assert!(store.get("c").is_some());
}

#[test]
fn the_function_of_an_undelta_store_may_write_to_it_and_never_runs_concurrently() {
    let store: Arc<OnceLock<UndeltaStore<ConfigMap>>> = Arc::default();
    let (inner, pushed) = (Arc::clone(&store), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&pushed);
    let filled = store.get_or_init(|| {
        UndeltaStore::new(move |contents: &watchkeeper_informer::Snapshot<ConfigMap>| {
            let mut seen = seen.try_lock().expect("only one call at a time");
            seen.push(contents.len());
            if contents.len() < 4 {
                inner.get().unwrap().add(at(&contents.len().to_string(), "1")).unwrap();
            }
        })
    });
    filled.add(at("first", "1")).unwrap();
    assert_eq!(*pushed.lock().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn changes_during_a_call_are_passed_on_together_after_it() {
    let ((entered, has_entered), (go_on, may_go_on)) = (mpsc::channel(), mpsc::channel::<()>());
    let pushed = Arc::new(Mutex::new(Vec::new()));
    let (seen, may_go_on) = (Arc::clone(&pushed), Mutex::new(may_go_on));
    let store = UndeltaStore::new(move |contents: &watchkeeper_informer::Snapshot<ConfigMap>| {
        seen.lock().unwrap().push(contents.len());
        if contents.len() == 1 {
            entered.send(()).unwrap();
            may_go_on.lock().unwrap().recv().unwrap();
        }
    });
    thread::scope(|scope| {
        scope.spawn(|| store.add(at("a", "1")).unwrap());
        has_entered.recv().unwrap();
        for name in ["b", "c", "d"] {
            store.add(at(name, "1")).unwrap();
        }
        assert_eq!(*pushed.lock().unwrap(), [1], "others are not kept waiting");
        go_on.send(()).unwrap();
    });
    assert_eq!(*pushed.lock().unwrap(), [1, 4]);
}

#[test]
fn a_function_that_panics_is_called_again_at_the_next_change() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let store = UndeltaStore::new(move |contents: &watchkeeper_informer::Snapshot<ConfigMap>| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert_ne!(contents.len(), 1, "one is not enough");
    });
    thread::scope(|scope| assert!(scope.spawn(|| store.add(at("a", "1"))).join().is_err()));
    store.add(at("b", "1")).unwrap();
    assert_eq!((calls.load(Ordering::Relaxed), store.snapshot().len()), (2, 2));
}

/// A cache with a life of ten seconds, and its clock in seconds.
fn expiring(ttl: u64) -> (ExpiringCache<ConfigMap>, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(1000));
    let now = Arc::clone(&clock);
    (
        ExpiringCache::new(Duration::from_secs(ttl), move || {
            Duration::from_secs(now.load(Ordering::Relaxed))
        }),
        clock,
    )
}

#[test]
fn an_object_is_gone_after_its_time_and_not_before() {
    let (cache, clock) = expiring(10);
    cache.add(at("a", "1")).unwrap();
    clock.store(1005, Ordering::Relaxed);
    cache.add(at("b", "1")).unwrap();
    clock.store(1010, Ordering::Relaxed);
    assert_eq!(keys_of(cache.list()), ["a", "b"], "to the last moment");
    clock.store(1011, Ordering::Relaxed);
    assert!(cache.get("a").is_none());
    assert_eq!((keys_of(cache.list()), cache.keys()), (vec!["b".to_owned()], vec![key("b")]));
    clock.store(1000, Ordering::Relaxed);
    assert!(cache.get("b").is_some() && cache.get("a").is_none(), "gone is gone, whatever the clock does");
}

#[test]
fn adding_again_begins_the_time_anew_and_replacing_begins_it_for_all() {
    let (cache, clock) = expiring(10);
    cache.add(at("a", "1")).unwrap();
    clock.store(1008, Ordering::Relaxed);
    cache.add(at("a", "2")).unwrap();
    clock.store(1018, Ordering::Relaxed);
    assert!(cache.get("a").is_some());
    cache.replace([at("b", "1"), at("c", "1")]).unwrap();
    assert!(cache.get("a").is_none());
    clock.store(1028, Ordering::Relaxed);
    assert_eq!(keys_of(cache.list()), ["b", "c"]);
    assert!(cache.replace([Arc::new(ConfigMap::default())]).is_err());
    clock.store(1029, Ordering::Relaxed);
    assert!(cache.delete(&key("b")).is_none(), "too late");
    assert!(cache.list().is_empty());
}

#[test]
fn expired_objects_are_freed() {
    let (cache, clock) = expiring(10);
    let objects = ["a", "b", "c"].map(|name| at(name, "1"));
    let watched = objects.each_ref().map(Arc::downgrade);
    let alive = || watched.iter().filter(|object| object.strong_count() > 0).count();
    cache.replace(objects).unwrap();
    clock.store(1011, Ordering::Relaxed);
    assert_eq!(alive(), 3, "nothing has been read");
    assert!(cache.get("a").is_none());
    assert_eq!(alive(), 2);
    assert_eq!((cache.purge(), alive(), cache.purge()), (2, 0, 0));
}

#[test]
fn a_lifetime_of_zero_never_expires() {
    let (cache, clock) = expiring(0);
    cache.add(at("a", "1")).unwrap();
    clock.store(u64::MAX, Ordering::Relaxed);
    assert!(cache.get("a").is_some() && cache.delete(&key("a")).is_some());
}
