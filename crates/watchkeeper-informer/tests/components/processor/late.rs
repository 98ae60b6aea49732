//! Handlers that come late, and when a handler is in sync.

use watchkeeper_informer::{
    delta_fifo::DeltaKind::{Added, Updated},
    handler::HandlerOptions,
};

use super::{DELETED, Informer, fifo_fixture::object, settle};

#[tokio::test(start_paused = true)]
async fn a_late_handler_receives_the_cached_objects_and_then_later_events() {
    let mut informer = Informer::running();
    informer.first_list(&[object("a", 1), object("b", 2)]);
    informer.apply([(Updated, object("a", 3))]);
    let listener = informer.add(HandlerOptions::new("late"));
    assert!(!listener.registration.has_synced());
    informer.apply([(DELETED, object("b", 4)), (Added, object("c", 5))]);
    settle().await;
    assert_eq!(listener.take(), ["added! a@3", "added! b@2", "deleted b@4", "added c@5"]);
    assert!(listener.registration.has_synced());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_in_sync_when_it_has_returned_from_the_last_initial_event() {
    let mut informer = Informer::running();
    let early = informer.add(HandlerOptions::new("early"));
    early.block();
    informer.first_list(&[object("a", 1), object("b", 2)]);
    let late = informer.add(HandlerOptions::new("late"));
    late.block();
    for passed in 0..2 {
        settle().await;
        for listener in [&early, &late] {
            assert!(!listener.registration.has_synced(), "after {passed}");
            listener.pass(1);
        }
    }
    settle().await;
    assert!(early.registration.has_synced() && late.registration.has_synced());
    assert!(early.take().iter().chain(&late.take()).all(|received| received.starts_with("added!")));
    early.unblock();
    late.unblock();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_not_in_sync_before_its_informer_is() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler"));
    settle().await;
    assert!(!listener.registration.has_synced());
    let waiting = {
        let registration = listener.registration.clone();
        informer.tasks.spawn(async move { registration.synced().await.unwrap() })
    };
    settle().await;
    assert!(!waiting.is_finished());
    informer.first_list(&[]);
    settle().await;
    assert!(waiting.is_finished());
    assert!(listener.registration.has_synced());
    informer.stop().await;
}

/// Events for other handlers do not wake a handler that waits, so it does not report that it has passed them.
#[tokio::test(start_paused = true)]
async fn a_waiting_handler_that_no_event_of_the_first_list_concerns_is_in_sync() {
    let mut informer = Informer::running();
    let passed_over = informer.add(HandlerOptions::new("passed over"));
    let concerned = informer.add(HandlerOptions::new("concerned").unchanged());
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    informer.first_list(&[object("a", 1)]);
    settle().await;
    assert_eq!(passed_over.take(), ["added a@1"]);
    assert_eq!(concerned.take(), ["added a@1", "synced a@1"]);
    assert!(passed_over.registration.has_synced() && concerned.registration.has_synced());
    informer.stop().await;
}

/// The sync does not wait for objects of the initial list that were deleted before a slow handler received
/// them.
#[tokio::test(start_paused = true)]
async fn a_handler_whose_initial_objects_were_deleted_before_delivery_is_synced() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler").max_lag_events(0));
    listener.block();
    informer.apply([(Added, object("start", 1))]);
    settle().await;
    informer.first_list(&[object("a", 2), object("b", 3)]);
    informer.apply([(DELETED, object("a", 4)), (DELETED, object("b", 5))]);
    settle().await;
    assert!(!listener.registration.has_synced(), "it has yet to return from what came before");
    listener.unblock();
    settle().await;
    assert!(listener.registration.has_synced());
    assert_eq!(listener.take(), ["added start@1"]);
    informer.stop().await;
}

/// In the order of the log, what the first list brought is through when the backlog has moved past it,
/// although there is always more to come.
#[tokio::test(start_paused = true)]
async fn a_coalescing_handler_gets_in_sync_under_a_stream_of_events() {
    let mut informer = Informer::running();
    let listener = informer.add(HandlerOptions::new("handler").max_lag_events(0));
    listener.block();
    informer.apply([(Added, object("start", 1))]);
    settle().await;
    informer.first_list(&(0..200).map(|n| object(&format!("{n:03}"), 1)).collect::<Vec<_>>());
    assert!(listener.status().is_coalescing);
    let mut version = 1;
    while !listener.registration.has_synced() {
        version += 1;
        assert!(version < 1_000, "never in sync");
        // One event in for one out, on a key that is not part of the list.
        informer.apply([(Updated, object(&format!("stream-{}", version % 100), version))]);
        listener.pass(1);
        settle().await;
    }
    assert!(listener.status().is_coalescing, "it was in sync before the backlog was empty");
    listener.unblock();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_was_added_before_anything_ran_misses_nothing() {
    let mut informer = Informer::new(std::time::Duration::ZERO);
    let listener = informer.add(HandlerOptions::new("early"));
    informer.first_list(&[object("a", 1)]);
    informer.apply([(Updated, object("a", 2))]);
    assert!(!listener.registration.has_synced());
    informer.start();
    settle().await;
    assert_eq!(listener.take(), ["added! a@1", "updated a@1 a@2"]);
    assert!(listener.registration.has_synced());
    informer.stop().await;
}
