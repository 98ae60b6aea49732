//! Watches: what moves the version, how they end, and what is done about it.

use std::time::Duration;

use watchkeeper_client::{
    classify::{Next, Phase},
    error::TransportKind,
};
use watchkeeper_informer::reflector::VersionOrder;

use crate::support::{List, Rig, Watch, expired, map, plain, seconds, status, too_many};

/// A reflector that has a list of version 10 with an object `a` of version 5.
fn watching() -> Rig {
    Rig::start_with(
        plain(),
        |source| source.on_list(List::at("10").item(map("a", "5"))),
        |reflector| reflector,
    )
}

#[tokio::test(start_paused = true)]
async fn every_event_is_told_in_order_and_moves_the_version() {
    let rig = watching();
    let events = Watch::new()
        .added(map("b", "11"))
        .modified(map("a", "12"))
        .bookmark("15")
        .deleted(map("b", "16"))
        .bookmark("16");
    let server = rig.source.open_watch(events);
    let told = rig.tells(5).await;
    assert_eq!(told, ["replace 10: a@5", "add b@11", "update a@12", "bookmark 15", "delete b@16"]);
    assert_eq!(rig.monitor.last_sync_resource_version().as_deref(), Some("16"));
    drop(server);
    assert_eq!(rig.asks(3).await[2], "watch 16");
}

