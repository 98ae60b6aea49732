//! The shell: stopping, back-pressure, turns, resyncs, the hook.

use std::{future::pending, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{sync::mpsc, task::JoinSet};
use watchkeeper_client::{
    classify::{Next, Phase, Reason},
    error::{ApiReason, TransportKind},
    list_watch::{RecordedRequest, ScriptedSource},
};
use watchkeeper_informer::{
    reflector::{Reflector, RelistLimiter, WatchDelta},
    status::Status,
};

use super::support::{List, Rig, Watch, expired, map, now, plain, seconds, status, streaming};

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_reflector_immediately_even_during_a_wait() {
    let mut rig = Rig::start(plain());
    for _ in 0..8 {
        rig.source.on_list(List::unreachable(TransportKind::Refused));
    }
    rig.requests(8).await;
    let before = now();
    rig.stop().await;
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(rig.monitor.status(), Status::Stopped);
}

#[tokio::test(start_paused = true)]
async fn stopped_it_lets_go_of_the_watch() {
    let mut rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    let server = rig.source.open_watch(Watch::new());
    rig.requests(2).await;
    assert!(server.is_open());
    rig.stop().await;
    assert!(!server.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_is_already_stopped_sends_no_request() {
    let source = ScriptedSource::<ConfigMap>::new();
    let reflector = Reflector::new("test", Arc::new(source.clone())).options(plain());
    let (sink, _changes) = mpsc::channel(1);
    reflector.run(sink, async {}).await;
    assert!(source.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_source_and_a_sink_that_are_always_ready_do_not_keep_it_from_stopping() {
    let mut rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    let mut flood = Watch::new();
    for n in 11..200_000 {
        flood = flood.bookmark(n.to_string());
    }
    let _server = rig.source.open_watch(flood);
    rig.deliveries(2).await;
    rig.stop().await;
    assert!(rig.received.all().len() < 199_000, "it was stopped on the way: {}", rig.received.all().len());
}

#[tokio::test(start_paused = true)]
async fn a_reflector_ends_when_its_sink_is_closed() {
    let source = ScriptedSource::<ConfigMap>::new();
    source.on_list(List::at("10"));
    let reflector = Reflector::new("test", Arc::new(source.clone())).options(plain());
    let monitor = reflector.monitor();
    let (sink, changes) = mpsc::channel(1);
    drop(changes);
    reflector.run(sink, pending()).await;
    assert_eq!(monitor.status(), Status::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_full_sink_is_waited_for_and_nothing_is_read_meanwhile() {
    let source = ScriptedSource::<ConfigMap>::new();
    source.on_list(List::at("10"));
    let events = (11..20).fold(Watch::new(), |events, n| events.modified(map("a", &n.to_string())));
    let _server = source.open_watch(events);
    let reflector = Reflector::new("test", Arc::new(source)).options(plain());
    let monitor = reflector.monitor();
    let (sink, mut changes) = mpsc::channel(2);
    let mut running = JoinSet::new();
    running.spawn(reflector.run(sink, pending()));
    tokio::time::sleep(seconds(60)).await;
    let read = monitor.counters().modified;
    assert_eq!(
        read, 2,
        "the list and one event are in the channel, the next is in hand, the rest with the server"
    );
    for _ in 0..10 {
        changes.recv().await.unwrap();
    }
    assert_eq!(monitor.counters().modified, 9);
    assert_eq!(monitor.counters().watches, 1, "and the wait was no silence of the server's");
}

#[tokio::test(start_paused = true)]
async fn a_watch_behind_a_sink_that_was_full_for_long_is_read_before_it_is_given_up_for_dead() {
    let source = ScriptedSource::<ConfigMap>::new();
    source.on_list(List::at("10"));
    let _server = source.open_watch(Watch::new().modified(map("a", "11")).modified(map("a", "12")));
    let reflector = Reflector::new("test", Arc::new(source.clone())).options(plain());
    let (sink, mut changes) = mpsc::channel(1);
    let mut running = JoinSet::new();
    running.spawn(reflector.run(sink, pending()));
    tokio::time::sleep(Duration::from_hours(1)).await;
    for _ in 0..3 {
        changes.recv().await.unwrap();
    }
    match source.requests().last() {
        Some(RecordedRequest::Watch(last)) => assert_eq!(last.resource_version.as_deref(), Some("12")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn resyncs_are_periodic_from_the_first_list_on_and_send_no_request() {
    let mut options = plain();
    options.resync_period = Some(seconds(30));
    let rig = Rig::start(options);
    rig.source.on_list(List::unreachable(TransportKind::Refused));
    rig.pass(seconds(100)).await;
    assert!(rig.received.all().is_empty(), "not before there is anything to go over");
    rig.source.on_list(List::at("10"));
    rig.deliveries(1).await;
    rig.pass(seconds(95)).await;
    assert_eq!(rig.deliveries(4).await[1..], ["resync"; 3]);
    assert_eq!(rig.sent.all().len(), 3);
    // Also while the server cannot be reached.
    rig.source.on_watch(Watch::unreachable(TransportKind::Refused));
    rig.pass(seconds(31)).await;
    assert_eq!(rig.received.all().len(), 5);
    assert_eq!(rig.monitor.counters().resyncs, 4);
}

#[tokio::test(start_paused = true)]
async fn a_busy_watch_does_not_keep_resyncs_back() {
    let mut options = plain();
    options.resync_period = Some(seconds(10));
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10"));
    let mut events = Watch::new();
    for n in 11..61 {
        events = events.wait(seconds(1)).bookmark(n.to_string());
    }
    let _server = rig.source.open_watch(events);
    rig.pass(seconds(55)).await;
    assert_eq!(rig.received.all().iter().filter(|received| *received == "resync").count(), 5);
}

#[tokio::test(start_paused = true)]
async fn lists_take_turns_and_watches_do_not() {
    let limiter = RelistLimiter::new(2);
    let rigs: Vec<_> = (0..6)
        .map(|n| {
            let limiter = limiter.clone();
            let options = if n % 2 == 0 { plain() } else { streaming() };
            let script = |source: &ScriptedSource<ConfigMap>| {
                if n % 2 == 0 {
                    source.on_list(List::at("10").wait(seconds(5)));
                } else {
                    source.on_watch(Watch::new().wait(seconds(5)).initial_events_end("10").stall());
                }
            };
            Rig::start_with(options, script, |reflector| reflector.limiter(limiter))
        })
        .collect();
    let mut most = 0;
    for _ in 0..20 {
        rigs[0].pass(seconds(1)).await;
        let sent: usize = rigs.iter().map(|rig| rig.sent.all().len().min(1)).sum();
        let synced = rigs.iter().filter(|rig| rig.monitor.status().is_synced()).count();
        most = most.max(sent - synced);
    }
    assert_eq!(most, 2);
    assert!(
        rigs.iter().all(|rig| rig.monitor.status().is_synced()),
        "each had its turn within three times five seconds"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_waits_after_a_failure_holds_no_list_permit() {
    let limiter = RelistLimiter::new(1);
    let failing = {
        let limiter = limiter.clone();
        let script = |source: &ScriptedSource<ConfigMap>| {
            for _ in 0..20 {
                source.on_list(List::refused(status(403, "Forbidden")));
            }
        };
        Rig::start_with(plain(), script, |reflector| reflector.limiter(limiter))
    };
    failing.requests(1).await;
    let script = |source: &ScriptedSource<ConfigMap>| source.on_list(List::at("10"));
    let fine = Rig::start_with(plain(), script, |reflector| reflector.limiter(limiter));
    let before = now();
    assert!(fine.monitor.wait_for_sync(None).await.is_ok());
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_hook_is_called_with_every_failure_and_its_recovery() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::refused(status(403, "Forbidden")));
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().wait(seconds(3)).error(expired()));
    rig.requests(4).await;
    let failures = rig.failures.all();
    let [forbidden, gone] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((forbidden.phase, forbidden.next), (Phase::List, Next::Relist));
    assert_eq!(forbidden.reason, Reason::Api(ApiReason::Forbidden));
    assert!(!forbidden.is_transient && forbidden.retry_in.is_some());
    assert!(forbidden.to_string().contains("; relisting in "), "{forbidden}");
    assert_eq!((gone.phase, gone.next, gone.retry_in), (Phase::WatchStream, Next::Relist, None));
    assert!(gone.is_transient);
    assert_eq!(gone.attempts, 1, "the list in between was progress");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_makes_the_same_choices() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut options = plain();
        options.seed = Some(42);
        let rig = Rig::start(options);
        for _ in 0..5 {
            rig.source.on_list(List::unreachable(TransportKind::Refused));
        }
        rig.source.on_list(List::at("10"));
        runs.push(rig.sent.first(7).await);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn options_that_mean_never_or_immediately_are_respected() {
    for extreme in [Duration::MAX, Duration::ZERO] {
        let mut options = streaming();
        options.watch.min_timeout = extreme;
        options.watch.grace = extreme;
        options.streaming.progress = Duration::MAX;
        options.streaming.silence = Duration::MAX;
        options.streaming.remember = extreme;
        options.history_check.every = Some(extreme);
        options.resync_period = Some(extreme);
        let rig = Rig::start(options);
        rig.source.on_watch(Watch::refused(status(422, "Invalid")));
        rig.source.on_list(List::at("10"));
        rig.source.on_watch(Watch::new().bookmark("11").error(status(503, "ServiceUnavailable")));
        let _server = rig.source.open_watch(Watch::new());
        rig.pass(Duration::from_mins(3)).await;
        assert!(rig.monitor.status().is_synced(), "{extreme:?}: {:?}", rig.monitor.status());
        assert_eq!(rig.monitor.counters().resyncs, 0);
        let probes = rig.monitor.counters().history_checks;
        assert!(probes <= 180, "{extreme:?}: {probes} probes");
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_wait_may_be_as_long_as_anyone_likes() {
    let mut options = plain();
    options.backoff.initial = Duration::MAX;
    options.backoff.max = Duration::MAX;
    let mut rig = Rig::start(options);
    rig.source.on_list(List::unreachable(TransportKind::Refused));
    rig.pass(Duration::from_hours(24)).await;
    assert_eq!(rig.sent.all().len(), 1);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_stops_it() {
    let source = ScriptedSource::<ConfigMap>::new();
    let server = source.open_watch(Watch::new().initial_events_end("10"));
    let reflector = Reflector::new("test", Arc::new(source));
    let monitor = reflector.monitor();
    let (sink, mut changes) = mpsc::channel(4);
    tokio::select! {
        () = reflector.run(sink, pending()) => panic!("not stopped"),
        first = changes.recv() => assert!(matches!(first, Some(WatchDelta::Replaced(_)))),
    }
    assert_eq!(monitor.status(), Status::Stopped);
    assert!(!server.is_open());
}
