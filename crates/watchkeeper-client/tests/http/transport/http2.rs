//! HTTP/2, if enabled.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};
use watchkeeper_client::{Client, config::ClientConfig};

use super::{
    authority::Authority,
    get,
    server::{Seen, Server, respond},
    status,
};

fn versions(server: &Server) -> Vec<Version> {
    server.seen().iter().map(|seen: &Seen| seen.version).collect()
}

async fn secure() -> (Authority, Server) {
    let authority = Authority::new("a");
    let server = Server::tls(authority.server(&["127.0.0.1"]).serve(None)).await;
    (authority, server)
}

#[tokio::test]
async fn http2_is_used_only_if_enabled() {
    let (authority, server) = secure().await;
    let config = server.config().certificate_authority_pem(authority.pem());
    status(&config.clone().into_client().unwrap()).await;
    status(&config.http2(true).into_client().unwrap()).await;
    assert_eq!(versions(&server), [Version::HTTP_11, Version::HTTP_2]);
}

#[tokio::test]
async fn a_server_without_http2_gets_http1() {
    let authority = Authority::new("a");
    let mut tls = Arc::unwrap_or_clone(authority.server(&["127.0.0.1"]).serve(None));
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let server = Server::tls(Arc::new(tls)).await;
    let config = server.config().certificate_authority_pem(authority.pem()).http2(true);
    status(&config.into_client().unwrap()).await;
    assert_eq!(versions(&server), [Version::HTTP_11]);
}

#[tokio::test]
async fn a_request_that_upgrades_its_connection_stays_on_http1() {
    let (authority, server) = secure().await;
    let config = server.config().certificate_authority_pem(authority.pem()).http2(true);
    let client = config.into_client().unwrap();
    status(&client).await;
    let request = Request::get("/exec").header("connection", "Upgrade").header("upgrade", "websocket");
    client.kube().send(request.body(Vec::new().into()).unwrap()).await.unwrap();
    assert_eq!(versions(&server), [Version::HTTP_2, Version::HTTP_11]);
}

#[tokio::test]
async fn an_oversized_head_is_an_error_over_http2_too() {
    let authority = Authority::new("a");
    let tls = authority.server(&["127.0.0.1"]).serve(None);
    let server = Server::start(Some(tls), |_| {
        let mut response = respond(200, "");
        response.headers_mut().insert("x", "a".repeat(200_000).parse().unwrap());
        response
    })
    .await;
    let config = server.config().certificate_authority_pem(authority.pem()).http2(true);
    assert!(get(&config.into_client().unwrap(), "/").await.is_err());
}

#[tokio::test]
async fn a_silent_peer_is_detected_by_an_unanswered_ping() {
    let authority = Authority::new("a");
    let tls = authority.server(&["127.0.0.1"]).serve(None);
    let server = Server::start(Some(tls), |_| {
        let first = Frame::data(Bytes::from_static(b"{}\n"));
        let forever = stream::iter([Ok::<_, Infallible>(first)]).chain(stream::pending());
        Response::new(StreamBody::new(forever).boxed_unsync())
    })
    .await;
    let (address, silence, _relay) = relay(server.address).await;
    let config = ClientConfig::new(&format!("https://{address}")).unwrap();
    let config = config.certificate_authority_pem(authority.pem()).http2(true);
    let interval = Duration::from_millis(50);
    let client: Client = config.http2_keep_alive(interval, interval).into_client().unwrap();

    let mut watch = get(&client, "/api/v1/pods?watch=1").await.unwrap().into_body();
    assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "{}\n");
    silence.notify_one();
    // From here on, no byte, no close and no reset arrives.
    let end = tokio::time::timeout(Duration::from_secs(20), watch.frame()).await;
    assert!(end.expect("the watch hangs").unwrap().is_err());
    // The next request uses a new connection.
    assert_eq!(status(&client).await, 200);
}

/// Relays bytes to `server`, one connection at a time. When notified, it keeps the connection open without
/// relaying, and accepts the next.
async fn relay(server: SocketAddr) -> (SocketAddr, Arc<Notify>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let silence = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    let stop = silence.clone();
    tasks.spawn(async move {
        let mut silent = Vec::new();
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut upstream = TcpStream::connect(server).await.unwrap();
            tokio::select! {
                _ = copy_bidirectional(&mut client, &mut upstream) => {}
                () = stop.notified() => silent.push((client, upstream)),
            }
        }
    });
    (address, silence, tasks)
}
