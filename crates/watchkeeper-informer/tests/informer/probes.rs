//! Faults that break informers in production, each sent over a real socket. The cache must end in the right state. The faults
//! that test memory are in `memory/probes.rs`.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;
use watchkeeper_informer::{event::Event, factory::Scope, status::SyncError};
use watchkeeper_test_support::{Gate, Reply, ScriptedServer};

use crate::probe_server::*;

/// An object that is named and cannot be decoded.
fn undecodable(name: &str, version: u64) -> String {
    object(name, version).replace(r#""data":{"#, r#""data":"no map","binaryData":{"#)
}

/// Returns a rejection.
fn status(code: u16, reason: &str, message: &str) -> Reply {
    Reply::json(
        code,
        format!(
            r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{code},"reason":"{reason}","message":"{message}"}}"#
        ),
    )
}

#[tokio::test]
async fn p1_a_watch_rejected_with_http_410_is_listed_again() {
    let server = server(|request| match request {
        TestRequest::List { number: 1, .. } => list(10, &[object("a", 5)]),
        TestRequest::List { .. } => list(20, &[object("a", 15), object("b", 16)]),
        TestRequest::Watch { from, .. } if from.as_deref() == Some("10") => status(410, "Expired", "too old"),
        TestRequest::Watch { .. } => watch(&[("ADDED", object("c", 21))]),
    })
    .await;
    let informer = informer(&server);
    assert_eq!(held_at(&informer, 21).await, ["a@15", "b@16", "c@21"]);
    assert_eq!(server.lines().len(), 4, "{:#?}", server.lines());
}

#[tokio::test]
async fn p2_a_version_too_large_is_listed_from_scratch() {
    let server = server(|request| match request {
        TestRequest::List { number: 1, .. } => list(10, &[object("a", 5)]),
        TestRequest::List { from: None, .. } => list(12, &[object("a", 11)]),
        TestRequest::List { .. } => status(504, "Timeout", "Too large resource version: 10, current: 7"),
        TestRequest::Watch { number: 1, .. } => {
            status(504, "Timeout", "Too large resource version: 10, current: 7")
        }
        TestRequest::Watch { .. } => watch(&[]),
    })
    .await;
    let informer = informer(&server);
    assert_eq!(held_at(&informer, 12).await, ["a@11"]);
    assert!(informer.monitors()[0].1.counters().failures >= 1, "it is not hidden");
}

#[tokio::test]
async fn p3_an_undecodable_event_is_not_skipped_silently_and_its_object_is_corrected() {
    let mended = Gate::new();
    let gate = mended.clone();
    let event = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    let server = server(move |request| match request {
        TestRequest::List { .. } => list(10, &[object("a", 5)]),
        TestRequest::Watch { .. } => Reply::chunked(200, &[("content-type", "application/json")])
            .chunk(event("MODIFIED", &undecodable("a", 11)) + &event("ADDED", &object("b", 12)))
            .wait_for(&gate)
            .chunk(event("MODIFIED", &object("a", 13)))
            .wait_for(&Gate::new()),
    })
    .await;
    let informer = informer(&server);
    assert_eq!(held_at(&informer, 12).await, ["a@5", "b@12"], "the last good state stays");
    let aside = informer.quarantined();
    assert_eq!(
        (aside.len(), &*aside[0].key, aside[0].resource_version.as_deref()),
        (1, "shop/a", Some("11"))
    );
    assert!(!aside[0].error.is_empty() && !aside[0].error.contains("no map"), "{}", aside[0].error);
    mended.open();
    assert_eq!(held_at(&informer, 13).await, ["a@13", "b@12"]);
    assert_eq!(informer.quarantined(), []);
}

#[tokio::test]
async fn p3_in_strict_mode_an_undecodable_event_fails_the_watch_until_it_can_be_had() {
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = Arc::clone(&is_mended);
    let server = server(move |request| {
        let is_mended = mended.load(Ordering::SeqCst);
        match request {
            TestRequest::List { number: 1, .. } => list(10, &[object("a", 5)]),
            TestRequest::List { .. } if is_mended => list(20, &[object("a", 20)]),
            TestRequest::List { .. } => list(12, &[undecodable("a", 11)]),
            TestRequest::Watch { from, .. } if is_mended && from.as_deref() == Some("20") => watch(&[]),
            TestRequest::Watch { .. } if is_mended => watch(&[("MODIFIED", object("a", 20))]),
            TestRequest::Watch { .. } => watch(&[("MODIFIED", undecodable("a", 11))]),
        }
    })
    .await;
    let mend = move |_: &_| is_mended.store(true, Ordering::SeqCst);
    let factory = factory(&server).configure::<ConfigMap>(move |config| {
        let mend = mend.clone();
        config
            .reflector_with(|options| {
                options.undecodable = watchkeeper_informer::reflector::OnUndecodable::Fail;
            })
            .on_watch_error(move |failure| mend(failure))
    });
    let informer = started(factory);
    assert_eq!(held_at(&informer, 20).await, ["a@20"]);
    assert_eq!(informer.quarantined(), []);
}

