//! Watches over HTTP, from correct and from faulty servers.

use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ApiResource, params::WatchParams};
use serde_json::{Value, json};
use watchkeeper_client::{
    Client, Error,
    classify::{Failure, Next, Phase, Situation, classify},
    decode::ObjectMetadata,
    error::{TransportKind, Unreadable},
    list_watch::{ListWatch, ListerWatcher, WatchEvent, WatchRequest},
};
use watchkeeper_test_support::{Gate, Reply, ScriptedServer};

fn config_maps(server: &ScriptedServer) -> ListWatch<ConfigMap> {
    ListWatch::new(&Client::from(server.client()).resource::<ConfigMap>())
}

fn frame(event: &str, name: &str, version: &str) -> String {
    let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "data": { "k": "v" },
        "metadata": { "name": name, "namespace": "shop", "resourceVersion": version } });
    format!("{}\n", json!({ "type": event, "object": object }))
}

/// Returns a summary of an event.
fn describe(event: WatchEvent<ConfigMap>) -> String {
    let (word, item) = match event {
        WatchEvent::Added(item) => ("added", item),
        WatchEvent::Modified(item) => ("modified", item),
        WatchEvent::Deleted(item) => ("deleted", item),
        WatchEvent::Bookmark(mark) if mark.initial_events_end => {
            return format!("synced {}", mark.resource_version);
        }
        WatchEvent::Bookmark(mark) => return format!("bookmark {}", mark.resource_version),
    };
    match item.decode() {
        Ok(object) => format!("{word} {}", object.metadata.name.clone().unwrap_or_default()),
        Err(error) => {
            let version = error.identity.resource_version().unwrap_or_default();
            format!("{word} undecodable {}@{version}", error.identity.key())
        }
    }
}

/// Returns all events of a watch, and the error that ended it, if any.
async fn follow(source: &ListWatch<ConfigMap>) -> (Vec<String>, Option<Error>) {
    let mut events = match source.watch(WatchRequest::new().resource_version("10")).await {
        Ok(events) => events,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut received = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => received.push(describe(event)),
            Err(error) => {
                assert!(events.next().await.is_none(), "an error is the last thing");
                return (received, Some(error));
            }
        }
    }
    (received, None)
}

async fn watched(reply: Reply) -> (Vec<String>, Option<Error>) {
    let server = ScriptedServer::script([reply]).await;
    follow(&config_maps(&server)).await
}

fn stream(body: impl Into<Vec<u8>>) -> Reply {
    Reply::chunked(200, &[]).chunk(body).last_chunk()
}

#[tokio::test]
async fn events_come_in_order_however_they_are_cut() {
    let body = [
        frame("ADDED", "a", "11"),
        "\n \r\n".to_owned(),
        frame("MODIFIED", "a", "12").replace('\n', "\r\n"),
        frame("DELETED", "a", "13"),
        json!({ "type": "BOOKMARK", "object": { "metadata": { "resourceVersion": "14" } } }).to_string(),
    ]
    .concat();
    let expected = ["added a", "modified a", "deleted a", "bookmark 14"];
    let mut pieces = Reply::chunked(200, &[]);
    for piece in body.as_bytes().chunks(11) {
        pieces = pieces.chunk(piece);
    }
    let length = body.len().to_string();
    let drip = Reply::head(200, &[("content-length", &length)]).drip(body.clone(), 1);
    for reply in [stream(body.clone()), pieces.last_chunk(), drip] {
        let (received, error) = watched(reply).await;
        assert_eq!(received, expected);
        assert!(error.is_none(), "{error:?}");
    }
}

