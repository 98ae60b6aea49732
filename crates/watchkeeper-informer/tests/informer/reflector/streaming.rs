//! Lists as the beginning of a watch.

use std::time::Duration;

use watchkeeper_client::error::TransportKind;

use super::support::{List, Rig, Watch, expired, identity, map, seconds, status, streaming, too_many};

#[tokio::test(start_paused = true)]
async fn one_request_brings_the_list_and_then_the_changes() {
    let rig = Rig::start(streaming());
    let server = rig.source.open_watch(Watch::new().added(map("b", "7")).added(map("a", "9")));
    rig.pass(seconds(5)).await;
    assert!(rig.received.all().is_empty(), "nothing is passed on before the end of the initial events");
    server.send(Watch::new().initial_events_end("10").modified(map("a", "11")).added(map("c", "12")));
    assert_eq!(rig.deliveries(3).await, ["replace 10: b@7 a@9", "update a@11", "add c@12"]);
    assert_eq!(rig.requests(1).await, ["stream newest"]);
    rig.pass(seconds(60)).await;
    assert_eq!(rig.sent.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_an_annotated_bookmark_ends_the_initial_events() {
    let rig = Rig::start(streaming());
    let server = rig.source.open_watch(Watch::new().added(map("a", "9")).bookmark("10"));
    rig.pass(seconds(5)).await;
    assert!(rig.received.all().is_empty());
    server.send(Watch::new().initial_events_end("11"));
    assert_eq!(rig.deliveries(1).await, ["replace 11: a@9"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_end_of_the_initial_events_is_a_bookmark_like_others() {
    let rig = Rig::start(streaming());
    let events = Watch::new().initial_events_end("10").initial_events_end("12").modified(map("a", "13"));
    let _server = rig.source.open_watch(events);
    assert_eq!(rig.deliveries(3).await, ["replace 10: ", "bookmark 12", "update a@13"]);
}

#[tokio::test(start_paused = true)]
async fn changes_and_deletions_among_the_initial_events_are_part_of_the_list() {
    let rig = Rig::start(streaming());
    let events = Watch::new()
        .added(map("a", "1"))
        .added(map("b", "2"))
        .added(map("c", "3"))
        .modified(map("b", "4"))
        .deleted(map("a", "5"))
        .deleted(map("never seen", "6"))
        .initial_events_end("10");
    let _server = rig.source.open_watch(events);
    assert_eq!(rig.deliveries(1).await, ["replace 10: b@4 c@3"]);
}

#[tokio::test(start_paused = true)]
async fn initial_events_move_no_version_whatever_theirs_is() {
    // They come in no order, and 50 is not a version to resume from.
    let rig = Rig::start(streaming());
    rig.source.on_watch(Watch::new().added(map("a", "50")).added(map("b", "3")).broken(TransportKind::Reset));
    rig.source.on_watch(Watch::new().added(map("b", "3")).initial_events_end("40"));
    assert_eq!(rig.requests(3).await, ["stream newest", "stream newest", "watch 40"]);
    assert_eq!(rig.deliveries(1).await, ["replace 40: b@3"], "and what is gone by the second time is gone");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_whole_is_resumed_as_a_watch_without_initial_events() {
    let rig = Rig::start(streaming());
    rig.source.on_watch(Watch::new().initial_events_end("10").modified(map("a", "11")));
    rig.source.on_watch(Watch::new().wait(seconds(2)).broken(TransportKind::Reset));
    assert_eq!(rig.requests(3).await, ["stream newest", "watch 11", "watch 11"]);
}

#[tokio::test(start_paused = true)]
async fn a_relist_is_a_stream_not_older_than_the_observed_version() {
    let rig = Rig::start(streaming());
    rig.source.on_watch(Watch::new().initial_events_end("10").modified(map("a", "11")).error(expired()));
    rig.source.on_watch(Watch::new().added(map("b", "12")).initial_events_end("20"));
    assert_eq!(rig.requests(3).await, ["stream newest", "stream >=11", "watch 20"]);
    assert_eq!(rig.deliveries(3).await, ["replace 10: ", "update a@11", "replace 20: b@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_streams_receives_lists_for_a_while() {
    let mut options = streaming();
    options.streaming.remember = Duration::from_mins(20);
    let rig = Rig::start(options);
    rig.source.on_watch(Watch::refused(status(422, "Invalid")));
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().bookmark("11").wait(Duration::from_mins(3)).error(expired()));
    rig.source.on_list(List::at("20"));
    let requests = rig.requests(5).await;
    assert_eq!(requests, ["stream newest", "list 0 limit=500", "watch 10", "list 11", "watch 20"]);
    assert_eq!(rig.monitor.counters().streaming_fallbacks, 1);
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_a_refusal_fades() {
    let mut options = streaming();
    options.streaming.remember = Duration::from_mins(2);
    let rig = Rig::start(options);
    rig.source.on_watch(Watch::refused(status(400, "BadRequest")));
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().bookmark("11").wait(Duration::from_mins(3)).error(expired()));
    assert_eq!(rig.requests(4).await, ["stream newest", "list 0 limit=500", "watch 10", "stream >=11"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_does_not_count_as_missing_support_for_streams() {
    let rig = Rig::start(streaming());
    rig.source.on_watch(Watch::refused(status(403, "Forbidden")));
    rig.source.on_list(List::refused(status(403, "Forbidden")));
    rig.source.on_watch(Watch::refused(status(403, "Forbidden")));
    let first = "list 0 limit=500";
    assert_eq!(rig.requests(4).await, ["stream newest", first, "stream newest", first]);
    assert_eq!(rig.monitor.counters().streaming_fallbacks, 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_ends_the_initial_events_gets_a_list_when_it_falls_silent() {
    let rig = Rig::start(streaming());
    let _server =
        rig.source.open_watch(Watch::new().added(map("a", "5")).wait(seconds(8)).added(map("b", "6")));
    rig.source.on_list(List::at("10").item(map("a", "5")).item(map("b", "6")));
    assert_eq!(rig.requests(3).await, ["stream newest", "list 0 limit=500", "watch 10"]);
    assert_eq!(rig.delay_after(0).await.as_secs(), 18, "ten seconds after the last event");
    assert_eq!(rig.deliveries(1).await, ["replace 10: a@5 b@6"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_only_changes_and_never_ends_the_initial_events_gets_a_list_too() {
    let mut events = Watch::new().added(map("a", "1"));
    for n in 2..200 {
        events = events.wait(seconds(5)).modified(map("a", &n.to_string()));
    }
    let rig = Rig::start(streaming());
    let _server = rig.source.open_watch(events);
    assert_eq!(rig.requests(2).await, ["stream newest", "list 0 limit=500"]);
    assert_eq!(rig.delay_after(0).await, Duration::from_mins(1), "a minute without a new object");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_makes_progress_may_take_as_long_as_it_takes() {
    let mut events = Watch::new();
    for n in 1..400 {
        events = events.wait(seconds(9)).added(map(&format!("object {n}"), &n.to_string()));
    }
    let rig = Rig::start(streaming());
    let _server = rig.source.open_watch(events.initial_events_end("500"));
    rig.deliveries(1).await;
    assert_eq!(rig.sent.all().len(), 1, "one stream, of an hour");
    assert_eq!(rig.monitor.counters().streaming_fallbacks, 0);
}

#[tokio::test(start_paused = true)]
async fn streams_that_break_are_replaced_by_one_list_and_do_not_count_as_unsupported() {
    let rig = Rig::start(streaming());
    for _ in 0..3 {
        rig.source
            .on_watch(Watch::new().added(map("a", "5")).added(map("b", "6")).broken(TransportKind::Reset));
    }
    rig.source.on_list(List::at("10").item(map("a", "5")).item(map("b", "7")));
    rig.source.on_watch(Watch::new().bookmark("11").error(expired()));
    let requests = rig.requests(6).await;
    assert_eq!(requests[2..], ["stream newest", "list 0 limit=500", "watch 10", "stream >=11"]);
    assert_eq!(rig.deliveries(1).await, ["replace 10: a@5 b@7"]);
    let counters = rig.monitor.counters();
    assert_eq!(counters.streaming_fallbacks, 0, "the next list is a stream again");
    assert_eq!(counters.reused, 2 + 2 + 1, "what the streams brought is not decoded again");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_retried_on_a_busy_server() {
    let rig = Rig::start(streaming());
    for _ in 0..6 {
        rig.source.on_watch(Watch::refused(too_many(0)));
    }
    let requests = rig.requests(7).await;
    assert!(requests.iter().all(|request| request == "stream newest"), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_back_to_an_older_version_is_not_used() {
    let rig = Rig::start(streaming());
    rig.source.on_watch(Watch::new().added(map("a", "9")).modified(map("a", "4")).initial_events_end("10"));
    rig.source.on_list(List::at("10").item(map("a", "9")));
    assert_eq!(rig.requests(2).await, ["stream newest", "list 0 limit=500"]);
    assert_eq!(rig.deliveries(1).await, ["replace 10: a@9"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_from_a_server_that_went_back_in_time_is_rejected_once_and_then_a_new_epoch() {
    let rig = Rig::start(streaming());
    rig.source.on_watch(Watch::new().initial_events_end("1200").wait(seconds(2)).error(expired()));
    rig.source.on_watch(Watch::new().added(map("a", "900")).initial_events_end("1001"));
    rig.source.on_watch(Watch::new().added(map("a", "900")).initial_events_end("1001"));
    assert_eq!(rig.requests(3).await, ["stream newest", "stream >=1200", "stream newest"]);
    assert_eq!(rig.deliveries(2).await, ["replace 1200: ", "replace 1001: a@900 (new epoch)"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_does_not_keep_the_initial_events_from_ending() {
    let rig = Rig::start(streaming());
    let events = Watch::new().added(map("a", "5")).undecodable(identity("b", "6")).initial_events_end("10");
    let _server = rig.source.open_watch(events);
    assert_eq!(rig.deliveries(1).await, ["replace 10: a@5 keep b@6"]);
    assert_eq!(rig.monitor.quarantined().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_disabled_streaming_list_is_never_requested() {
    let mut options = streaming();
    options.streaming.is_enabled = false;
    let rig = Rig::start(options);
    assert_eq!(rig.requests(1).await, ["list 0 limit=500"]);
}