#[tokio::test(start_paused = true)]
async fn watches_are_asked_to_end_at_a_random_time_between_five_and_ten_minutes() {
    let rig = watching();
    for n in 11..60 {
        rig.source.on_watch(Watch::new().bookmark(n.to_string()));
    }
    let asked = rig.asked.first(50).await;
    let timeouts: Vec<_> = asked.iter().filter_map(|asked| asked.timeout).map(|t| t.as_secs()).collect();
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
        let timeout = rig.asked.first(2).await[1].timeout.unwrap().as_secs();
        assert!(expected.contains(&timeout), "{timeout} for {chosen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_costs_no_list() {
    let rig = watching();
    for _ in 0..4 {
        rig.source.on_watch(Watch::refused(too_many(0)));
    }
    let asks = rig.asks(6).await;
    assert_eq!(asks.iter().filter(|ask| ask.starts_with("list")).count(), 1);
    assert_eq!(asks[1..], ["watch 10"; 5]);
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_then_stay_between_half_a_minute_and_a_minute() {
    let rig = watching();
    for _ in 0..12 {
        rig.source.on_watch(Watch::unreachable(TransportKind::Refused));
    }
    rig.asks(14).await;
    for n in 0..12 {
        let interval = Duration::from_millis(800).saturating_mul(2_u32.pow(n)).min(seconds(30));
        let waited = rig.delay_after(n as usize + 1).await;
        let latest = interval * 2 + Duration::from_millis(2);
        assert!(waited >= interval && waited <= latest, "wait {n} was {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn chosen_waits_are_honoured() {
    let mut options = plain();
    options.backoff.initial = Duration::from_millis(10);
    options.backoff.max = Duration::from_millis(100);
    let rig = Rig::start(options);
    for _ in 0..6 {
        rig.source.on_list(List::unreachable(TransportKind::Refused));
    }
    rig.asks(7).await;
    for (n, interval) in [10, 20, 40, 80, 100, 100].map(Duration::from_millis).into_iter().enumerate() {
        let waited = rig.delay_after(n).await;
        assert!(waited >= interval && waited <= interval * 2 + Duration::from_millis(2), "{n}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_to_wait_is_the_least_in_the_answer_and_in_the_stream() {
    for script in [Watch::refused(too_many(20)), Watch::new().error(too_many(20))] {
        let rig = watching();
        rig.source.on_watch(script);
        let waited = {
            rig.asks(3).await;
            rig.delay_after(1).await
        };
        assert!(waited >= seconds(20) && waited < seconds(22), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_for_hours_does_not_shorten_the_waits() {
    let rig = watching();
    for _ in 0..90 {
        rig.source.on_watch(Watch::refused(status(503, "ServiceUnavailable")));
    }
    rig.asks(92).await;
    for n in 8..90 {
        let waited = rig.delay_after(n).await;
        assert!(waited >= seconds(30), "wait {n} was {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_works_for_a_moment_does_not_shorten_the_waits_and_one_that_lasts_does() {
    let rig = watching();
    for _ in 0..4 {
        rig.source.on_watch(Watch::refused(status(503, "ServiceUnavailable")));
    }
    rig.source.on_watch(Watch::new().wait(seconds(60)).error(too_many(0)));
    rig.source.on_watch(Watch::new().wait(seconds(130)).error(too_many(0)));
    rig.asks(8).await;
    let after_a_minute = rig.delay_after(5).await.saturating_sub(seconds(60));
    assert!(after_a_minute >= Duration::from_millis(12_800), "{after_a_minute:?}");
    let after_two = rig.delay_after(6).await.saturating_sub(seconds(130));
    assert!(after_two < seconds(2), "{after_two:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_that_ends_after_a_second_ended_in_good_order() {
    let rig = watching();
    rig.source.on_watch(Watch::new().wait(seconds(1)));
    rig.source.on_watch(Watch::new().wait(seconds(1)));
    assert_eq!(rig.asks(4).await[1..], ["watch 10"; 3]);
    assert_eq!(rig.delay_after(2).await.as_secs(), 1, "and is resumed at once");
    assert!(rig.failures.all().is_empty(), "without anybody being told of a failure");
    assert_eq!(rig.monitor.counters().watch_restarts.get("closed"), Some(&2));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_of_the_same_version_are_no_progress() {
    let rig = watching();
    for _ in 0..3 {
        rig.source.on_watch(Watch::new().bookmark("10"));
    }
    rig.asks(3).await;
    assert!(rig.delay_after(1).await >= Duration::from_millis(800), "else this would be a hot loop");
}

#[tokio::test(start_paused = true)]
async fn an_event_older_than_what_was_seen_is_not_applied_and_leads_to_a_list() {
    let rig = watching();
    rig.source
        .on_watch(Watch::new().modified(map("a", "20")).modified(map("a", "7")).modified(map("a", "21")));
    rig.source.on_list(List::at("22").item(map("a", "21")));
    assert_eq!(rig.asks(4).await[2..], ["list 20", "watch 22"]);
    assert_eq!(rig.tells(3).await, ["replace 10: a@5", "update a@20", "replace 22: a@21"]);
    let failure = &rig.failures.all()[0];
    assert_eq!((failure.phase, failure.next), (Phase::WatchStream, Next::Relist));
    assert!(failure.message.contains("resourceVersion 7"), "{failure}");
    let counters = rig.monitor.counters();
    assert_eq!((counters.steps_back, counters.relists.get("went_back")), (1, Some(&1)));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_with_the_version_of_the_object_leads_to_a_list_and_not_back_in_time() {
    let rig = watching();
    rig.source.on_watch(Watch::new().modified(map("b", "20")).deleted(map("a", "5")));
    rig.source.on_list(List::at("22").item(map("b", "20")));
    assert_eq!(rig.asks(4).await[2..], ["list 20", "watch 22"]);
    assert_eq!(rig.tells(3).await[2], "replace 22: b@20");
}

#[tokio::test(start_paused = true)]
async fn servers_that_number_each_object_apart_are_followed_when_told_so() {
    let mut options = plain();
    options.versions = VersionOrder::Opaque;
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10").item(map("a", "5")));
    rig.source.on_watch(Watch::new().modified(map("a", "20")).modified(map("b", "7")));
    assert_eq!(rig.asks(3).await[2], "watch 7", "the last event's version, as in client-go");
    assert_eq!(rig.tells(3).await[1..], ["update a@20", "update b@7"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_told_twice_is_no_step_back() {
    let rig = watching();
    rig.source
        .on_watch(Watch::new().modified(map("a", "11")).modified(map("a", "11")).deleted(map("a", "12")));
    assert_eq!(rig.asks(3).await[2], "watch 12");
    assert_eq!(rig.tells(4).await[1..], ["update a@11", "update a@11", "delete a@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_older_than_what_was_seen_is_not_believed() {
    let rig = watching();
    rig.source.on_watch(Watch::new().modified(map("a", "20")).bookmark("15").modified(map("a", "21")));
    assert_eq!(rig.asks(3).await[2], "watch 21");
    assert_eq!(rig.tells(3).await[1..], ["update a@20", "update a@21"]);
    assert_eq!(rig.monitor.counters().steps_back, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_version_ends_the_watch_and_is_asked_for_again() {
    let rig = watching();
    rig.source.on_watch(Watch::new().modified(map("b", "11")).modified(map("a", "")));
    rig.source.on_watch(Watch::new().modified(map("a", "12")));
    assert_eq!(rig.asks(3).await[1..], ["watch 10", "watch 11"]);
    assert_eq!(rig.tells(3).await[1..], ["update b@11", "update a@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_the_server_forgot_is_given_up_for_dead_and_resumed() {
    let rig = watching();
    let server = rig.source.open_watch(Watch::new().stall());
    let asked = rig.asked.first(3).await;
    assert_eq!(asked[2].what, "watch 10");
    let timeout = asked[1].timeout.unwrap();
    assert_eq!(rig.delay_after(1).await.as_secs(), timeout.as_secs() + 30);
    assert!(!server.is_open(), "and its connection is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_something_never_seen_is_told_all_the_same() {
    let rig = watching();
    rig.source.on_watch(Watch::new().deleted(map("z", "11")));
    assert_eq!(rig.tells(2).await[1], "delete z@11");
}

#[tokio::test(start_paused = true)]
async fn the_watch_is_dropped_when_it_brought_an_error() {
    let rig = watching();
    let server = rig.source.open_watch(Watch::new().modified(map("a", "11")));
    rig.tells(2).await;
    assert!(server.is_open());
    server.send(Watch::new().error(expired()));
    rig.asks(3).await;
    assert!(!server.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_resumed_watch_is_probed_and_a_server_that_went_back_in_time_is_found_out() {
    let mut options = plain();
    options.rewind_probe.at_reconnect = true;
    let rig = Rig::start(options);
    rig.source.on_list(List::at("1200").item(map("a", "1100")));
    rig.source.on_watch(Watch::new().wait(seconds(5)));
    // Restored from a backup, it takes a watch from a version it has not reached, and is silent.
    let silent = rig.source.open_watch(Watch::new().stall());
    rig.source.on_list(List::at("1001").item(map("b", "3")));
    rig.source.on_list(List::at("1001").item(map("b", "3")));
    assert_eq!(
        rig.asks(6).await,
        [
            "list 0 limit=500",
            "watch 1200",
            "watch 1200",
            "list newest limit=1",
            "list newest limit=500",
            "watch 1001"
        ]
    );
    assert_eq!(rig.tells(2).await[1], "replace 1001: b@3 (new epoch)");
    assert!(!silent.is_open());
    let counters = rig.monitor.counters();
    assert_eq!((counters.relists.get("rewound"), counters.epochs), (Some(&1), 1));
}

#[tokio::test(start_paused = true)]
async fn an_open_watch_is_probed_now_and_then_and_goes_on_meanwhile() {
    let mut options = plain();
    options.rewind_probe.every = Some(seconds(120));
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10"));
    let server = rig.source.open_watch(Watch::new());
    // The answer comes late, and is older than what has been seen by then, but not than what had been when it was asked for.
    let probe = "list newest limit=1";
    rig.source.on_list(List::at("10").wait(seconds(30)));
    assert_eq!(rig.asks(3).await[2], probe);
    server.send(Watch::new().modified(map("a", "15")));
    rig.tells(2).await;
    rig.source.on_list(List::refused(status(403, "Forbidden")));
    rig.source.on_list(List::at("14"));
    let asked = rig.asked.first(6).await;
    assert_eq!([&*asked[3].what, &*asked[4].what], [probe; 2], "a probe that fails says nothing");
    assert_eq!(rig.delay_after(3).await.as_secs(), 120);
    assert_eq!(asked[5].what, "list newest limit=500", "and one that is older than what was seen says it");
    assert_eq!(rig.monitor.counters().probes, 3);
}
