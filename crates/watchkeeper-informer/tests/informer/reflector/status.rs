//! The status and the counters.

use std::{future::pending, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{sync::mpsc, task::JoinSet};
use watchkeeper_client::{
    classify::Reason,
    error::{ApiReason, TransportKind},
    list_watch::ScriptedSource,
};
use watchkeeper_informer::{
    reflector::Reflector,
    status::{Status, SyncError},
};

use super::support::{List, Rig, Watch, expired, identity, map, now, plain, seconds, status, streaming};

#[tokio::test(start_paused = true)]
async fn the_status_goes_from_connecting_over_listing_to_synced() {
    let mut options = plain();
    options.page_size = Some(2);
    let rig = Rig::start(options);
    assert_eq!(rig.monitor.status(), Status::Connecting);
    let mut monitor = rig.monitor.clone();
    let page = List::at("10").item(map("a", "1")).item(map("b", "2"));
    rig.source.on_list(page.continued("t", Some(3)));
    assert_eq!(monitor.changed().await, Status::Listing { received: 2, estimated_total: Some(5) });
    rig.pass(seconds(7)).await;
    let before = now().into_std();
    rig.source.on_list(List::at("10").item(map("c", "3")));
    assert_eq!(monitor.changed().await, Status::Synced { since: before });
    assert_eq!(rig.monitor.last_sync_resource_version().as_deref(), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn a_long_list_reports_its_progress_also_as_a_stream() {
    for options in [plain(), streaming()] {
        let rig = Rig::start(options);
        let many = 0..2500;
        rig.source.on_list(
            many.clone().fold(List::at("10"), |list, n| list.item(map(&n.to_string(), "1"))).stall(),
        );
        rig.source
            .on_watch(many.fold(Watch::new(), |watch, n| watch.added(map(&n.to_string(), "1"))).stall());
        rig.pass(seconds(1)).await;
        assert_eq!(rig.monitor.status(), Status::Listing { received: 2000, estimated_total: None });
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_is_not_synced_before_the_sink_has_accepted_the_list() {
    let source = ScriptedSource::<ConfigMap>::new();
    source.on_list(List::at("10"));
    let reflector = Reflector::new("test", Arc::new(source)).options(plain());
    let monitor = reflector.monitor();
    let (sink, mut changes) = mpsc::channel(1);
    let permit = sink.clone().reserve_owned().await.unwrap();
    let mut running = JoinSet::new();
    running.spawn(reflector.run(sink, pending()));
    tokio::time::sleep(seconds(60)).await;
    assert!(!monitor.status().is_synced(), "{:?}", monitor.status());
    assert_eq!(monitor.last_sync_resource_version(), None);
    drop(permit);
    changes.recv().await.unwrap();
    assert!(monitor.wait_for_sync(Some(seconds(1))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_makes_it_stale_since_it_was_lost_and_synced_when_it_is_back() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().wait(seconds(30)).error(status(503, "ServiceUnavailable")));
    rig.pass(seconds(30)).await;
    let lost = now().into_std();
    let why = Reason::Api(ApiReason::Unavailable);
    assert_eq!(rig.monitor.status(), Status::Stale { since: lost, why });
    rig.source.on_watch(Watch::unreachable(TransportKind::Refused));
    rig.pass(seconds(2)).await;
    let why = Reason::Transport(TransportKind::Refused);
    assert_eq!(rig.monitor.status(), Status::Stale { since: lost, why }, "since then, for another reason");
    assert!(rig.monitor.wait_for_sync(None).await.is_ok(), "the list is there all the same");
    let _server = rig.source.open_watch(Watch::new());
    rig.pass(seconds(10)).await;
    assert!(rig.monitor.status().is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_resumed_immediately_does_not_set_stale() {
    let rig = Rig::start(plain());
    let mut monitor = rig.monitor.clone();
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().wait(seconds(30)).broken(TransportKind::Reset));
    rig.source.on_watch(Watch::new().wait(seconds(30)));
    let _server = rig.source.open_watch(Watch::new());
    while !monitor.changed().await.is_synced() {}
    let changed = tokio::time::timeout(Duration::from_mins(2), monitor.changed()).await;
    assert!(changed.is_err(), "{changed:?}");
    assert_eq!(rig.monitor.counters().watches, 3);
}

#[tokio::test(start_paused = true)]
async fn a_failure_from_the_start_is_failing_and_reports_whether_it_is_transient() {
    let table = [
        (List::unreachable(TransportKind::Refused), true),
        (List::refused(status(503, "ServiceUnavailable")), true),
        (List::refused(status(401, "Unauthorized")), false),
        (List::refused(status(403, "Forbidden")), false),
        (List::unreachable(TransportKind::Tls), false),
        (List::refused(status(400, "BadRequest")), false),
    ];
    for (script, expected) in table {
        let rig = Rig::start(plain());
        let start = now().into_std();
        rig.source.on_list(script);
        rig.source.on_list(List::unreachable(TransportKind::Refused));
        rig.requests(1).await;
        rig.pass(Duration::from_millis(1)).await;
        let Status::Failing { since, attempts, is_transient, why, .. } = rig.monitor.status() else {
            panic!("{:?}", rig.monitor.status());
        };
        assert_eq!((since, attempts, is_transient), (start, 1, expected), "{why}");
        rig.pass(seconds(2)).await;
        let Status::Failing { since, attempts, .. } = rig.monitor.status() else {
            panic!("{:?}", rig.monitor.status());
        };
        assert_eq!((since, attempts), (start, 2), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_fails_with_the_reason_where_waiting_is_of_no_use() {
    let refused = |code, reason: &str| List::refused(status(code, reason));
    let table = [
        (refused(401, "Unauthorized"), Some(ApiReason::Unauthorized)),
        (refused(403, "Forbidden"), Some(ApiReason::Forbidden)),
        (refused(404, "NotFound"), None),
    ];
    for (script, expected) in table {
        let rig = Rig::start(plain());
        rig.source.on_list(script);
        let waited = rig.monitor.wait_for_sync(Some(Duration::from_hours(1))).await;
        let refusal = rig.monitor.refusal().await;
        assert_eq!(waited.as_ref(), Err(&refusal));
        match (refusal, expected) {
            (SyncError::Refused { why, ref message }, Some(expected)) => {
                assert_eq!(why, Reason::Api(expected));
                assert!(message.contains("scripted"), "it contains the message of the server: {message}");
            }
            (SyncError::NotServed { .. }, None) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_sync_succeeds_once_the_reflector_ever_synced() {
    let rig = Rig::start(plain());
    assert!(!rig.monitor.has_synced());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().wait(seconds(5)).error(status(403, "Forbidden")));
    rig.pass(seconds(5)).await;
    assert_eq!(rig.monitor.status().label(), "failing");
    assert!(rig.monitor.has_synced());
    assert_eq!(rig.monitor.wait_for_sync(None).await, Ok(()));
    let refused = tokio::time::timeout(Duration::from_hours(1), rig.monitor.refusal()).await;
    assert!(refused.is_err(), "no refusal is reported: {refused:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_its_deadline_with_the_last_status() {
    let rig = Rig::start(plain());
    for _ in 0..10 {
        rig.source.on_list(List::refused(status(503, "ServiceUnavailable")));
    }
    let before = now();
    let error = rig.monitor.wait_for_sync(Some(seconds(20))).await.unwrap_err();
    assert_eq!(before.elapsed(), seconds(20));
    assert_eq!(
        error.to_string(),
        "not synced within 20s: failing (10 attempts): list /scripted: unavailable (503 ServiceUnavailable): scripted"
    );
    assert!(matches!(error, SyncError::Deadline { last, .. } if matches!(*last, Status::Failing { .. })));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_it_is_stopped() {
    let mut rig = Rig::start(plain());
    let monitor = rig.monitor.clone();
    let (waited, ()) = tokio::join!(monitor.wait_for_sync(None), rig.stop());
    assert_eq!(waited, Err(SyncError::Stopped));
    assert_eq!(rig.monitor.refusal().await, SyncError::Stopped);
    assert_eq!(rig.monitor.clone().changed().await, Status::Stopped, "and later waits return at once");
}

#[tokio::test(start_paused = true)]
async fn a_removed_resource_parks_the_reflector_and_an_installed_one_resumes_it() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().bookmark("11").wait(seconds(5)).error(status(404, "NotFound")));
    rig.pass(seconds(5)).await;
    assert_eq!(rig.monitor.status().label(), "parked");
    rig.source.on_list(List::at("20"));
    rig.pass(seconds(5)).await;
    assert!(rig.monitor.status().is_synced());
}

#[tokio::test(start_paused = true)]
async fn everything_is_counted() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::unreachable(TransportKind::Refused));
    rig.source.on_list(List::at("10").item(map("a", "5")).item(map("b", "6")));
    let events = Watch::new()
        .added(map("c", "11"))
        .modified(map("a", "12"))
        .undecodable(identity("b", "13"))
        .deleted(map("c", "14"))
        .bookmark("20");
    rig.source.on_watch(events);
    rig.source.on_watch(Watch::new().wait(seconds(5)).error(expired()));
    rig.source.on_list(List::at("30").item(map("a", "12")));
    let _server = rig.source.open_watch(Watch::new());
    rig.deliveries(7).await;
    rig.pass(seconds(40)).await;
    let counters = rig.monitor.counters();
    assert_eq!((counters.lists, counters.streaming_lists, counters.watches), (3, 0, 3));
    assert_eq!(counters.relists.into_iter().collect::<Vec<_>>(), [("connection_refused", 1), ("expired", 1)]);
    assert_eq!(counters.watch_restarts.into_iter().collect::<Vec<_>>(), [("closed", 1)]);
    assert_eq!((counters.added, counters.modified, counters.deleted, counters.bookmarks), (1, 2, 1, 1));
    assert_eq!((counters.listed, counters.reused), (3, 0));
    assert_eq!((counters.rejected, counters.quarantined), (1, 0), "b is gone from the last list");
    assert_eq!(
        (counters.failures, counters.older_versions, counters.epochs, counters.history_checks),
        (2, 0, 0, 0)
    );
    let age = counters.last_event_age.unwrap();
    assert!(age >= seconds(40) && age < seconds(41), "{age:?}");
}

#[tokio::test(start_paused = true)]
async fn without_an_event_there_is_no_age() {
    let rig = Rig::start(plain());
    rig.pass(seconds(5)).await;
    assert_eq!(rig.monitor.counters().last_event_age, None);
}
