//! Watches over a WebSocket.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, Request, Response};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Bytes, Message, client::IntoClientRequest, protocol::frame::coding::CloseCode},
};
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, Endpoint};

use crate::support::{Cluster, read, version};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

type Socket = WebSocketStream<TcpStream>;

async fn listen(server: &ApiServer) -> Endpoint {
    server.listen(([127, 0, 0, 1], 0).into()).await.unwrap()
}

/// Returns a handshake as sent by clients. A header without a value is omitted.
fn handshake(endpoint: &Endpoint, path: &str, headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = format!("ws://{}{path}", endpoint.address()).into_client_request().unwrap();
    request.headers_mut().insert("origin", HeaderValue::from_str(&endpoint.url()).unwrap());
    for (name, value) in headers {
        if value.is_empty() {
            request.headers_mut().remove(*name);
        } else {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
        }
    }
    request
}

async fn connect(
    endpoint: &Endpoint,
    path: &str,
    headers: &[(&'static str, &str)],
) -> (Socket, Response<Option<Vec<u8>>>) {
    let stream = TcpStream::connect(endpoint.address()).await.unwrap();
    client_async(handshake(endpoint, path, headers), stream).await.unwrap()
}

/// Returns the response to a request that is not switched: its code, its headers and its body.
async fn refused(
    endpoint: &Endpoint,
    path: &str,
    headers: &[(&'static str, &str)],
) -> (u16, http::HeaderMap, Value) {
    let mut stream = TcpStream::connect(endpoint.address()).await.unwrap();
    let request = handshake(endpoint, path, headers);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(&mut stream)).await.unwrap();
    let mut plain = Request::builder().uri(path).body(String::new()).unwrap();
    *plain.headers_mut() = request.headers().clone();
    let exchange = async {
        let response = sender.send_request(plain).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
    };
    tokio::select! {
        biased;
        reply = exchange => reply,
        _ = connection => panic!("the connection ended before the reply"),
    }
}

/// Returns the next message, which must be a text message.
async fn event(socket: &mut Socket) -> (String, Value) {
    let Message::Text(text) = socket.next().await.unwrap().unwrap() else { panic!("not a text message") };
    assert!(text.ends_with('\n'), "{text:?}");
    let mut event: Value = serde_json::from_str(&text).unwrap();
    (event["type"].as_str().unwrap().to_owned(), event["object"].take())
}

/// Returns the status with which the server closes.
async fn closed(socket: &mut Socket) -> CloseCode {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Close(frame) => return frame.unwrap().code,
            Message::Text(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn open_watches(cluster: &Cluster) -> bool {
    let (_, metrics) = cluster.get("/metrics").await;
    metrics
        .as_str()
        .unwrap()
        .lines()
        .any(|line| line.starts_with("apiserver_longrunning_requests") && line.ends_with(" 1"))
}

#[tokio::test]
async fn a_websocket_watch_sends_one_event_a_text_message_in_order() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    let (mut socket, response) = connect(&endpoint, &format!("{MAPS}?watch=true"), &[]).await;
    assert_eq!(response.status(), 101);
    assert!(!response.headers().contains_key("sec-websocket-protocol"));
    let (kind, added) = event(&mut socket).await;
    assert_eq!((kind.as_str(), &added["metadata"]["name"]), ("ADDED", &json!("a")));
    cluster.patch(&format!("{MAPS}/a"), json!({"data": {"k": "v"}})).await;
    cluster.ok("DELETE", &format!("{MAPS}/a"), Value::Null).await;
    let (kind, modified) = event(&mut socket).await;
    assert_eq!((kind.as_str(), &modified["data"]["k"]), ("MODIFIED", &json!("v")));
    let (kind, deleted) = event(&mut socket).await;
    assert_eq!(kind, "DELETED");
    assert!(version(&deleted) > version(&modified));
    cluster.server.shutdown().await;
    assert_eq!(closed(&mut socket).await, CloseCode::Normal, "a server that shuts down closes the WebSocket");
}

#[tokio::test]
async fn a_websocket_watch_supports_selectors_and_representations() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    for (name, color) in [("a", "red"), ("b", "blue")] {
        cluster
            .ok(
                "POST",
                MAPS,
                json!({"metadata": {"name": name, "labels": {"color": color}}, "data": {"k": "v"}}),
            )
            .await;
    }
    let path = format!("{MAPS}?watch=1&labelSelector=color%3Dblue");
    let (mut plain, _) = connect(&endpoint, &path, &[]).await;
    assert_eq!(event(&mut plain).await.1["metadata"]["name"], "b");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let (mut table, _) = connect(&endpoint, &path, &[("accept", table)]).await;
    let (kind, object) = event(&mut table).await;
    assert_eq!((kind.as_str(), &object["kind"]), ("ADDED", &json!("Table")));
    assert_eq!(object["rows"][0]["cells"][0], "b");
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let (mut partial, _) = connect(&endpoint, &path, &[("accept", partial)]).await;
    let (_, object) = event(&mut partial).await;
    assert_eq!((&object["kind"], object.get("data")), (&json!("PartialObjectMetadata"), None));
    let protobuf = "application/vnd.kubernetes.protobuf";
    let (mut protobuf, _) = connect(&endpoint, &path, &[("accept", protobuf)]).await;
    let Message::Binary(message) = protobuf.next().await.unwrap().unwrap() else { panic!("not binary") };
    assert!(message.starts_with(b"\x0a\x05ADDED"), "a message has no length prefix: {message:?}");
}

#[tokio::test]
async fn a_websocket_watch_ends_at_its_timeout_with_a_close_frame() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    let (mut socket, _) = connect(&endpoint, &format!("{MAPS}?watch=true&timeoutSeconds=1"), &[]).await;
    assert_eq!(closed(&mut socket).await, CloseCode::Normal);
    assert!(!open_watches(&cluster).await);
}

#[tokio::test]
async fn an_expired_websocket_watch_receives_an_error_event_and_is_closed() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    cluster.ok("POST", "/-/control", json!({"action": "compact"})).await;
    let (mut socket, response) =
        connect(&endpoint, &format!("{MAPS}?watch=true&resourceVersion=1"), &[]).await;
    assert_eq!(response.status(), 101);
    let (kind, status) = event(&mut socket).await;
    assert_eq!((kind.as_str(), &status["code"]), ("ERROR", &json!(410)));
    assert_eq!(closed(&mut socket).await, CloseCode::Normal);
}

#[tokio::test]
async fn errors_before_the_upgrade_are_plain_responses() {
    let tokens = "secret,ann,1,system:masters\nweak,bob,2";
    let server = ApiServer::builder().tokens(tokens).unwrap().rbac(true).build();
    let endpoint = listen(&server).await;
    let master = ("authorization", "Bearer secret");
    let watch = format!("{MAPS}?watch=true");
    let cases = [
        (watch.clone(), ("authorization", "Bearer other"), 401),
        (watch.clone(), ("authorization", "Bearer weak"), 403),
        ("/apis/none.example.com/v1/things?watch=true".to_owned(), master, 404),
        (format!("{watch}&labelSelector=%3D%3D"), master, 400),
        // Only watches are switched.
        (MAPS.to_owned(), master, 200),
        ("/version".to_owned(), master, 200),
        ("/api/v1/namespaces/default/pods/none/exec?command=ls".to_owned(), master, 404),
        ("/api/v1/namespaces/default/pods/none/log?follow=true".to_owned(), master, 404),
    ];
    for (path, credentials, expected) in cases {
        let (code, _, body) = refused(&endpoint, &path, &[credentials]).await;
        assert_eq!(code, expected, "{path}: {body}");
    }
}

#[tokio::test]
async fn a_malformed_handshake_is_refused() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    let watch = format!("{MAPS}?watch=true");
    for (header, code) in [
        (("sec-websocket-key", ""), 400),
        (("sec-websocket-version", "12"), 400),
        (("sec-websocket-protocol", "a, b"), 400),
        (("origin", ""), 403),
        (("origin", "null"), 403),
    ] {
        let (found, headers, status) = refused(&endpoint, &watch, &[header]).await;
        assert_eq!((found, &status["kind"]), (code, &json!("Status")), "{header:?}: {status}");
        // A server without authentication rejects the null origin before it checks the handshake.
        if header != ("origin", "null") {
            assert_eq!(headers["sec-websocket-version"], "13");
        }
    }
    assert!(!open_watches(&cluster).await, "a refused handshake leaves no watch");
    let (_, response) = connect(&endpoint, &watch, &[("sec-websocket-protocol", "a")]).await;
    assert_eq!(response.headers()["sec-websocket-protocol"], "a", "a single subprotocol is agreed on");
}

