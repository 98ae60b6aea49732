//! Handlers that go, and the end of all of them.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use watchkeeper_informer::{
    delta_fifo::DeltaKind::{Added, Updated},
    event::Event,
    handler::{HandlerOptions, Registration},
    status::SyncError,
};

use super::{Informer, describe, fifo_fixture::object, settle, watch};

#[tokio::test(start_paused = true)]
async fn a_removed_handler_is_not_called_again_and_the_others_are() {
    let mut informer = Informer::running();
    let removed = informer.add(HandlerOptions::new("removed"));
    let stays = informer.add(HandlerOptions::new("stays"));
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    removed.registration.remove().await;
    removed.registration.remove().await;
    informer.apply([(Updated, object("a", 2))]);
    settle().await;
    assert_eq!(removed.take(), ["added a@1"]);
    assert_eq!(stays.take(), ["added a@1", "updated a@1 a@2"]);
    assert_eq!(removed.registration.status(), None);
    assert!(!removed.registration.has_synced());
    assert_eq!(removed.registration.synced().await, Err(SyncError::Stopped));
    assert_eq!(informer.processor.listener_count(), 1);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn removal_waits_for_the_running_call_and_drops_pending_events() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler"));
    listener.block();
    informer.apply([(Added, object("a", 1)), (Added, object("b", 2))]);
    settle().await;
    let mut removal = pin!(listener.registration.remove());
    assert!(removal.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    settle().await;
    assert_eq!(informer.processor.listener_count(), 1);
    listener.unblock();
    removal.await;
    assert_eq!(listener.take(), ["added a@1"]);
    assert_eq!(informer.processor.listener_count(), 0);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_removed_handler_to_be_in_sync_ends_while_its_last_call_runs() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler"));
    listener.block();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    let mut context = Context::from_waker(Waker::noop());
    let mut synced = pin!(listener.registration.synced());
    assert_eq!(synced.as_mut().poll(&mut context), Poll::Pending);
    listener.registration.stop();
    assert_eq!(informer.processor.listener_count(), 1, "the call has not returned");
    assert_eq!(synced.poll(&mut context), Poll::Ready(Err(SyncError::Stopped)));
    listener.unblock();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_handler_that_is_stuck_holds_on_to_nothing_but_its_event() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler").every_event());
    listener.block();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    let objects = [object("a", 2), object("a", 3)];
    let watched = objects.each_ref().map(watch);
    let [second, third] = objects;
    informer.apply([(Updated, second)]);
    listener.registration.stop();
    informer.apply([(Updated, third)]);
    informer.apply([(Updated, object("a", 4))]);
    assert_eq!(watched.map(|object| object.strong_count()), [0, 0]);
    listener.unblock();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_handler_registered_twice_is_two() {
    let mut informer = Informer::running();
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&received);
    let handler = Arc::new(move |event: &Event<ConfigMap>| record.lock().push(describe(event)));
    let add = |name: &str| {
        let mut guard = informer.processor.lock();
        guard.add(Arc::clone(&handler), HandlerOptions::new(name), None::<Vec<_>>).unwrap()
    };
    let (first, _second) = (add("first"), add("second"));
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    first.remove().await;
    informer.apply([(Updated, object("a", 2))]);
    settle().await;
    assert_eq!(*received.lock(), ["added a@1", "added a@1", "updated a@1 a@2"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_remove_itself_and_the_call_it_does_that_in_is_the_last() {
    let mut informer = Informer::running();
    let own: Arc<OnceLock<Registration<ConfigMap>>> = Arc::default();
    let received: Arc<Mutex<Vec<String>>> = Arc::default();

    let (itself, record) = (Arc::clone(&own), Arc::clone(&received));
    let waits = move |event: Event<ConfigMap>| {
        let (itself, record) = (Arc::clone(&itself), Arc::clone(&record));
        async move {
            record.lock().push(describe(&event));
            itself.get().unwrap().remove().await;
            record.lock().push("removed".to_owned());
        }
    };
    let registration =
        informer.processor.lock().add_async(waits, HandlerOptions::new("waits"), None::<Vec<_>>).unwrap();
    own.set(registration.clone()).unwrap();

    let own_plain: Arc<OnceLock<Registration<ConfigMap>>> = Arc::default();
    let (itself, record) = (Arc::clone(&own_plain), Arc::clone(&received));
    let plain = move |event: &Event<ConfigMap>| {
        record.lock().push(describe(event));
        let removal = pin!(itself.get().unwrap().remove());
        let polled = removal.poll(&mut Context::from_waker(Waker::noop()));
        record.lock().push(format!("{}", polled == Poll::Ready(())));
    };
    let plain = informer.processor.lock().add(plain, HandlerOptions::new("plain"), None::<Vec<_>>).unwrap();
    own_plain.set(plain.clone()).unwrap();

    informer.apply([(Added, object("a", 1)), (Added, object("b", 2))]);
    settle().await;
    assert_eq!(*received.lock(), ["added a@1", "removed", "added a@1", "true"]);
    assert_eq!(informer.processor.listener_count(), 0);
    // From outside it still means that no call is running.
    registration.remove().await;
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_add_and_remove_others() {
    let mut informer = Informer::running();
    let other = informer.add(HandlerOptions::new("other"));
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let (processor, registration, record) =
        (informer.processor.clone(), other.registration.clone(), Arc::clone(&received));
    let handler = move |event: &Event<ConfigMap>| {
        registration.stop();
        let record = Arc::clone(&record);
        let added = move |event: &Event<ConfigMap>| record.lock().push(describe(event));
        let snapshot = Some(vec![event.object().clone()]);
        let _ = processor.lock().add(added, HandlerOptions::new("added"), snapshot);
    };
    let options = HandlerOptions::new("handler");
    let _ = informer.processor.lock().add(handler, options, None::<Vec<_>>).unwrap();
    settle().await;
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    assert_eq!(*received.lock(), ["added! a@1"]);
    assert_eq!(informer.processor.listener_count(), 2);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_task_never_ran_is_removed_immediately() {
    let informer = Informer::new(Duration::ZERO);
    let listener = informer.add(HandlerOptions::new("handler"));
    listener.registration.remove().await;
    assert_eq!(informer.processor.listener_count(), 0);
    assert_eq!(listener.registration.synced().await, Err(SyncError::Stopped));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_registration_leaves_the_handler_where_it_is() {
    let mut informer = Informer::running();
    let super::Listener { received, registration, .. } = informer.add(HandlerOptions::new("handler"));
    drop(registration);
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    assert_eq!(received.lock().len(), 1);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_running_calls_and_no_handler_is_called_afterwards() {
    let mut informer = Informer::running();
    let idle = informer.add(HandlerOptions::new("idle"));
    let busy = informer.add(HandlerOptions::new("busy"));
    busy.block();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    informer.apply([(Updated, object("a", 2))]);
    let processor = informer.processor.clone();
    processor.shutdown();
    settle().await;
    assert_eq!(processor.listener_count(), 1, "the busy one");
    assert_eq!(informer.tasks.try_join_next().map(|ended| ended.is_ok()), None, "run waits for it");
    busy.unblock();
    informer.stop().await;
    assert_eq!(idle.take(), ["added a@1"]);
    assert_eq!(busy.take(), ["added a@1"]);
    assert_eq!(busy.registration.synced().await, Err(SyncError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_handler_added_after_the_end_is_rejected_with_a_reason() {
    let informer = Informer::running();
    let processor = informer.processor.clone();
    informer.stop().await;
    let handler = |_: &Event<ConfigMap>| {};
    let refused = processor.lock().add(handler, HandlerOptions::new("late"), None::<Vec<_>>).unwrap_err();
    assert!(refused.to_string().contains("the informer was stopped"), "{refused}");
    processor.shutdown();
    processor.run().await;
}

/// Ends in any order leave no task behind, even if the future that runs the handlers is dropped.
#[tokio::test(start_paused = true)]
async fn dropping_the_run_future_ends_the_handlers() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler"));
    listener.block();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    informer.tasks.shutdown().await;
    listener.registration.remove().await;
    assert_eq!(informer.processor.listener_count(), 0);
    assert_eq!(Arc::strong_count(&listener.received), 1, "the handler is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_added_and_removed_under_load_each_receive_a_consistent_sequence() {
    let mut informer = Informer::running();
    let processor = informer.processor.clone();
    let mut tasks = JoinSet::new();
    for task in 0..20 {
        let processor = processor.clone();
        tasks.spawn(async move {
            for round in 0..10 {
                let versions: Arc<Mutex<Vec<u64>>> = Arc::default();
                let record = Arc::clone(&versions);
                let handler = move |event: &Event<ConfigMap>| {
                    let version = event.object().metadata().resource_version().unwrap();
                    record.lock().push(version.parse().unwrap());
                };
                let options = HandlerOptions::new(format!("{task}/{round}")).max_lag_events(task);
                let registration = processor.lock().add(handler, options, None::<Vec<_>>).unwrap();
                tokio::task::yield_now().await;
                registration.remove().await;
                let delivered = std::mem::take(&mut *versions.lock());
                assert!(delivered.is_sorted_by(|one, next| one < next), "{delivered:?}");
                assert_eq!(Arc::strong_count(&versions), 1, "removed, and still there");
            }
        });
    }
    for version in 1..=2_000 {
        informer.apply([(Updated, object("a", version))]);
        tokio::task::yield_now().await;
    }
    tasks.join_all().await;
    informer.stop().await;
}
