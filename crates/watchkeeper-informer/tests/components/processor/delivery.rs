//! Handlers that keep up.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use watchkeeper_informer::{
    delta_fifo::DeltaKind::{Added, Replaced, Updated},
    event::Event,
    handler::HandlerOptions,
};

use super::{
    DELETED, Informer, describe,
    fifo_fixture::{incarnation, object},
    settle, watch,
};

#[tokio::test(start_paused = true)]
async fn every_handler_receives_every_event_in_order() {
    let mut informer = Informer::running();
    let listeners = [informer.add(HandlerOptions::new("one")), informer.add(HandlerOptions::new("two"))];
    informer.apply([(Added, object("a", 1)), (Added, object("b", 2))]);
    informer.apply([(Updated, object("a", 3)), (DELETED, object("b", 4))]);
    settle().await;
    for listener in &listeners {
        assert_eq!(listener.take(), ["added a@1", "added b@2", "updated a@1 a@3", "deleted b@4"]);
        assert_eq!(listener.status().delivered, 4);
    }
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_replaced_by_another_of_its_name_is_deleted_and_added() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler"));
    informer.apply([(Added, incarnation("a", "1", 1)), (Replaced, incarnation("a", "2", 5))]);
    settle().await;
    assert_eq!(listener.take(), ["added a@1", "deleted? a@1", "added a@5"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unchanged_objects_are_delivered_only_to_handlers_that_request_them() {
    let mut informer = Informer::running();
    let others = informer.add(HandlerOptions::new("others"));
    let wants_unchanged = informer.add(HandlerOptions::new("unchanged").unchanged());
    informer.apply([(Added, object("a", 1)), (Added, object("b", 2))]);
    informer.apply([(Replaced, object("a", 1)), (Replaced, object("b", 3)), (Replaced, object("a", 1))]);
    settle().await;
    assert_eq!(others.take(), ["added a@1", "added b@2", "updated b@2 b@3"]);
    assert_eq!(
        wants_unchanged.take(),
        ["added a@1", "added b@2", "synced a@1", "updated b@2 b@3", "synced a@1"]
    );
    informer.stop().await;
}

/// A handler is not woken for events of other handlers, and its position in the log advances anyway.
#[tokio::test(start_paused = true)]
async fn events_for_some_handlers_are_not_retained_for_idle_others() {
    let mut informer = Informer::running();
    let idle = informer.add(HandlerOptions::new("idle"));
    let wants_unchanged = informer.add(HandlerOptions::new("unchanged").unchanged());
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    let unchanged = object("a", 1);
    for _ in 0..10 {
        informer.apply([(Replaced, unchanged.clone())]);
    }
    assert_eq!((idle.status().pending, wants_unchanged.status().pending), (0, 10));
    settle().await;
    informer.apply([(Updated, object("a", 2))]);
    settle().await;
    assert_eq!(idle.take(), ["added a@1", "updated a@1 a@2"]);
    assert_eq!(wants_unchanged.take().len(), 12);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_function_is_a_handler_and_sees_the_cached_objects_themselves() {
    let mut informer = Informer::running();
    let received: Arc<Mutex<Vec<Event<ConfigMap>>>> = Arc::default();
    let record = Arc::clone(&received);
    let handler = move |event: &Event<ConfigMap>| record.lock().push(event.clone());
    let options = HandlerOptions::new("function");
    let _ = informer.processor.lock().add(handler, options, None::<Vec<_>>).unwrap();
    informer.apply([(Added, object("a", 1)), (Updated, object("a", 2))]);
    settle().await;
    let received = std::mem::take(&mut *received.lock());
    assert_eq!(received.iter().map(describe).collect::<Vec<_>>(), ["added a@1", "updated a@1 a@2"]);
    assert!(received[1].object().ptr_eq(&informer.cache["a"]));
    informer.stop().await;
}

/// Events without a recipient are not kept.
#[tokio::test(start_paused = true)]
async fn events_are_freed_when_the_last_handler_has_received_them() {
    let mut informer = Informer::running();
    let fast = informer.add(HandlerOptions::new("fast"));
    let slow = informer.add(HandlerOptions::new("slow"));
    slow.block();
    let first = object("a", 1);
    let gone = watch(&first);
    informer.apply([(Added, first)]);
    settle().await;
    informer.apply([(Updated, object("a", 2))]);
    informer.apply([(Updated, object("a", 3))]);
    settle().await;
    fast.take();
    slow.take();
    assert!(gone.strong_count() > 0, "the change from it is not delivered to the slow handler yet");
    slow.unblock();
    settle().await;
    fast.take();
    slow.take();
    assert_eq!(gone.strong_count(), 0);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn more_events_than_fit_one_batch_arrive_all_the_same() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler"));
    informer.apply((0..5_000).map(|n| (Added, object(&format!("{n:04}"), 1))));
    settle().await;
    let expected: Vec<String> = (0..5_000).map(|n| format!("added {n:04}@1")).collect();
    assert_eq!(listener.take(), expected);
    informer.stop().await;
}