#[tokio::test]
async fn a_websocket_subprotocol_carries_a_bearer_token() {
    let server = ApiServer::builder().tokens("secret,ann,1,system:masters").unwrap().rbac(true).build();
    let endpoint = listen(&server).await;
    let watch = format!("{MAPS}?watch=true");
    let bearer =
        |token: &str| format!("base64url.bearer.authorization.k8s.io.{}", URL_SAFE_NO_PAD.encode(token));
    let right = bearer("secret");
    let offered = format!("{right}, base64.binary.k8s.io");
    let (_, response) = connect(&endpoint, &watch, &[("sec-websocket-protocol", &offered)]).await;
    assert_eq!(
        response.headers()["sec-websocket-protocol"],
        "base64.binary.k8s.io",
        "the token is not sent back"
    );
    let cases = [
        (format!("{}, a", bearer("other")), 401),
        (right.clone(), 401),
        (format!("{right}, {right}, a"), 401),
        ("base64url.bearer.authorization.k8s.io.!, a".to_owned(), 401),
        (format!("{right}, a, b"), 400),
        ("a".to_owned(), 403),
    ];
    for (offered, expected) in cases {
        let (code, _, body) = refused(&endpoint, &watch, &[("sec-websocket-protocol", &offered)]).await;
        assert_eq!(code, expected, "{offered}: {body}");
    }
    let plain = [("sec-websocket-protocol", offered.as_str()), ("upgrade", "")];
    assert_eq!(
        refused(&endpoint, &watch, &plain).await.0,
        403,
        "only WebSockets authenticate by subprotocol"
    );
}