#[tokio::test]
async fn p4_an_older_version_after_a_newer_one_is_rejected_and_listed_again() {
    let server = server(|request| match request {
        TestRequest::List { number: 1, .. } => list(10, &[object("a", 5)]),
        TestRequest::List { .. } => list(21, &[object("a", 20)]),
        TestRequest::Watch { number: 1, .. } => {
            watch(&[("MODIFIED", object("a", 20)), ("MODIFIED", object("a", 7))])
        }
        TestRequest::Watch { .. } => watch(&[]),
    })
    .await;
    let informer = informer(&server);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let handler = move |event: &Event<ConfigMap>| {
        let version = event.object().metadata().resource_version().unwrap_or_default();
        note.lock().expect("no panic").push(version.to_owned());
    };
    let registration = informer.add_handler(handler).expect("it runs");
    assert_eq!(held_at(&informer, 21).await, ["a@20"]);
    assert_eq!(informer.monitors()[0].1.counters().older_versions, 1);
    registration.synced().await.unwrap();
    assert!(!seen.lock().expect("no panic").contains(&"7".to_owned()), "{seen:?}");
}

#[tokio::test]
async fn p5_one_bad_object_of_a_list_does_not_keep_the_others_out() {
    let server = server(|request| match request {
        TestRequest::List { .. } => list(10, &[undecodable("a", 5), object("b", 6)]),
        TestRequest::Watch { .. } => watch(&[("MODIFIED", object("a", 11))]),
    })
    .await;
    let informer = informer(&server);
    informer.wait_for_sync(Some(Duration::from_mins(1))).await.expect("the others are there");
    assert_eq!(held_at(&informer, 11).await, ["a@11", "b@6"], "and it is there as soon as it can be had");
    assert_eq!(informer.quarantined(), []);
}

#[tokio::test]
async fn p6_a_second_page_that_is_always_too_old_leads_to_one_whole_list() {
    let server = server(|request| match request {
        TestRequest::List { page: Some(_), .. } => status(410, "Expired", "the continue token is too old"),
        TestRequest::List { limit: Some(_), .. } => page(10, "more", &[object("a", 5)]),
        TestRequest::List { .. } => list(10, &[object("a", 5), object("b", 6)]),
        TestRequest::Watch { .. } => watch(&[]),
    })
    .await;
    let informer = started(
        factory(&server)
            .configure::<ConfigMap>(|config| config.reflector_with(|options| options.page_size = Some(1))),
    );
    assert_eq!(held_at(&informer, 10).await, ["a@5", "b@6"]);
    let lists = server.lines().iter().filter(|line| !line.contains("watch=")).count();
    assert_eq!(lists, 3, "{:#?}", server.lines());
}

#[tokio::test]
async fn p9_a_namespace_that_is_a_path_is_never_sent() {
    let server = server(|_| list(10, &[])).await;
    for namespace in ["../../apis/x", "..", "a?x=y", "a#f", "a%2fb", ""] {
        let informer = started(factory(&server).scope(Scope::namespace(namespace)));
        let refused = informer.wait_for_sync(Some(Duration::from_mins(1))).await.expect_err("it is refused");
        assert!(matches!(&refused, SyncError::Refused { .. }), "{namespace:?}: {refused}");
        assert!(refused.to_string().contains("not sent"), "{refused}");
        informer.shutdown().await;
    }
    assert_eq!(server.lines(), [""; 0]);
}

#[tokio::test]
async fn p10_a_redirect_is_not_followed_and_the_right_server_is_used_once_it_responds() {
    let elsewhere = ScriptedServer::handler(|_| Reply::json(200, "{}")).await;
    let url = elsewhere.url();
    let is_back = Arc::new(AtomicBool::new(false));
    let back = Arc::clone(&is_back);
    let server = server(move |request| match request {
        _ if !back.load(Ordering::SeqCst) => Reply::whole(302, &[("location", url.as_str())], ""),
        TestRequest::List { .. } => list(10, &[object("a", 5)]),
        TestRequest::Watch { .. } => watch(&[]),
    })
    .await;
    let informer = informer(&server);
    let refused = informer.wait_for_sync(Some(Duration::from_mins(1))).await.expect_err("it goes nowhere");
    assert!(refused.to_string().contains("redirects are not followed"), "{refused}");
    is_back.store(true, Ordering::SeqCst);
    assert_eq!(held_at(&informer, 10).await, ["a@5"]);
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn p11_retry_after_of_a_busy_server_is_respected_without_a_list() {
    let server = server(|request| match request {
        TestRequest::List { .. } => list(10, &[object("a", 5)]),
        TestRequest::Watch { number: 1, .. } => Reply::whole(429, &[("retry-after", "1")], "slow down"),
        TestRequest::Watch { .. } => watch(&[("MODIFIED", object("a", 11))]),
    })
    .await;
    let informer = informer(&server);
    assert_eq!(held_at(&informer, 10).await, ["a@5"]);
    let before = now();
    assert_eq!(held_at(&informer, 11).await, ["a@11"]);
    assert!(now() - before >= Duration::from_millis(900), "the request was repeated at once");
    let lists = server.lines().iter().filter(|line| !line.contains("watch=")).count();
    assert_eq!(lists, 1, "{:#?}", server.lines());
}

#[expect(clippy::disallowed_methods, reason = "how long a real server was left alone")]
fn now() -> Instant {
    Instant::now()
}
