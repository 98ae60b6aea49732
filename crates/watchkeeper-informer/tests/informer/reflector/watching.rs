//! Watches: what moves the version, how they end, and what is done about it.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Next, Phase},
    decode::Identity,
    error::TransportKind,
};
use watchkeeper_informer::{
    Cached,
    reflector::{ReflectorOptions, VersionOrder},
};

use super::support::{List, Rig, Watch, expired, map, plain, seconds, status, too_large, too_many};

/// A reflector that has a list of version 10 with an object `a` of version 5.
fn watching() -> Rig {
    Rig::start_with(
        plain(),
        |source| source.on_list(List::at("10").item(map("a", "5"))),
        |reflector| reflector,
    )
}

#[tokio::test(start_paused = true)]
async fn every_event_is_passed_on_in_order_and_advances_the_version() {
    let rig = watching();
    let events = Watch::new()
        .added(map("b", "11"))
        .modified(map("a", "12"))
        .bookmark("15")
        .deleted(map("b", "16"))
        .bookmark("16");
    let server = rig.source.open_watch(events);
    let received = rig.deliveries(5).await;
    assert_eq!(received, ["replace 10: a@5", "add b@11", "update a@12", "bookmark 15", "delete b@16"]);
    assert_eq!(rig.monitor.last_sync_resource_version().as_deref(), Some("16"));
    drop(server);
    assert_eq!(rig.requests(3).await[2], "watch 16");
}