#[tokio::test]
async fn pings_of_a_websocket_client_are_answered_and_its_messages_ignored() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    let (mut socket, _) = connect(&endpoint, &format!("{MAPS}?watch=true"), &[]).await;
    socket.send(Message::text("ignored")).await.unwrap();
    socket.send(Message::Ping(Bytes::from_static(b"are you there"))).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"are you there")));
    assert!(open_watches(&cluster).await);
    cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    assert_eq!(event(&mut socket).await.0, "ADDED");
    socket.close(None).await.unwrap();
    assert!(matches!(socket.next().await, None | Some(Ok(Message::Close(_)))), "a close frame is answered");
    while socket.next().await.is_some() {}
    assert!(!open_watches(&cluster).await, "a client that closes frees its watch");
}

#[tokio::test]
async fn the_websocket_watch_of_a_disconnected_client_is_freed() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    let (socket, _) = connect(&endpoint, &format!("{MAPS}?watch=true"), &[]).await;
    assert!(open_watches(&cluster).await);
    drop(socket);
    while open_watches(&cluster).await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_violates_the_protocol_is_disconnected() {
    let cluster = Cluster::new();
    let endpoint = listen(&cluster.server).await;
    let (mut socket, _) = connect(&endpoint, &format!("{MAPS}?watch=true"), &[]).await;
    socket.send(Message::binary(vec![0; 100_000])).await.unwrap();
    assert_eq!(closed(&mut socket).await, CloseCode::Size, "messages of clients are bounded");

    let (socket, _) = connect(&endpoint, &format!("{MAPS}?watch=true"), &[]).await;
    let mut stream = socket.into_inner();
    // A text message of one byte without a mask.
    stream.write_all(b"\x81\x01a").await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    assert_eq!(reply, b"\x88\x02\x03\xea", "a close frame with status 1002");
    while open_watches(&cluster).await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_websocket_watch_in_process_is_refused_with_a_status() {
    let cluster = Cluster::new();
    let request = Request::builder()
        .uri(format!("{MAPS}?watch=true"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("origin", "http://localhost")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .body(String::new())
        .unwrap();
    let response = cluster.server.service().oneshot(request).await.unwrap();
    let (code, status) = tokio::time::timeout(Duration::from_secs(5), read(response)).await.unwrap();
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    assert!(status["message"].as_str().unwrap().contains("cannot be switched to a WebSocket"));
}
