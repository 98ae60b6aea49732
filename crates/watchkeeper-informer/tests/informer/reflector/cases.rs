//! What went wrong in the field, once, with one client or another: each in the form it takes here.

use std::{
    future::{pending, ready},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::stream;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc;
use watchkeeper_client::{
    Error,
    classify::Reason,
    decode::DecodeError,
    error::{ApiReason, TransportKind},
    list_watch::{
        ListRequest, ListStream, ListerWatcher, Opening, RecordedRequest, ScriptedSource, WatchRequest,
        WatchStream,
    },
};
use watchkeeper_informer::{
    reflector::{Reflector, WatchDelta},
    status::{Status, SyncError},
};

use super::support::{List, Rig, Watch, expired, map, plain, seconds, status, streaming, too_large};

/// A watch that is rejected with the same response every time must not be requested from the same version
/// forever.
#[tokio::test(start_paused = true)]
async fn http_410_at_the_start_of_every_watch_lists_again_and_again_and_each_time_slower() {
    let rig = Rig::start(plain());
    for n in 0..8 {
        rig.source.on_list(List::at((10 + n).to_string()));
        rig.source.on_watch(Watch::refused(expired()));
    }
    rig.pass(Duration::from_mins(10)).await;
    let requests: Vec<_> = rig.sent.all().into_iter().map(|sent| sent.what).collect();
    assert_eq!(
        requests[..6],
        ["list 0 limit=500", "watch 10", "list 10", "watch 11", "list newest limit=500", "watch 12"]
    );
    assert!(requests.len() >= 16, "it goes on: {}", requests.len());
    assert!(rig.delay_after(13).await >= seconds(3), "but with care");
}

/// "Too large resource version" for hours: from the watch, from the list, and from the list again.
#[tokio::test(start_paused = true)]
async fn a_version_from_the_future_is_dropped_and_not_waited_for() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("20"));
    rig.source.on_watch(Watch::refused(too_large()));
    rig.source.on_list(List::at("15").item(map("a", "7")));
    rig.source.on_watch(Watch::new().bookmark("16"));
    assert_eq!(rig.requests(5).await[2..], ["list newest limit=500", "watch 15", "watch 16"]);
}

/// The same old version, over and over: "too old resource version" repeats when the list is taken from the same stale memory.
#[tokio::test(start_paused = true)]
async fn too_old_again_right_after_the_list_leads_to_a_list_from_scratch() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().error(expired()));
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().error(expired()));
    assert_eq!(rig.requests(5).await[2..], ["list 10", "watch 10", "list newest limit=500"]);
}

/// A half-open connection: no events, no end, nothing.
#[tokio::test(start_paused = true)]
async fn a_connection_that_died_without_a_word_is_found_out_and_missed_events_are_caught_up_on() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().modified(map("a", "11")).stall());
    rig.source.on_watch(Watch::new().modified(map("a", "12")));
    assert_eq!(rig.deliveries(3).await[2], "update a@12");
    assert_eq!(rig.requests(3).await[2], "watch 11");
    assert!(rig.delay_after(1).await <= seconds(630));
}

/// Bookmarks treated as errors: the version never advances, and the reconnect is too old.
#[tokio::test(start_paused = true)]
async fn bookmarks_keep_the_version_to_resume_from_young() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    let bookmarks =
        (1..=60).fold(Watch::new(), |watch, n| watch.wait(seconds(5)).bookmark((10 * n + 10).to_string()));
    rig.source.on_watch(bookmarks);
    assert_eq!(rig.requests(3).await[2], "watch 610");
}

/// A huge burst of initial events that the server cuts off for being read too slowly, in a loop.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_always_cut_off_halfway_ends_in_a_list() {
    let rig = Rig::start(streaming());
    for _ in 0..3 {
        let half = (0..500).fold(Watch::new(), |watch, n| watch.added(map(&format!("object {n}"), "5")));
        rig.source.on_watch(half.broken(TransportKind::Reset));
    }
    let whole = (0..1000).fold(List::at("10"), |list, n| list.item(map(&format!("object {n}"), "5")));
    rig.source.on_list(whole);
    assert!(rig.monitor.wait_for_sync(Some(seconds(10))).await.is_ok());
    assert_eq!(rig.monitor.counters().reused, 1500, "what came the first time was not decoded again");
}

