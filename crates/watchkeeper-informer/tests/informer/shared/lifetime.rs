//! Starting, stopping, being dropped.

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
    SharedIndexInformer, Task,
    event::Event,
    status::{Status, SyncError},
};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_stops_the_watch_and_the_handlers() {
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    let (_, registration) = listen(&informer, options());
    let reader = informer.reader();
    let weak = informer.downgrade();
    let other = informer.clone();
    drop(informer);
    server.send(Watch::new().modified(map("a", 11)));
    reached(&other, 11).await;
    drop(other);
    within(server.closed()).await;
    within(registration.remove()).await;
    assert!(weak.upgrade().is_none());
    assert_eq!(reader.list().len(), 1, "a reader keeps what there was");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_the_running_call_and_forevery_task() {
    let running = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&running);
    let spawn = move |task: Task| {
        let counted = Arc::clone(&counted);
        counted.fetch_add(1, Ordering::SeqCst);
        let handle = tokio::runtime::Handle::current();
        drop(handle.spawn(async move {
            task.await;
            counted.fetch_sub(1, Ordering::SeqCst);
        }));
    };
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let server = source.open_watch(Watch::new());
    let informer = SharedIndexInformer::spawned_by(plain(&source), &(), spawn);
    let (entered, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (enters, leaves) = (Arc::clone(&entered), Arc::clone(&leave));
    let handler = move |_: Event<ConfigMap>| {
        let (enters, leaves) = (Arc::clone(&enters), Arc::clone(&leaves));
        async move {
            enters.add_permits(1);
            leaves.acquire().await.unwrap().forget();
        }
    };
    let _registration = informer.add_async_handler(handler, options()).unwrap();
    let (_, _other) = listen(&informer, options());
    informer.start();
    entered.acquire().await.unwrap().forget();
    assert_eq!(running.load(Ordering::SeqCst), 3, "the informer's, and one for each handler");
    let mut shutdown = Box::pin(informer.shutdown());
    assert!(tokio::time::timeout(Duration::from_mins(1), &mut shutdown).await.is_err());
    within(server.closed()).await;
    leave.add_permits(1);
    within(shutdown).await;
    tokio::task::yield_now().await;
    assert_eq!(running.load(Ordering::SeqCst), 0);
    assert!(matches!(informer.status(), Status::Stopped));
    within(informer.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_was_never_started_is_shut_down_and_then_does_not_start() {
    let source = Source::new();
    let informer = SharedIndexInformer::new(plain(&source));
    let (delivered, registration) = listen(&informer, options());
    within(informer.shutdown()).await;
    assert_eq!(within(registration.synced()).await, Err(SyncError::Stopped));
    informer.start();
    assert!(within(informer.wait_for_sync(None)).await.is_err());
    assert_eq!((source.requests().len(), delivered.all().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn starting_twice_is_starting_once() {
    let (informer, source, _server) = synced([map("a", 3)], 10).await;
    informer.start();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(source.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_task_dropped_by_its_runtime_ends_the_informer_and_its_waits() {
    let source = Source::new();
    let informer = SharedIndexInformer::spawned_by(plain(&source), &(), |task: Task| drop(task));
    let (_, registration) = listen(&informer, options());
    informer.start();
    assert!(within(informer.wait_for_sync(None)).await.is_err());
    assert_eq!(within(registration.synced()).await, Err(SyncError::Stopped));
    within(informer.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_hold_its_informer_weakly_and_use_all_of_it() {
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    let weak = informer.downgrade();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let handler = move |event: &Event<ConfigMap>| {
        let informer = weak.upgrade().expect("a handler runs while its informer does");
        // None of these may wait for the handler, or this would deadlock.
        informer.add_handler(|_: &Event<ConfigMap>| {}).unwrap().stop();
        let index = format!("index-{}", counted.fetch_add(1, Ordering::Relaxed));
        informer.add_index(index, |object: &ConfigMap| object.metadata.name.clone()).unwrap();
        assert!(informer.snapshot().len() + informer.reader().len() > 0, "{event:?}");
    };
    let registration = informer.add_handler(handler).unwrap();
    server.send(Watch::new().added(map("b", 11)).added(map("c", 12)));
    reached(&informer, 12).await;
    within(registration.synced()).await.unwrap();
    until(|| seen.load(Ordering::Relaxed) == 3).await;
    within(informer.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn an_index_function_may_add_handlers_and_indexes_to_the_informer_it_indexes() {
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    let weak = informer.downgrade();
    let index = informer
        .add_index("nested", move |object: &ConfigMap| {
            let informer = weak.upgrade().expect("it is held below");
            // The informer holds no lock here, or this would deadlock.
            informer.add_handler(|_: &Event<ConfigMap>| {}).unwrap().stop();
            let name = object.metadata.name.clone();
            let _taken_at_times =
                informer.add_index(name.clone().unwrap(), |_: &ConfigMap| Some("x".to_owned()));
            name
        })
        .unwrap();
    server.send(Watch::new().added(map("b", 11)));
    reached(&informer, 11).await;
    assert_eq!(index.values().iter().map(ToString::to_string).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(informer.reader().by_index("b", "x").unwrap().len(), 2, "added in between, it misses nothing");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_stops_nothing() {
    let source = Source::new();
    source.on_list(List::refused(status(500, "InternalError")));
    source.on_list(List::at("10").item(map("a", 3)));
    let _server = source.open_watch(Watch::new());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let informer = SharedIndexInformer::new(plain(&source).on_watch_error(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        panic!("on purpose");
    }));
    informer.start();
    within(informer.wait_for_sync(None)).await.unwrap();
    assert_eq!((held(&informer), calls.load(Ordering::Relaxed)), (vec!["a@3".to_owned()], 1));
}
