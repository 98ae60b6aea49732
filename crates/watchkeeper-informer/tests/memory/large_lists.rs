//! A large collection over a real socket, however the server sends it, in a process of its own: its peak is theirs.
//!
//! The collection has 40 MB, and what a client reads into memory as a whole is limited to 1 MB. `LARGE_LIST_MB=600` makes
//! it 600 MB; with `--release` that takes seconds.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{Client, limits::Limits};
use watchkeeper_informer::{SharedInformerFactory, factory::Scope, reflector::ReflectorOptions};
use watchkeeper_test_support::{Gate, Reply, ScriptedServer};

const OBJECT_BYTES: usize = 50_000;

/// The most memory this process may ever have had: less than the smallest collection and far less than a large one.
const ALLOWED: u64 = 36 << 20;

fn objects() -> usize {
    let megabytes = std::env::var("LARGE_LIST_MB").map_or(40, |mb| mb.parse().expect("a number of MB"));
    megabytes * 1_000_000 / OBJECT_BYTES
}

/// How the server sends the collection.
#[derive(Debug, Clone, Copy)]
struct Server {
    /// Whether it supports streaming lists.
    streams: bool,
    /// Whether the server paginates on request. A real one does so except at resourceVersion 0.
    honours_limit: bool,
    /// Whether the first response breaks off in the middle.
    breaks: bool,
}

fn object(n: usize) -> String {
    let padding = "x".repeat(OBJECT_BYTES);
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"map-{n:05}","namespace":"shop","uid":"u{n}","resourceVersion":"{}"}},"data":{{"padding":"{padding}"}}}}"#,
        n + 1
    )
}

fn chunked() -> Reply {
    Reply::chunked(200, &[("content-type", "application/json")])
}

/// The objects from `first` on, as the items of a page.
fn page(first: usize, count: usize, breaks: bool) -> Reply {
    let sent = if breaks { count / 2 } else { count };
    let items =
        chunked().chunk(r#"{"kind":"ConfigMapList","apiVersion":"v1","items":["#).generate(sent, move |n| {
            let comma = if n == 0 { "" } else { "," };
            format!("{comma}{}", object(first + n)).into_bytes()
        });
    if breaks {
        return items.reset();
    }
    let next = first + count;
    let token = if next < objects() { next.to_string() } else { String::new() };
    items.chunk(format!(r#"],"metadata":{{"resourceVersion":"50000","continue":"{token}"}}}}"#)).last_chunk()
}

fn stream(breaks: bool) -> Reply {
    let sent = if breaks { objects() / 2 } else { objects() };
    let events = chunked()
        .generate(sent, |n| format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", object(n)).into_bytes());
    if breaks {
        return events.reset();
    }
    let end = r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"50000","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    events.chunk(format!("{end}\n")).wait_for(&Gate::new())
}

async fn server(kind: Server) -> ScriptedServer {
    let responses = AtomicUsize::new(0);
    ScriptedServer::handler(move |request| {
        let query = request.target().split_once('?').map_or("", |(_, query)| query).to_owned();
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let number = |name: &str| value(name).and_then(|value| value.parse::<usize>().ok());
        let is_first = || responses.fetch_add(1, Ordering::SeqCst) == 0;
        if value("sendInitialEvents").is_some() {
            return if kind.streams { stream(kind.breaks && is_first()) } else { Reply::json(422, INVALID) };
        }
        if value("watch").is_some() {
            return chunked().wait_for(&Gate::new());
        }
        let first = number("continue").unwrap_or_default();
        let limit = number("limit").filter(|_| kind.honours_limit).unwrap_or(objects());
        page(first, limit.min(objects() - first), kind.breaks && is_first())
    })
    .await
}

const INVALID: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"sendInitialEvents is forbidden","code":422}"#;

#[tokio::test]
async fn a_large_collection_syncs_in_little_memory_however_it_is_sent() {
    if !crate::is_own_process("large_lists::a_large_collection_syncs_in_little_memory_however_it_is_sent") {
        return;
    }
    for (streams, honours_limit) in [(true, true), (false, false), (false, true)] {
        for breaks in [false, true] {
            let kind = Server { streams, honours_limit, breaks };
            let server = server(kind).await;
            let mut options = ReflectorOptions::default();
            options.backoff.initial = Duration::from_millis(5);
            let mut limits = Limits::default();
            limits.page_bytes = 1 << 20;
            let client = Client::from(server.client()).with_limits(limits);
            let factory = SharedInformerFactory::builder(client)
                .reflector(options)
                .scope(Scope::namespace("shop"))
                .transform(|mut map: ConfigMap| {
                    map.data = None;
                    Ok(map)
                })
                .build();
            let maps = factory.informer::<ConfigMap>();
            factory.start();
            let synced = factory.wait_for_sync_within(Duration::from_mins(5)).await;
            assert!(synced.is_ok(), "{kind:?}: {synced:?}");
            assert_eq!(maps.snapshot().len(), objects(), "{kind:?}");
            factory.shutdown().await;
            let peak = crate::peak_bytes();
            assert!(peak < ALLOWED, "{kind:?}: the peak is {peak} bytes");
        }
    }
}