/// A request that is forbidden forever must be reported.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_list_that_is_forbidden_fails_with_the_reason_and_the_list_is_still_tried() {
    let rig = Rig::start(plain());
    for _ in 0..4 {
        rig.source.on_list(List::refused(status(403, "Forbidden")));
    }
    match rig.monitor.wait_for_sync(None).await {
        Err(SyncError::Refused { why, .. }) => assert_eq!(why, Reason::Api(ApiReason::Forbidden)),
        other => panic!("{other:?}"),
    }
    rig.source.on_list(List::at("10"));
    rig.deliveries(1).await;
    assert!(rig.monitor.wait_for_sync(None).await.is_ok(), "once it is mended");
}

/// A role that is revoked under a watch: the cache is still true, so it is neither dropped nor relisted.
#[tokio::test(start_paused = true)]
async fn permission_lost_under_a_watch_costs_no_list_when_it_comes_back() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "5")));
    rig.source.on_watch(Watch::new().bookmark("11").wait(seconds(9)).error(status(403, "Forbidden")));
    rig.source.on_watch(Watch::refused(status(401, "Unauthorized")));
    let _server = rig.source.open_watch(Watch::new().modified(map("a", "15")));
    assert_eq!(rig.deliveries(3).await, ["replace 10: a@5", "bookmark 11", "update a@15"]);
    assert_eq!(rig.requests(4).await[1..], ["watch 10", "watch 11", "watch 11"]);
}

/// The resource is not there yet, or is removed: its informer must neither hang nor hammer.
#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_served_parks_the_reflector_until_it_is() {
    let rig = Rig::start(plain());
    for _ in 0..20 {
        rig.source.on_list(List::refused(status(404, "NotFound")));
    }
    rig.pass(Duration::from_mins(10)).await;
    assert!(matches!(rig.monitor.status(), Status::Parked { .. }), "{:?}", rig.monitor.status());
    assert!(rig.sent.all().len() < 25, "{}", rig.sent.all().len());
    assert!(matches!(rig.monitor.wait_for_sync(None).await, Err(SyncError::NotServed { .. })));
    rig.source.on_list(List::at("10"));
    rig.pass(Duration::from_mins(10)).await;
    assert!(rig.monitor.status().is_synced(), "{:?}", rig.monitor.status());
}

/// An API server fails, and all clients reconnect at once.
#[tokio::test(start_paused = true)]
async fn many_watches_cut_together_do_not_reconnect_together() {
    let mut rigs = Vec::new();
    for n in 0..200 {
        let mut options = plain();
        options.seed = Some(n);
        let rig = Rig::start_with(
            options,
            |source| {
                source.on_list(List::at("10"));
                source.on_watch(Watch::new().wait(seconds(300)).broken(TransportKind::Reset));
                for _ in 0..200 {
                    source.on_watch(Watch::unreachable(TransportKind::Refused));
                }
            },
            |reflector| reflector,
        );
        rigs.push(rig);
    }
    let mut comebacks = Vec::new();
    for rig in &rigs {
        rig.sent.first(80).await;
        let sent = rig.sent.all();
        assert!(sent[2..].iter().all(|sent| sent.what == "watch 10"), "no list is sent");
        // The first attempt after the server has been away for a minute.
        let comeback = sent.iter().find(|sent| sent.at >= seconds(360));
        comebacks.push(comeback.expect("there is one").at.saturating_sub(seconds(360)));
    }
    comebacks.sort_unstable();
    let last = comebacks[comebacks.len() - 1];
    assert!(last > seconds(2) && last < seconds(5), "{last:?}");
    let tenth = |at: &Duration| at.as_millis() / 100;
    let busiest =
        comebacks.iter().map(|at| comebacks.iter().filter(|other| tenth(at) == tenth(other)).count());
    let busiest = busiest.max().unwrap_or_default();
    assert!(busiest < 25, "{busiest} of {} in a tenth of a second", comebacks.len());
}