#[tokio::test]
async fn an_event_is_delivered_before_the_next_one_arrives() {
    let gate = Gate::new();
    let reply = Reply::chunked(200, &[])
        .chunk(frame("ADDED", "a", "11"))
        .wait_for(&gate)
        .chunk(frame("DELETED", "a", "12"))
        .last_chunk();
    let server = ScriptedServer::script([reply]).await;
    let mut events = config_maps(&server).watch(WatchRequest::new()).await.unwrap();
    assert_eq!(describe(events.next().await.unwrap().unwrap()), "added a");
    gate.open();
    assert_eq!(describe(events.next().await.unwrap().unwrap()), "deleted a");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn an_undecodable_object_is_named_and_the_next_event_follows() {
    let bad = frame("MODIFIED", "bad", "11").replace(r#""k":"v""#, r#""k":7"#);
    let (received, error) = watched(stream(bad + &frame("ADDED", "good", "12"))).await;
    assert_eq!(received, ["modified undecodable shop/bad@11", "added good"]);
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test]
async fn a_frame_that_cannot_be_read_ends_the_watch_before_anything_behind_it() {
    let behind = frame("ADDED", "behind", "12");
    let nameless = r#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}"#;
    for (bad, expected) in [
        ("garbage", "not valid JSON at byte 0"),
        (r#"{"type":"MODIFIED","object":{"metadata":"#, "ends at byte"),
        (r#"{"type":"RENAMED","object":{}}"#, "unknown watch event type"),
        (r#"{"type":"ADDED","object":{"kind":"Table","rows":[]}}"#, "a Table instead of an object"),
        (
            r#"{"type":"ADDED","object":{"kind":"Secret","metadata":{"name":"a"}}}"#,
            "another kind than ConfigMap",
        ),
        (nameless, "`metadata.name` is missing"),
        (
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}"#,
            "`metadata.resourceVersion` is missing",
        ),
        (r#"{"type":"ERROR","object":{"code":"strange"}}"#, "another kind than Status"),
        ("\u{feff}", "not valid JSON at byte 0"),
    ] {
        let body = format!("{}{bad}\n{behind}", frame("ADDED", "before", "10"));
        let (received, error) = watched(stream(body)).await;
        assert_eq!(received, ["added before"], "{bad}");
        let error = error.expect("an error");
        assert!(matches!(error, Error::Body { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{bad}: {error}");
        let classification = classify(Situation::at(Phase::WatchStream), Failure::from(&error));
        assert_eq!(classification.decision.next(), Next::Resume, "from before it");
    }
    // The last frame is cut off by a regular end of the stream.
    let (received, error) = watched(stream(&behind[..behind.len() - 5])).await;
    assert!(received.is_empty() && matches!(error, Some(Error::Body { .. })), "{received:?} {error:?}");
}

#[tokio::test]
async fn expired_means_the_same_before_the_stream_and_in_it() {
    let status = json!({ "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old",
        "details": { "retryAfterSeconds": 3 } });
    let in_stream = format!("{}\n", json!({ "type": "ERROR", "object": status }));
    let (received, error) = watched(stream(in_stream + &frame("ADDED", "behind", "12"))).await;
    assert!(received.is_empty());
    let in_stream = error.unwrap();
    let (_, at_start) = watched(Reply::json(410, status.to_string())).await;
    let (_, bare) = watched(stream(format!("{status}\n"))).await;
    for error in [in_stream, at_start.unwrap(), bare.unwrap()] {
        assert!(error.is_expired(), "{error}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
        for phase in [Phase::WatchStart, Phase::WatchStream] {
            assert_eq!(classify(Situation::at(phase), Failure::from(&error)).decision.next(), Next::Relist);
        }
    }
}

#[tokio::test]
async fn a_connection_cut_in_a_frame_gives_neither_half_an_event_nor_a_clean_end() {
    let half = &frame("ADDED", "half", "12")[..40];
    for (reply, kinds) in [
        (
            Reply::chunked(200, &[]).chunk(frame("ADDED", "a", "11")).chunk(half).close(),
            &[TransportKind::UnexpectedEof][..],
        ),
        (
            Reply::chunked(200, &[]).chunk(frame("ADDED", "a", "11")).chunk(half).reset(),
            &[TransportKind::Reset, TransportKind::UnexpectedEof],
        ),
    ] {
        let (received, error) = watched(reply).await;
        // A reset may overtake data that was sent before it.
        assert!(received.is_empty() || received == ["added a"], "{received:?}");
        match error {
            Some(Error::Transport { kind, .. }) => assert!(kinds.contains(&kind), "{kind}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_compressed_watch_is_rejected() {
    let (_, error) = watched(Reply::gzip_json(200, b"{}")).await;
    assert!(matches!(error, Some(Error::Decode { reason: Unreadable::Encoding, .. })), "{error:?}");
}

#[tokio::test]
async fn bookmarks_say_where_they_are_and_whether_the_initial_events_ended() {
    let mark = |version: &str, annotations: &Value| {
        let metadata =
            json!({ "resourceVersion": version, "creationTimestamp": null, "annotations": annotations });
        format!(
            "{}\n",
            json!({ "type": "BOOKMARK", "object": { "kind": "ConfigMap", "metadata": metadata } })
        )
    };
    let body = [
        mark("11", &json!({ "k8s.io/initial-events-end": "true" })),
        mark("12", &json!({ "k8s.io/initial-events-end": "false" })),
        mark("13", &json!({ "k8s.io/initial-events-end": "" })),
        mark("14", &json!(null)),
    ];
    let (received, error) = watched(stream(body.concat())).await;
    assert_eq!(received, ["synced 11", "bookmark 12", "bookmark 13", "bookmark 14"]);
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test]
async fn a_watch_sends_the_requested_parameters() {
    let server = ScriptedServer::handler(|_| stream("")).await;
    let source = config_maps(&server).labels("a=b");
    drop(
        source
            .watch(WatchRequest::new().timeout(Duration::from_secs(7)).resource_version("10"))
            .await
            .unwrap(),
    );
    let initial = WatchRequest::new().timeout(Duration::from_secs(7)).send_initial_events();
    drop(source.watch(initial).await.unwrap());
    let bare = WatchRequest::new().timeout(Duration::from_secs(7)).without_bookmarks();
    drop(source.watch(bare).await.unwrap());
    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/configmaps?watch=true&timeoutSeconds=7&labelSelector=a%3Db&allowWatchBookmarks=true&resourceVersion=10 HTTP/1.1",
            "GET /api/v1/configmaps?watch=true&timeoutSeconds=7&labelSelector=a%3Db&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan HTTP/1.1",
            "GET /api/v1/configmaps?watch=true&timeoutSeconds=7&labelSelector=a%3Db HTTP/1.1",
        ]
    );
    assert_eq!(server.received()[0].header("accept-encoding"), Some("identity"));

    let resource = ApiResource::erase::<ConfigMap>(&());
    let client = Client::from(server.client()).resource_with::<ObjectMetadata>(&resource);
    drop(ListWatch::new(&client).watch(WatchRequest::new()).await.unwrap());
    let of = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let accept = format!("application/vnd.kubernetes.protobuf;{of},application/json;{of};q=0.9");
    assert_eq!(server.received()[3].header("accept"), Some(accept.as_str()));
}

#[tokio::test]
async fn watches_are_given_different_times_to_end_between_five_and_ten_minutes() {
    let server = ScriptedServer::handler(|_| stream("")).await;
    let times = async |seed| {
        let before = server.lines().len();
        let source = config_maps(&server).seed(seed);
        for _ in 0..20 {
            drop(source.watch(WatchRequest::new()).await.unwrap());
        }
        let seconds = |line: &String| {
            let (_, rest) = line.split_once("timeoutSeconds=").unwrap();
            rest.split(['&', ' ']).next().unwrap().parse::<u32>().unwrap()
        };
        server.lines()[before..].iter().map(seconds).collect::<Vec<_>>()
    };
    let first = times(7).await;
    assert!(first.iter().all(|seconds| (300..=600).contains(seconds)), "{first:?}");
    assert!(first.iter().min() < Some(&400) && first.iter().max() > Some(&500), "{first:?}");
    assert_eq!(first, times(7).await, "the seed decides");
    assert_ne!(first, times(8).await);
}

#[tokio::test]
async fn a_limit_is_named_with_its_value() {
    let deep = format!(r#"{{"type":"ADDED","object":{{"a":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
    let (_, error) = watched(stream(deep + "\n")).await;
    assert!(matches!(error, Some(Error::Limit { limit: "json_depth", allowed: 128, .. })), "{error:?}");
    let (_, error) = watched(stream(vec![b'{'; (16 << 20) + 2])).await;
    assert!(
        matches!(error, Some(Error::Limit { limit: "event_bytes", allowed: 16_777_216, .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_typed_watch_reports_an_object_that_cannot_be_decoded_and_continues() {
    let odd = frame("ADDED", "odd", "11").replace(r#"{"k":"v"}"#, "7");
    let end = json!({ "type": "BOOKMARK", "object": { "kind": "ConfigMap", "metadata": {
        "resourceVersion": "13", "annotations": { "k8s.io/initial-events-end": "true" } } } });
    let body = format!("{odd}{}{end}\n", frame("MODIFIED", "even", "12"));
    let server = ScriptedServer::handler(move |_| Reply::json(200, body.clone())).await;
    let maps = Client::from(server.client()).resource::<ConfigMap>();
    let params = WatchParams::default().labels("app=web").fields("metadata.name!=x").timeout(7);
    let events: Vec<_> = maps.watch(&params, "10").await.unwrap().collect().await;
    let [Err(error), Ok(kube_core::WatchEvent::Modified(even)), Ok(kube_core::WatchEvent::Bookmark(end))] =
        &events[..]
    else {
        panic!("{events:?}");
    };
    let message = error.to_string();
    assert!(message.starts_with(r#"watch configmaps "odd" in namespace "shop": "#), "{message}");
    assert_eq!(even.metadata.name.as_deref(), Some("even"));
    assert_eq!(end.metadata.resource_version, "13");
    assert_eq!(end.metadata.annotations["k8s.io/initial-events-end"], "true");
    let line = &server.lines()[0];
    for part in [
        "labelSelector=app%3Dweb",
        "fieldSelector=metadata.name%21%3Dx",
        "timeoutSeconds=7",
        "resourceVersion=10",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}
