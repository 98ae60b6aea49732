//! Handlers that panic.

use std::{
    future::Ready,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{Cached, delta_fifo::DeltaKind::Added, event::Event, handler::HandlerOptions};

use super::{Informer, fifo_fixture::object, settle};

fn objects(count: u64) -> Vec<Cached<ConfigMap>> {
    (0..count).map(|n| object(&n.to_string(), 1)).collect()
}

/// In client-go a handler that panicked never gets in sync (kubernetes#129024).
#[tokio::test(start_paused = true)]
async fn case_48_a_panic_is_counted_and_neither_ends_the_handler_nor_keeps_it_from_getting_in_sync() {
    let mut informer = Informer::running();
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let handler = move |_: &Event<ConfigMap>| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("as tests do");
    };
    let options = HandlerOptions::new("panics");
    let registration = informer.processor.lock().add(handler, options, None::<Vec<_>>).unwrap();
    let other = informer.add(HandlerOptions::new("does not"));
    informer.first_list(&objects(20));
    settle().await;
    assert!(registration.has_synced());
    let status = registration.status().unwrap();
    assert_eq!((status.panics, status.delivered, calls.load(Ordering::Relaxed)), (20, 20, 20));
    assert_eq!(other.take().len(), 20);
    assert_eq!(other.status().panics, 0);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_waiting_handler_is_caught_before_and_after_it_waits() {
    let mut informer = Informer::running();
    let at_once = |event: Event<ConfigMap>| -> Ready<()> { panic!("at once: {event:?}") };
    let later = |event: Event<ConfigMap>| async move {
        tokio::task::yield_now().await;
        panic!("later: {event:?}");
    };
    let mut guard = informer.processor.lock();
    let at_once = guard.add_async(at_once, HandlerOptions::new("at once"), None::<Vec<_>>).unwrap();
    let later = guard.add_async(later, HandlerOptions::new("later"), Some(objects(3))).unwrap();
    drop(guard);
    informer.apply([(Added, object("a", 1)), (Added, object("b", 1))]);
    settle().await;
    assert_eq!(at_once.status().unwrap().panics, 2);
    assert_eq!(later.status().unwrap().panics, 5);
    informer.stop().await;
}
