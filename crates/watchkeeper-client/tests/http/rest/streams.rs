//! Streamed responses, over a real socket.

use futures_util::{StreamExt as _, TryStreamExt as _};
use watchkeeper_client::{
    Client, Error,
    error::TransportKind,
    rest::{RequestBuilder, RestClient},
};
use watchkeeper_test_support::{Gate, Reply, ScriptedServer};

fn rest(server: &ScriptedServer) -> RestClient {
    Client::from(server.client()).rest()
}

fn get_pod(rest: &RestClient) -> RequestBuilder {
    rest.get().namespace("web").resource("pods").name("front")
}

#[tokio::test]
async fn a_stream_gives_bytes_as_they_arrive_and_ends_when_the_server_ends_it() {
    let gate = Gate::new();
    let reply =
        Reply::chunked(200, &[("x-a", "b")]).chunk("first").wait_for(&gate).chunk("second").last_chunk();
    let server = ScriptedServer::script([reply]).await;
    let mut stream = get_pod(&rest(&server)).subresource("log").stream().await.unwrap();
    assert_eq!(stream.headers().get("x-a").unwrap(), "b");
    assert_eq!(stream.request().to_string(), "get pods/log \"front\" in namespace \"web\"");
    // The first chunk arrives while the server still holds the second.
    assert_eq!(stream.next().await.unwrap().unwrap(), "first");
    gate.open();
    assert_eq!(stream.next().await.unwrap().unwrap(), "second");
    assert!(stream.next().await.is_none());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_broken_stream_ends_with_one_error() {
    let server = ScriptedServer::script([Reply::chunked(200, &[]).chunk("a").send("5\r\nb").close()]).await;
    let stream = get_pod(&rest(&server)).stream().await.unwrap();
    let items: Vec<_> = stream.collect().await;
    let (last, received) = items.split_last().unwrap();
    assert!(received.iter().all(Result::is_ok));
    assert!(matches!(last, Err(Error::Transport { kind: TransportKind::UnexpectedEof, .. })), "{last:?}");
}

#[tokio::test]
async fn a_stream_is_limited_only_on_request_and_its_error_status_is_reported() {
    let body = || Reply::text(200, "x".repeat(100));
    let server = ScriptedServer::script([body(), body(), Reply::text(403, "no")]).await;
    let rest = rest(&server);
    let all: Vec<_> = get_pod(&rest).stream().await.unwrap().try_collect().await.unwrap();
    assert_eq!(all.concat().len(), 100);
    let cut: Result<Vec<_>, _> = get_pod(&rest).limit_bytes(99).stream().await.unwrap().try_collect().await;
    assert!(matches!(cut, Err(Error::Limit { limit: "limit_bytes", allowed: 99, .. })));
    assert!(get_pod(&rest).stream().await.unwrap_err().is_forbidden());
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let gate = Gate::new();
    let reply =
        Reply::chunked(200, &[]).chunk("a").wait_for(&gate).repeat("1\r\nb\r\n", 1_000_000).last_chunk();
    let server = ScriptedServer::script([reply]).await;
    let rest = rest(&server);
    drop(get_pod(&rest).stream().await.unwrap());
    gate.open();
    // The server still has a million chunks to send, but the reader is gone.
    server.no_connections().await;
}
