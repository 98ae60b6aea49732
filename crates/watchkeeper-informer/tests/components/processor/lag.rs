//! Handlers that do not keep up.

use std::{sync::Weak, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{
    Cached,
    delta_fifo::DeltaKind::{self, Added, Updated},
    handler::HandlerOptions,
};

use super::{
    DELETED, Informer, Listener,
    fifo_fixture::{incarnation, object},
    settle, watch,
};

/// Coalesces from the first event it lags.
fn impatient() -> HandlerOptions {
    HandlerOptions::new("handler").max_lag_events(0)
}

/// Returns a handler that is stuck in its first call, with the event `added start@1`.
async fn stuck(informer: &mut Informer, options: HandlerOptions) -> Listener {
    let listener = informer.add(options);
    listener.block();
    informer.apply([(Added, object("start", 1))]);
    settle().await;
    assert_eq!(listener.take(), ["added start@1"]);
    listener
}

#[tokio::test(start_paused = true)]
async fn pending_events_of_a_key_are_coalesced_to_the_minimum() {
    type Changes = Vec<(DeltaKind, Cached<ConfigMap>)>;
    let old = || object("a", 1);
    let table: Vec<(&str, bool, Changes, &[&str])> = vec![
        ("updates", true, vec![(Updated, object("a", 2)), (Updated, object("a", 3))], &["updated a@1 a@3"]),
        (
            "an addition and updates",
            false,
            vec![(Added, object("a", 2)), (Updated, object("a", 3))],
            &["added a@3"],
        ),
        ("came and went", false, vec![(Added, object("a", 2)), (DELETED, object("a", 3))], &[]),
        (
            "came and went and came",
            false,
            vec![(Added, object("a", 2)), (DELETED, object("a", 3)), (Added, incarnation("a", "2", 4))],
            &["added a@4"],
        ),
        (
            "an update and the end",
            true,
            vec![(Updated, object("a", 2)), (DELETED, object("a", 3))],
            &["deleted a@3"],
        ),
        (
            "went and came back as another",
            true,
            vec![
                (DELETED, object("a", 2)),
                (Added, incarnation("a", "2", 3)),
                (Updated, incarnation("a", "2", 4)),
            ],
            &["deleted a@2", "added a@4"],
        ),
        (
            "went and came back the same",
            true,
            vec![(DELETED, object("a", 2)), (Added, object("a", 3))],
            &["deleted a@2", "added a@3"],
        ),
        (
            "became another, without a deletion",
            true,
            vec![(Updated, object("a", 2)), (Updated, incarnation("a", "2", 3))],
            &["deleted? a@2", "added a@3"],
        ),
        (
            "went, came back as another and went",
            true,
            vec![
                (DELETED, object("a", 2)),
                (Added, incarnation("a", "2", 3)),
                (DELETED, incarnation("a", "2", 4)),
            ],
            &["deleted a@2"],
        ),
        (
            "went, came back the same and went",
            true,
            vec![(DELETED, object("a", 2)), (Added, object("a", 3)), (DELETED, object("a", 4))],
            &["deleted a@4"],
        ),
    ];
    for (case, is_known, changes, expected) in table {
        let mut informer = Informer::running();
        if is_known {
            informer.cache.insert("a".to_owned(), old());
        }
        let listener = informer.add(impatient());
        settle().await;
        listener.take();
        listener.block();
        informer.apply([(Added, object("start", 1))]);
        settle().await;
        // One by one, so that each is absorbed on its own.
        for change in changes {
            informer.apply([change]);
        }
        assert!(listener.status().is_coalescing, "{case}");
        listener.unblock();
        settle().await;
        assert_eq!(listener.take()[1..], *expected, "{case}");
        assert!(!listener.status().is_coalescing, "{case}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn old_is_the_very_object_the_handler_was_given_last() {
    let mut informer = Informer::running();
    let first = object("a", 1);
    informer.cache.insert("a".to_owned(), first.clone());
    let listener = stuck_on_initial(&informer).await;
    for version in 2..100 {
        informer.apply([(Updated, object("a", version))]);
    }
    listener.unblock();
    settle().await;
    let received = std::mem::take(&mut *listener.received.lock());
    assert_eq!(received.len(), 2);
    assert!(received[1].last_seen().unwrap().ptr_eq(&first));
    assert!(received[1].object().ptr_eq(&informer.cache["a"]));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_seen_state_of_a_coalesced_deletion_is_the_object_the_handler_was_given_last() {
    let mut informer = Informer::running();
    let first = object("a", 1);
    informer.cache.insert("a".to_owned(), first.clone());
    let listener = stuck_on_initial(&informer).await;
    for change in [(DELETED, object("a", 2)), (Added, object("a", 3)), (DELETED, object("a", 4))] {
        informer.apply([change]);
    }
    listener.unblock();
    settle().await;
    let last_seen = listener.received.lock()[1].last_seen().cloned();
    assert_eq!(listener.take(), ["added! a@1", "deleted a@4"]);
    assert!(last_seen.is_some_and(|object| object.ptr_eq(&first)));
    informer.stop().await;
}

async fn stuck_on_initial(informer: &Informer) -> Listener {
    let listener = informer.add(impatient());
    listener.block();
    settle().await;
    listener
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_lags_within_its_limit_receives_every_event() {
    let mut informer = Informer::running();
    let listener = stuck(&mut informer, HandlerOptions::new("handler").max_lag_events(10)).await;
    for version in 2..=11 {
        informer.apply([(Updated, object("start", version))]);
    }
    assert_eq!(listener.status().pending, 11, "ten pending events and the one in delivery");
    assert!(!listener.status().is_coalescing);
    informer.apply([(Updated, object("start", 12))]);
    assert!(listener.status().is_coalescing);
    let status = listener.status();
    assert_eq!((status.pending, status.times_coalesced, status.events_coalesced), (2, 1, 10));
    listener.unblock();
    settle().await;
    assert_eq!(listener.take(), ["updated start@1 start@12"]);
    informer.apply([(Updated, object("start", 13)), (Updated, object("start", 14))]);
    settle().await;
    assert_eq!(
        listener.take(),
        ["updated start@12 start@13", "updated start@13 start@14"],
        "back on the log"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_stuck_for_too_long_is_coalesced_when_the_next_event_arrives() {
    let mut informer = Informer::running();
    let options = HandlerOptions::new("handler").max_lag_age(Duration::from_secs(30));
    let listener = stuck(&mut informer, options).await;
    informer.apply([(Updated, object("start", 2))]);
    tokio::time::advance(Duration::from_secs(30)).await;
    informer.apply([(Updated, object("start", 3))]);
    assert!(!listener.status().is_coalescing);
    assert_eq!(listener.status().lag, Duration::from_secs(30));
    tokio::time::advance(Duration::from_secs(1)).await;
    informer.apply([(Updated, object("start", 4))]);
    assert!(listener.status().is_coalescing);
    assert_eq!(listener.status().lag, Duration::from_secs(31));
    listener.unblock();
    settle().await;
    assert_eq!(listener.take(), ["updated start@1 start@4"]);
    assert_eq!(listener.status().lag, Duration::ZERO);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_wants_every_event_gets_every_event() {
    let mut informer = Informer::running();
    let options = impatient().max_lag_age(Duration::ZERO).every_event();
    let listener = stuck(&mut informer, options).await;
    for version in 2..=3_000 {
        informer.apply([(Updated, object("start", version))]);
    }
    tokio::time::advance(Duration::from_hours(1)).await;
    informer.apply([(DELETED, object("start", 3_001))]);
    listener.unblock();
    settle().await;
    assert_eq!(listener.take().len(), 3_000);
    assert_eq!(listener.status().times_coalesced, 0);
    informer.stop().await;
}

/// A stuck handler in client-go grows its buffer until memory ends (client-go#1326).
#[tokio::test(start_paused = true)]
async fn case_43_a_stuck_handler_holds_on_to_two_states_of_a_key_and_no_more() {
    let mut informer = Informer::running();
    let keys: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    for key in &keys {
        informer.cache.insert(key.clone(), object(key, 1));
    }
    let listener = stuck_on_initial(&informer).await;
    let mut versions: Vec<Weak<ConfigMap>> = informer.cache.values().map(watch).collect();
    for version in 2..200 {
        for key in &keys {
            let object = object(key, version);
            versions.push(watch(&object));
            informer.apply([(Updated, object)]);
        }
    }
    let held = |object: &&Weak<ConfigMap>| object.strong_count() > 0;
    assert_eq!(
        versions.iter().filter(held).count(),
        40,
        "the last object delivered for each key, and the cached one"
    );
    assert_eq!(listener.status().pending, 20);

    // Keys that come and go leave nothing behind.
    for n in 0..5_000 {
        let name = format!("passing-{n}");
        informer.apply([(Added, object(&name, 1))]);
        informer.apply([(DELETED, object(&name, 2))]);
    }
    assert_eq!(listener.status().pending, 20);
    listener.unblock();
    settle().await;
    assert_eq!(listener.take().len(), 40);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stuck_handler_delays_no_other_handler() {
    let mut informer = Informer::running();
    let stuck = stuck(&mut informer, HandlerOptions::new("stuck")).await;
    let other = informer.add(HandlerOptions::new("other"));
    informer.apply([(Updated, object("start", 2))]);
    settle().await;
    assert_eq!(other.take(), ["added! start@1", "updated start@1 start@2"]);
    assert_eq!(stuck.take(), <[&str; 0]>::default());
    stuck.unblock();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_backlog_delivers_keys_in_the_order_of_their_first_pending_event() {
    let mut informer = Informer::running();
    let listener = stuck(&mut informer, impatient()).await;
    for (name, version) in [("c", 2), ("a", 3), ("b", 4), ("c", 5), ("a", 6)] {
        informer.apply([(Updated, object(name, version))]);
    }
    listener.unblock();
    settle().await;
    assert_eq!(listener.take(), ["added c@5", "added a@6", "added b@4"]);
    informer.stop().await;
}