/// A reconnect that requests the initial events again receives all objects again.
#[tokio::test(start_paused = true)]
async fn only_the_first_watch_of_a_list_requests_initial_events() {
    let rig = Rig::start(streaming());
    rig.source.on_watch(Watch::new().added(map("a", "5")).initial_events_end("10"));
    for n in 11..20 {
        rig.source.on_watch(Watch::new().modified(map("a", &n.to_string())));
    }
    let requests = rig.requests(11).await;
    assert_eq!(requests.iter().filter(|request| request.starts_with("stream")).count(), 1, "{requests:?}");
}

/// An object that the server cannot read from its storage is an error in the stream while it exists.
#[tokio::test(start_paused = true)]
async fn an_object_the_server_cannot_read_leads_to_a_list_without_it() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("corrupt", "5")).item(map("b", "6")));
    for _ in 0..2 {
        rig.source.on_watch(Watch::new().error(status(500, "StorageReadError")));
    }
    rig.source.on_list(List::at("20").item(map("b", "6")));
    assert_eq!(rig.deliveries(2).await[1], "replace 20: b@6");
}

/// A source whose first watches, and the list after them, are tables.
struct Tables {
    source: ScriptedSource<ConfigMap>,
    watches_left: AtomicU32,
    lists_left: AtomicU32,
}

/// Returns the error of a table in a response that should have objects.
async fn table() -> Error {
    let source = ScriptedSource::<ConfigMap>::new();
    source.on_list(List::refused(expired()));
    match source.list(ListRequest::new()).await {
        Err(Error::Api { request, .. }) => {
            Error::Body { request, source: DecodeError::Table { instead_of: "an object" } }
        }
        _ => panic!("not in the script"),
    }
}

fn take_one(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

impl ListerWatcher<ConfigMap> for Tables {
    fn list(&self, request: ListRequest) -> Opening<ListStream<ConfigMap>> {
        let opening = self.source.list(request);
        if self.source.requests().len() == 1 || !take_one(&self.lists_left) {
            return opening;
        }
        Box::pin(async { Ok(Box::pin(stream::once(ready(Err(table().await)))) as ListStream<ConfigMap>) })
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<ConfigMap>> {
        let opening = self.source.watch(request);
        if !take_one(&self.watches_left) {
            return opening;
        }
        Box::pin(async { Ok(Box::pin(stream::once(ready(Err(table().await)))) as WatchStream<ConfigMap>) })
    }
}

/// A server, or a proxy, that returns a table instead of objects: decoded as a list, it would be an empty collection.
#[tokio::test(start_paused = true)]
async fn a_table_is_never_taken_for_objects_and_never_skipped() {
    let source = ScriptedSource::new();
    source.on_list(List::at("10").item(map("a", "5")));
    source.on_list(List::at("20").item(map("a", "15")));
    let tables =
        Tables { source: source.clone(), watches_left: AtomicU32::new(2), lists_left: AtomicU32::new(1) };
    let reflector = Reflector::new("test", Arc::new(tables)).options(plain());
    let monitor = reflector.monitor();
    let (sink, mut changes) = mpsc::channel(8);
    let two_changes = async {
        for version in ["10", "20"] {
            match changes.recv().await {
                Some(WatchDelta::Replaced(with)) => assert_eq!(with.resource_version, version),
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::select! {
        () = reflector.run(sink, pending()) => panic!("not stopped"),
        () = two_changes => {}
    }
    let sent: Vec<_> = source.requests();
    assert!(
        matches!(
            &sent[..],
            [
                RecordedRequest::List(_),
                RecordedRequest::Watch(_),
                RecordedRequest::Watch(_),
                RecordedRequest::List(_),
                RecordedRequest::List(_),
                ..
            ]
        ),
        "{sent:?}"
    );
    assert_eq!(monitor.counters().failures, 3, "each failure is counted");
}
