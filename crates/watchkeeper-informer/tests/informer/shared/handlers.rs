//! Handlers: before and after the start, late, slow, panicking, removed, filtered, resynced.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::Semaphore;
use watchkeeper_informer::{
    Cached, SharedIndexInformer,
    event::Event,
    handler::{FilteringHandler, HandlerFuncs},
};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn a_handler_added_before_the_start_receives_the_first_list_and_every_later_change() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)).item(map("b", 4)));
    let server = source.open_watch(Watch::new());
    let informer = SharedIndexInformer::new(plain(&source));
    let (delivered, registration) = listen(&informer, options());
    assert!(!registration.has_synced());
    informer.start();
    assert_eq!(delivered.first(2).await, ["initial a@3", "initial b@4"]);
    server.send(Watch::new().modified(map("a", 11)));
    assert_eq!(delivered.first(3).await[2..], ["update a@3 to a@11"]);
    server.send(Watch::new().added(map("c", 12)).deleted(map("b", 13)));
    assert_eq!(delivered.first(5).await[3..], ["add c@12", "delete b@13"]);
    within(registration.synced()).await.unwrap();
    assert_eq!(held(&informer), ["a@11", "c@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_first_receives_the_cached_objects_and_then_later_events() {
    let (informer, _source, server) = synced([map("a", 3), map("b", 4)], 10).await;
    server.send(Watch::new().modified(map("a", 11)));
    reached(&informer, 11).await;
    let (delivered, registration) = listen(&informer, options());
    within(registration.synced()).await.unwrap();
    server.send(Watch::new().deleted(map("a", 12)));
    assert_eq!(delivered.first(3).await, ["initial a@11", "initial b@4", "delete a@12"]);
}

#[tokio::test(start_paused = true)]
async fn handlers_added_during_changes_miss_no_event_and_receive_none_twice() {
    let (informer, _source, server) = synced([], 1).await;
    let mut listeners = Vec::new();
    for version in 2..200 {
        let key = format!("k{}", version % 7);
        let script = match version % 3 {
            0 => Watch::new().deleted(map(&key, version)),
            _ => Watch::new().modified(map(&key, version)),
        };
        server.send(script);
        // Let it get some of the way, never the same.
        for _ in 0..version % 5 {
            tokio::task::yield_now().await;
        }
        if version % 10 == 0 {
            listeners.push(listen(&informer, options().max_lag_events(version % 4)));
        }
    }
    reached(&informer, 199).await;
    // Every handler checks its own story; here is how it ends.
    for (delivered, registration) in &listeners {
        within(registration.synced()).await.unwrap();
        until(|| registration.status().is_none_or(|status| status.pending == 0)).await;
        assert_eq!(delivered.view(), held(&informer));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_in_sync_has_returned_from_everything_that_was_there() {
    let (informer, _source, _server) = synced([map("a", 3), map("b", 4)], 10).await;
    let gate = Arc::new(Semaphore::new(0));
    let passes = Arc::clone(&gate);
    let handler = move |_: Event<ConfigMap>| {
        let passes = Arc::clone(&passes);
        async move { passes.acquire().await.unwrap().forget() }
    };
    let registration = informer.add_async_handler(handler, options()).unwrap();
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(informer.has_synced() && !registration.has_synced(), "one of two objects is delivered");
    gate.add_permits(1);
    within(registration.synced()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn case_48_a_panicking_handler_is_counted_and_delays_neither_others_nor_its_own_sync() {
    let (informer, _source, server) = synced([map("a", 3), map("b", 4)], 10).await;
    let panics = informer.add_handler(|_: &Event<ConfigMap>| panic!("on purpose")).unwrap();
    let (delivered, _) = listen(&informer, options());
    within(panics.synced()).await.unwrap();
    server.send(Watch::new().added(map("c", 11)));
    delivered.first(3).await;
    reached(&informer, 11).await;
    until(|| panics.status().is_some_and(|status| status.panics == 3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_handler_is_not_called_again_and_a_running_call_is_waited_for() {
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    let (entered, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (entered, leave, calls) = (entered.clone(), leave.clone(), calls.clone());
        move |_: Event<ConfigMap>| {
            let (entered, leave, calls) = (entered.clone(), leave.clone(), calls.clone());
            async move {
                entered.add_permits(1);
                leave.acquire().await.unwrap().forget();
                calls.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let registration = informer.add_async_handler(handler, options()).unwrap();
    entered.acquire().await.unwrap().forget();
    let mut removal = Box::pin(registration.remove());
    assert!(tokio::time::timeout(Duration::from_mins(1), &mut removal).await.is_err(), "it is still running");
    leave.add_permits(10);
    within(removal).await;
    server.send(Watch::new().modified(map("a", 11)));
    reached(&informer, 11).await;
    assert_eq!((calls.load(Ordering::Relaxed), informer.handler_count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_handler_keeps_neither_the_cache_nor_others_waiting() {
    let (informer, _source, server) = synced([map("a", 1)], 1).await;
    let stuck = informer
        .add_async_handler(|_: Event<ConfigMap>| std::future::pending::<()>(), options().max_lag_events(16))
        .unwrap();
    let (delivered, _) = listen(&informer, options().every_event());
    for version in 2..=1_000 {
        server.send(Watch::new().modified(map("a", version)));
    }
    reached(&informer, 1_000).await;
    assert_eq!(delivered.first(1_000).await.len(), 1_000);
    let status = stuck.status().unwrap();
    assert!(status.is_coalescing && status.pending <= 2, "{status:?}");
    // Nothing waits for it when everything ends, either: it is in a call that never returns, and is left
    // behind.
    stuck.stop();
}

#[tokio::test(start_paused = true)]
async fn each_handler_is_resynced_at_its_own_period_without_a_request() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let _server = source.open_watch(Watch::new());
    let informer = SharedIndexInformer::new(plain(&source).resync_period(Duration::from_hours(1)));
    let period = |seconds| options().resync_period(Duration::from_secs(seconds));
    let (never, _) = listen(&informer, period(0));
    let (two, _) = listen(&informer, period(2));
    let (three, _) = listen(&informer, period(4));
    informer.start();
    within(informer.wait_for_sync(None)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(8_500)).await;
    let resyncs =
        |delivered: &Deliveries| delivered.all().iter().filter(|event| *event == "sync a@3").count();
    assert_eq!([&never, &two, &three].map(resyncs), [0, 4, 2]);
    assert_eq!(informer.monitors()[0].1.counters().resyncs, 4, "those of four seconds fall on those of two");
    assert_eq!(source.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_resync_period_no_handler_is_resynced_and_a_relist_delivers_only_changes() {
    let (informer, source, server) = synced([map("a", 3), map("b", 4)], 10).await;
    let (delivered, registration) = listen(&informer, options().resync_period(Duration::from_secs(2)));
    let (unchanged, other) = listen(&informer, options().unchanged());
    within(registration.synced()).await.unwrap();
    within(other.synced()).await.unwrap();
    source.on_list(List::at("20").item(map("a", 3)).item(map("b", 15)).item(map("c", 16)));
    let _again = source.open_watch(Watch::new());
    server.send(Watch::new().error(status(410, "Expired")));
    reached(&informer, 20).await;
    assert_eq!(delivered.first(4).await[2..], ["update b@4 to b@15", "add c@16"]);
    assert_eq!(unchanged.first(5).await[2..], ["sync a@3", "update b@4 to b@15", "add c@16"]);
}

#[tokio::test(start_paused = true)]
async fn a_filtering_handler_receives_a_consistent_sequence_of_matching_objects() {
    let labelled = |key: &str, version, label: Option<&str>| {
        let mut object = map(key, version);
        object.metadata.labels = label.map(|label| [("app".to_owned(), label.to_owned())].into());
        object
    };
    let (informer, _source, server) = synced([labelled("a", 3, Some("web"))], 10).await;
    let received = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let received = Arc::clone(&received);
        move |object: &Cached<ConfigMap>| received.lock().push(format!("{what} {}", label(object)))
    };
    let (add, update, delete) = (note("add"), note("update"), note("delete"));
    let inside = HandlerFuncs::new()
        .on_add(move |object, _| add(object))
        .on_update(move |_, new| update(new))
        .on_delete(move |deleted| delete(&deleted.object));
    let is_web = |object: &ConfigMap| {
        object
            .metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.get("app").is_some_and(|app| app == "web"))
    };
    let registration = informer.add_handler(FilteringHandler::new(is_web, inside)).unwrap();
    server.send(
        Watch::new()
            .modified(labelled("a", 11, Some("db")))
            .modified(labelled("a", 12, Some("web")))
            .added(labelled("b", 13, None))
            .deleted(labelled("a", 14, Some("web"))),
    );
    reached(&informer, 14).await;
    within(registration.synced()).await.unwrap();
    until(|| registration.status().is_some_and(|status| status.pending == 0)).await;
    assert_eq!(*received.lock(), ["add a@3", "delete a@3", "add a@12", "delete a@14"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_handler_added_twice_is_two_and_after_the_end_none_is_taken() {
    let (informer, _source, _server) = synced([map("a", 3)], 10).await;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let handler = Arc::new(move |_: &Event<ConfigMap>| _ = counted.fetch_add(1, Ordering::Relaxed));
    let both = [
        informer.add_handler(Arc::clone(&handler)).unwrap(),
        informer.add_handler(Arc::clone(&handler)).unwrap(),
    ];
    for registration in &both {
        within(registration.synced()).await.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
    within(both[0].remove()).await;
    within(both[0].remove()).await;
    assert_eq!(informer.handler_count(), 1);
    within(informer.shutdown()).await;
    let refused = informer.add_handler(handler).unwrap_err();
    assert!(refused.to_string().contains("the informer was stopped"), "{refused}");
    within(both[1].remove()).await;
}