#[tokio::test(start_paused = true)]
async fn watches_request_a_random_timeout_between_five_and_ten_minutes() {
    let rig = watching();
    for n in 11..60 {
        rig.source.on_watch(Watch::new().bookmark(n.to_string()));
    }
    let sent = rig.sent.first(50).await;
    let timeouts: Vec<_> = sent.iter().filter_map(|sent| sent.timeout).map(|t| t.as_secs()).collect();
    assert!(timeouts.iter().all(|timeout| (300..600).contains(timeout)), "{timeouts:?}");
    let mut distinct = timeouts.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > timeouts.len() / 2, "{timeouts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_chosen_timeout_counts_when_it_is_longer_than_five_minutes() {
    for (chosen, expected) in [(seconds(1), 300..600), (seconds(1800), 1800..3600)] {
        let mut options = plain();
        options.watch.min_timeout = chosen;
        let rig = Rig::start(options);
        rig.source.on_list(List::at("10"));
        let timeout = rig.sent.first(2).await[1].timeout.unwrap().as_secs();
        assert!(expected.contains(&timeout), "{timeout} for {chosen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_costs_no_list() {
    let rig = watching();
    for _ in 0..4 {
        rig.source.on_watch(Watch::refused(too_many(0)));
    }
    let requests = rig.requests(6).await;
    assert_eq!(requests.iter().filter(|request| request.starts_with("list")).count(), 1);
    assert_eq!(requests[1..], ["watch 10"; 5]);
}

#[tokio::test(start_paused = true)]
async fn waits_for_an_unreachable_server_grow_with_the_outage_up_to_half_a_minute() {
    let rig = watching();
    for _ in 0..200 {
        rig.source.on_watch(Watch::unreachable(TransportKind::Refused));
    }
    let sent = rig.sent.first(202).await;
    for n in 1..201 {
        let age = sent[n].at.saturating_sub(sent[1].at);
        let interval = (age / 16).clamp(Duration::from_millis(800), seconds(30));
        let waited = rig.delay_after(n).await;
        let latest = interval + Duration::from_millis(2);
        assert!(waited >= interval / 2 && waited <= latest, "wait {n}, after {age:?}, was {waited:?}");
    }
    assert!(sent[201].at > Duration::from_mins(20), "the longest wait was reached");
}

#[tokio::test(start_paused = true)]
async fn chosen_waits_are_honoured() {
    let mut options = plain();
    options.backoff.initial = Duration::from_millis(10);
    options.backoff.max = Duration::from_millis(100);
    let rig = Rig::start(options);
    for _ in 0..60 {
        rig.source.on_list(List::refused(too_many(0)));
    }
    rig.requests(61).await;
    let waits = [rig.delay_after(0).await, rig.delay_after(59).await];
    for (waited, interval) in waits.into_iter().zip([10, 100].map(Duration::from_millis)) {
        assert!(waited >= interval / 2 && waited <= interval + Duration::from_millis(2), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_requested_wait_is_the_minimum_in_a_response_and_in_a_stream() {
    for script in [Watch::refused(too_many(20)), Watch::new().error(too_many(20))] {
        let rig = watching();
        rig.source.on_watch(script);
        let waited = {
            rig.requests(3).await;
            rig.delay_after(1).await
        };
        assert!(waited >= seconds(20) && waited < seconds(22), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_for_hours_does_not_shorten_the_waits() {
    let rig = watching();
    for _ in 0..90 {
        rig.source.on_watch(Watch::refused(too_many(0)));
    }
    rig.requests(92).await;
    for n in 15..90 {
        let waited = rig.delay_after(n).await;
        assert!(waited >= seconds(15), "wait {n} was {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_only_opened_does_not_shorten_the_waits_and_one_that_works_does() {
    let rig = watching();
    for _ in 0..12 {
        rig.source.on_watch(Watch::refused(too_many(0)));
    }
    rig.source.on_watch(Watch::new().error(too_many(0)));
    rig.source.on_watch(Watch::new().wait(seconds(2)).error(too_many(0)));
    rig.requests(16).await;
    let after_opening = rig.delay_after(13).await;
    assert!(after_opening >= seconds(10), "{after_opening:?}");
    let after_working = rig.delay_after(14).await.saturating_sub(seconds(2));
    assert!(after_working <= Duration::from_millis(802), "{after_working:?}");
}

#[tokio::test(start_paused = true)]
async fn a_class_of_failures_does_not_delay_the_recovery_from_another() {
    let rig = watching();
    for _ in 0..12 {
        rig.source.on_watch(Watch::refused(too_many(0)));
    }
    rig.source.on_watch(Watch::unreachable(TransportKind::Refused));
    rig.requests(15).await;
    assert!(rig.delay_after(12).await >= seconds(10));
    assert!(rig.delay_after(13).await <= Duration::from_millis(802));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_expired_on_a_healthy_server_is_relisted_immediately_every_time() {
    let rig = watching();
    for n in 1..6 {
        let event = map("a", &(n * 100).to_string());
        rig.source.on_watch(Watch::new().modified(event).wait(seconds(1)).error(expired()));
        rig.source.on_list(List::at((n * 100 + 10).to_string()));
    }
    let sent = rig.sent.first(12).await;
    assert_eq!(sent.iter().filter(|sent| sent.what.starts_with("list")).count(), 6);
    assert_eq!(
        sent[11].at.as_secs(),
        5,
        "the watches lasted a second each, and there was no wait in between"
    );
}

#[tokio::test(start_paused = true)]
async fn a_starting_server_may_forbid_requests_that_it_allows_later() {
    let rig = watching();
    rig.source.on_watch(Watch::new().wait(seconds(60)).broken(TransportKind::Reset));
    for _ in 0..5 {
        rig.source.on_watch(Watch::unreachable(TransportKind::Refused));
    }
    for _ in 0..5 {
        rig.source.on_watch(Watch::refused(status(403, "Forbidden")));
    }
    rig.source.on_watch(Watch::new().stall());
    let sent = rig.sent.first(13).await;
    let outage = sent[12].at.saturating_sub(sent[2].at);
    assert!(outage <= seconds(9), "ten short waits: {outage:?}");
    assert!(rig.failures.all().iter().all(|failure| failure.is_transient), "none needs an administrator");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_that_ends_after_a_second_ended_in_good_order() {
    let rig = watching();
    rig.source.on_watch(Watch::new().wait(seconds(1)));
    rig.source.on_watch(Watch::new().wait(seconds(1)));
    assert_eq!(rig.requests(4).await[1..], ["watch 10"; 3]);
    assert_eq!(rig.delay_after(2).await.as_secs(), 1, "and is resumed at once");
    assert!(rig.failures.all().is_empty(), "no failure is reported");
    assert_eq!(rig.monitor.counters().watch_restarts.get("closed"), Some(&2));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_of_the_same_version_are_no_progress() {
    let rig = watching();
    for _ in 0..3 {
        rig.source.on_watch(Watch::new().bookmark("10"));
    }
    rig.requests(3).await;
    assert!(rig.delay_after(1).await >= Duration::from_millis(400), "else this would be a hot loop");
}

#[tokio::test(start_paused = true)]
async fn an_event_older_than_the_observed_version_is_rejected_and_leads_to_a_relist() {
    let rig = watching();
    rig.source
        .on_watch(Watch::new().modified(map("a", "20")).modified(map("a", "7")).modified(map("a", "21")));
    rig.source.on_list(List::at("22").item(map("a", "21")));
    assert_eq!(rig.requests(4).await[2..], ["list 20", "watch 22"]);
    assert_eq!(rig.deliveries(3).await, ["replace 10: a@5", "update a@20", "replace 22: a@21"]);
    let failure = &rig.failures.all()[0];
    assert_eq!((failure.phase, failure.next), (Phase::WatchStream, Next::Relist));
    assert!(failure.message.contains("resourceVersion 7"), "{failure}");
    let counters = rig.monitor.counters();
    assert_eq!((counters.older_versions, counters.relists.get("went_back")), (1, Some(&1)));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_with_the_version_of_the_object_leads_to_a_list_and_not_back_in_time() {
    let rig = watching();
    rig.source.on_watch(Watch::new().modified(map("b", "20")).deleted(map("a", "5")));
    rig.source.on_list(List::at("22").item(map("b", "20")));
    assert_eq!(rig.requests(4).await[2..], ["list 20", "watch 22"]);
    assert_eq!(rig.deliveries(3).await[2], "replace 22: b@20");
}

#[tokio::test(start_paused = true)]
async fn servers_that_count_versions_per_object_are_supported_with_opaque_versions() {
    let mut options = plain();
    options.versions = VersionOrder::Opaque;
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10").item(map("a", "5")));
    rig.source.on_watch(Watch::new().modified(map("a", "20")).modified(map("b", "7")));
    assert_eq!(rig.requests(3).await[2], "watch 7", "the last event's version, as in client-go");
    assert_eq!(rig.deliveries(3).await[1..], ["update a@20", "update b@7"]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_does_not_count_as_an_older_version() {
    let rig = watching();
    rig.source
        .on_watch(Watch::new().modified(map("a", "11")).modified(map("a", "11")).deleted(map("a", "12")));
    assert_eq!(rig.requests(3).await[2], "watch 12");
    assert_eq!(rig.deliveries(4).await[1..], ["update a@11", "update a@11", "delete a@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_older_than_the_observed_version_is_ignored() {
    let rig = watching();
    rig.source.on_watch(Watch::new().modified(map("a", "20")).bookmark("15").modified(map("a", "21")));
    assert_eq!(rig.requests(3).await[2], "watch 21");
    assert_eq!(rig.deliveries(3).await[1..], ["update a@20", "update a@21"]);
    assert_eq!(rig.monitor.counters().older_versions, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_version_ends_the_watch_and_is_requested_again() {
    let rig = watching();
    rig.source.on_watch(Watch::new().modified(map("b", "11")).modified(map("a", "")));
    rig.source.on_watch(Watch::new().modified(map("a", "12")));
    assert_eq!(rig.requests(3).await[1..], ["watch 10", "watch 11"]);
    assert_eq!(rig.deliveries(3).await[1..], ["update b@11", "update a@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_the_server_forgot_is_given_up_for_dead_and_resumed() {
    let rig = watching();
    let server = rig.source.open_watch(Watch::new().stall());
    let sent = rig.sent.first(3).await;
    assert_eq!(sent[2].what, "watch 10");
    let timeout = sent[1].timeout.unwrap();
    assert_eq!(rig.delay_after(1).await.as_secs(), timeout.as_secs() + 30);
    assert!(!server.is_open(), "and its connection is dropped");
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_an_unknown_object_is_passed_on() {
    let rig = watching();
    rig.source.on_watch(Watch::new().deleted(map("z", "11")));
    assert_eq!(rig.deliveries(2).await[1], "delete z@11");
}

#[tokio::test(start_paused = true)]
async fn the_watch_is_dropped_when_it_brought_an_error() {
    let rig = watching();
    let server = rig.source.open_watch(Watch::new().modified(map("a", "11")));
    rig.deliveries(2).await;
    assert!(server.is_open());
    server.send(Watch::new().error(expired()));
    rig.requests(3).await;
    assert!(!server.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_back_in_time_is_detected_before_the_watch_is_resumed() {
    let mut options = plain();
    options.history_check.on_reconnect = true;
    let rig = Rig::start(options);
    rig.source.on_list(List::at("1200").item(map("a", "1100")));
    rig.source.on_watch(Watch::new().wait(seconds(5)));
    // Restored from a backup, it has not reached that version again.
    rig.source.on_list(List::refused(too_large()));
    rig.source.on_list(List::at("1001"));
    rig.source.on_list(List::at("1001").item(map("b", "3")));
    assert_eq!(
        rig.requests(6).await,
        [
            "list 0 limit=500",
            "watch 1200",
            "check a at 1200",
            "check a now",
            "list newest limit=500",
            "watch 1001"
        ]
    );
    assert_eq!(rig.deliveries(2).await[1], "replace 1001: b@3 (new epoch)");
    let counters = rig.monitor.counters();
    assert_eq!((counters.relists.get("history_replaced"), counters.epochs), (Some(&1), 1));
}

/// Options that verify the server's history.
fn verifying() -> ReflectorOptions {
    let mut options = plain();
    options.history_check.on_reconnect = true;
    options
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_resumed_once_the_newest_object_is_found_at_its_version() {
    let rig = Rig::start(verifying());
    rig.source.on_list(List::at("10").item(map("a", "7")).item(map("b", "9")));
    rig.source.on_watch(Watch::new().modified(map("a", "12")).broken(TransportKind::Reset));
    rig.source.on_list(List::at("12").item(map("a", "12")));
    assert_eq!(rig.requests(4).await[2..], ["check a at 12", "watch 12"]);
    assert_eq!(rig.monitor.counters().lists, 1, "nothing is listed");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_replaced_its_history_and_passed_our_version_is_listed_from_scratch() {
    let rig = Rig::start(verifying());
    rig.source.on_list(List::at("10").item(map("a", "7")).item(map("b", "9")));
    rig.source.on_watch(Watch::new().modified(map("a", "12")).broken(TransportKind::Reset));
    rig.source.on_list(List::at("12").item(map("a", "7")));
    rig.source.on_list(List::at("30").item(map("a", "7")).item(map("c", "12")));
    assert_eq!(rig.requests(5).await[2..], ["check a at 12", "list newest limit=500", "watch 30"]);
    assert_eq!(rig.deliveries(3).await[2], "replace 30: a@7 c@12 (new epoch)");
}

#[tokio::test(start_paused = true)]
async fn without_evidence_the_collection_is_listed_and_nothing_held_is_reused() {
    let known = |identity: &Identity| Some(Cached::from(map(identity.key(), "7")));
    let rig = Rig::start_with(verifying(), |_| {}, |reflector| reflector.reuse(known));
    rig.source.on_list(List::at("10").item(map("a", "7")));
    rig.source.on_watch(Watch::new().broken(TransportKind::Reset));
    rig.source.on_list(List::refused(expired()));
    rig.source.on_list(List::at("40").item(map("a", "35")));
    rig.source.on_list(List::at("40").item(map("a", "35")));
    let requests = rig.requests(6).await;
    assert_eq!(requests[2..], ["check a at 10", "check a now", "list 10", "watch 40"]);
    let counters = rig.monitor.counters();
    assert_eq!((counters.relists.get("unverified"), counters.epochs), (Some(&1), 0));
    assert_eq!(counters.reused, 1, "only what the first list brought");
}

#[tokio::test(start_paused = true)]
async fn after_a_break_a_watch_replays_from_the_last_change_and_a_renewal_resumes_at_the_bookmark() {
    let rig = Rig::start(verifying());
    rig.source.on_list(List::at("10").item(map("a", "7")));
    rig.source.on_watch(Watch::new().bookmark("20").broken(TransportKind::Reset));
    let found = || List::at("20").item(map("a", "7"));
    rig.source.on_list(found());
    rig.source.on_list(found());
    assert_eq!(rig.requests(5).await[2..], ["check a at 20", "list =20 limit=1", "watch 10"]);

    let rig = Rig::start(verifying());
    rig.source.on_list(List::at("10").item(map("a", "7")));
    let server = rig.source.open_watch(Watch::new().bookmark("20"));
    rig.requests(2).await;
    let timeout = rig.sent.first(2).await[1].timeout.unwrap();
    rig.pass(timeout).await;
    drop(server);
    rig.source.on_list(found());
    rig.source.on_list(found());
    assert_eq!(rig.requests(5).await[2..], ["check a at 20", "list =20 limit=1", "watch 20"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_at_a_version_that_a_bookmark_had_covered_proves_another_history() {
    let rig = Rig::start(verifying());
    rig.source.on_list(List::at("10").item(map("a", "7")));
    rig.source.on_watch(Watch::new().bookmark("20").broken(TransportKind::Reset));
    rig.source.on_list(List::at("20").item(map("a", "7")));
    rig.source.on_list(List::at("20").item(map("a", "7")));
    rig.source.on_watch(Watch::new().bookmark("14").added(map("b", "15")));
    rig.source.on_list(List::at("30").item(map("a", "7")).item(map("b", "15")));
    let requests = rig.requests(7).await;
    assert_eq!(requests[4..], ["watch 10", "list newest limit=500", "watch 30"]);
    assert_eq!(rig.deliveries(3).await[2], "replace 30: a@7 b@15 (new epoch)");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_replay_from_the_last_change_is_listed() {
    let rig = Rig::start(verifying());
    rig.source.on_list(List::at("10").item(map("a", "7")));
    rig.source.on_watch(Watch::new().bookmark("20").broken(TransportKind::Reset));
    rig.source.on_list(List::at("20").item(map("a", "7")));
    rig.source.on_list(List::at("20").item(map("a", "7")));
    rig.source.on_watch(Watch::refused(expired()));
    rig.source.on_list(List::at("30").item(map("a", "7")));
    assert_eq!(rig.requests(7).await[4..], ["watch 10", "list 20", "watch 30"]);
}

#[tokio::test(start_paused = true)]
async fn an_open_watch_is_verified_periodically_without_an_interruption() {
    let mut options = plain();
    options.history_check.every = Some(seconds(120));
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10"));
    let server = rig.source.open_watch(Watch::new());
    // The response comes late, and is older than what has been seen by then, but not than what had been when it was requested.
    rig.source.on_list(List::at("10").wait(seconds(30)));
    assert_eq!(rig.requests(3).await[2], "list =10 limit=1", "the empty collection");
    server.send(Watch::new().modified(map("a", "15")));
    rig.deliveries(2).await;
    rig.source.on_list(List::refused(status(403, "Forbidden")));
    rig.source.on_list(List::at("15"));
    let sent = rig.sent.first(6).await;
    assert_eq!([&*sent[3].what, &*sent[4].what], ["check a at 15"; 2], "a check that fails is no evidence");
    assert_eq!(rig.delay_after(3).await.as_secs(), 120);
    assert_eq!(sent[5].what, "list newest limit=500", "and an object that is missing is");
    assert_eq!(rig.monitor.counters().history_checks, 3);
}
