//! Clients of the server: kube's in this process, and others over sockets.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use crate::support::{Cluster, version};
use futures_util::{StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;
use watchkeeper_apiserver::{ApiServer, Clock, Endpoint, TokioClock};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn kube_creates_lists_watches_and_deletes_without_a_socket() {
    let server = ApiServer::in_process();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let created = maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let list = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);

    let version = list.metadata.resource_version.unwrap();
    let watch = maps.watch(&WatchParams::default(), &version).await.unwrap();
    let mut watch = std::pin::pin!(watch);
    let patch = Patch::Merge(json!({"data": {"k": "v"}}));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let Some(WatchEvent::Modified(modified)) = watch.try_next().await.unwrap() else {
        panic!("not modified")
    };
    assert_eq!(modified.data.unwrap()["k"], "v");
    let Some(WatchEvent::Deleted(deleted)) = watch.try_next().await.unwrap() else { panic!("not deleted") };
    assert_eq!(deleted.metadata.uid, created.metadata.uid);

    server.shutdown().await;
    assert!(watch.try_next().await.unwrap().is_none(), "dropping the server ends its watches");
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_existing_objects_and_an_initial_events_end_bookmark() {
    let cluster = Cluster::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b"] {
        cluster.ok("POST", maps, json!({"metadata": {"name": name}})).await;
    }
    let options =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = cluster.watch(&format!("{maps}?{options}")).await;
    let names = [watch.next().await.unwrap(), watch.next().await.unwrap()]
        .map(|(frame, object)| (frame, object["metadata"]["name"].as_str().unwrap().to_owned()));
    assert_eq!(names, ["a", "b"].map(|name| ("ADDED".to_owned(), name.to_owned())));
    let (frame, bookmark) = watch.next().await.unwrap();
    assert_eq!(frame, "BOOKMARK");
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");

    let resumed =
        format!("/api/v1/watch/namespaces/default/configmaps/b?resourceVersion={}", version(&bookmark));
    let mut watch = cluster.watch(&resumed).await;
    cluster.ok("DELETE", &format!("{maps}/a"), Value::Null).await;
    cluster.ok("DELETE", &format!("{maps}/b"), Value::Null).await;
    let (frame, object) = watch.next().await.unwrap();
    assert_eq!(
        (frame.as_str(), &object["metadata"]["name"]),
        ("DELETED", &json!("b")),
        "the old paths watch one object"
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_resource_version_is_an_error_event_and_a_timeout_ends_the_watch() {
    let cluster = Cluster::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster.ok("POST", "/-/control", json!({"action": "compact"})).await;
    let mut watch = cluster.watch(&format!("{maps}?watch=true&resourceVersion=1")).await;
    let (frame, status) = watch.next().await.unwrap();
    assert_eq!((frame.as_str(), &status["code"]), ("ERROR", &json!(410)));
    assert!(watch.next().await.is_none());

    let clock = TokioClock::new();
    let began = clock.now();
    let mut watch = cluster.watch(&format!("{maps}?watch=true&timeoutSeconds=7")).await;
    assert!(watch.next().await.is_none());
    assert_eq!(clock.now().saturating_sub(began), Duration::from_secs(7));
}

/// Sends a request over HTTP/1.1 and reads until `until` is received.
async fn raw<S: AsyncReadExt + AsyncWriteExt + Unpin>(socket: &mut S, request: &str, until: &str) -> String {
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains(until) {
        let mut chunk = [0; 4096];
        let length = socket.read(&mut chunk).await.unwrap();
        assert!(length > 0, "the end after {}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&chunk[..length]);
    }
    String::from_utf8(received).unwrap()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[tokio::test]
async fn a_socket_serves_the_same_objects_and_shutdown_joins_open_watches() {
    let server = ApiServer::in_process();
    let endpoint = server.listen(loopback()).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let mut socket = TcpStream::connect(endpoint.address()).await.unwrap();
    let reply = raw(&mut socket, &get("/api/v1/namespaces/default/configmaps/a"), "\"name\":\"a\"").await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    let watch = get("/api/v1/namespaces/default/configmaps?watch=true");
    raw(&mut socket, &watch, "ADDED").await;
    server.shutdown().await;
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    assert!(
        String::from_utf8_lossy(&rest).ends_with("0\r\n\r\n"),
        "the body of the watch ends without an error"
    );
    assert!(TcpStream::connect(endpoint.address()).await.is_err());
}

/// Connects to a server by the certificate of its authority, offering `protocols`.
async fn connect_tls(endpoint: &Endpoint, protocols: &[&str]) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    let authority = endpoint.authority().unwrap();
    let certificate = rustls::pki_types::pem::PemObject::from_pem_slice(authority.as_bytes()).unwrap();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let socket = TcpStream::connect(endpoint.address()).await.unwrap();
    connector.connect("localhost".try_into().unwrap(), socket).await.unwrap()
}

#[tokio::test]
async fn http2_is_negotiated_over_tls_and_multiplexes_requests_and_watches() {
    let server = ApiServer::in_process();
    let endpoint = server.listen_tls(loopback()).await.unwrap();
    let socket = connect_tls(&endpoint, &["http/1.1"]).await;
    assert_eq!(socket.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let socket = connect_tls(&endpoint, &["h2", "http/1.1"]).await;
    assert_eq!(socket.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    let url = format!("https://localhost{MAPS}");
    let request = http::Request::get(format!("{url}?watch=true")).body(String::new()).unwrap();
    let watch = sender.send_request(request).await.unwrap();
    assert_eq!((watch.status().as_u16(), watch.version()), (200, http::Version::HTTP_2));
    let request = http::Request::post(&url).header("content-type", "application/json");
    let request = request.body(r#"{"metadata": {"name": "a"}}"#.to_owned()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 201);
    let event = watch.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(event.starts_with(b"{\"type\":\"ADDED\""), "{event:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn a_tls_listener_is_verified_by_its_ca_and_requires_tokens() {
    let server = ApiServer::builder().tokens("secret,ann,1,\"system:masters\"").unwrap().build();
    let endpoint = server.listen_tls(loopback()).await.unwrap();
    let config: Value = serde_saphyr::from_str(&endpoint.kubeconfig(Some("secret"))).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], endpoint.url());
    assert_eq!(config["users"][0]["user"]["token"], "secret");

    let mut socket = connect_tls(&endpoint, &[]).await;
    let wrong = "GET /api HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer other\r\n\r\n";
    let reply = raw(&mut socket, wrong, "Unauthorized\"").await;
    assert!(reply.starts_with("HTTP/1.1 401"), "{reply}");
    let right = "GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n";
    assert!(raw(&mut socket, right, "gitVersion").await.starts_with("HTTP/1.1 200"));
    drop(socket);
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn thousands_of_watchers_each_get_every_event() {
    let server = ApiServer::in_process();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let mut watches = Vec::new();
    for _ in 0..2_000 {
        watches.push(Box::pin(maps.watch(&WatchParams::default(), "0").await.unwrap()));
    }
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    for watch in watches {
        let names: Vec<String> = watch
            .take(3)
            .map(|event| match event.unwrap() {
                WatchEvent::Added(map) => map.metadata.name.unwrap(),
                other => panic!("{other:?}"),
            })
            .collect()
            .await;
        assert_eq!(names, ["a", "b", "c"]);
    }
}
