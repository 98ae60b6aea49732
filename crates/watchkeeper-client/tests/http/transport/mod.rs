//! Configuration, credentials, TLS and HTTP, against servers on the loopback interface.
#![expect(clippy::unwrap_used, reason = "a failed setup step fails the test")]

mod authority;
mod credentials;
mod exec;
mod http2;
mod kubeconfig;
mod kubeconfig_errors;
mod log_canary;
mod server;
mod tls;
mod wire;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use kube_client::client::Body;
use watchkeeper_client::{Client, Error, error::TransportKind, transport::TransportError};

/// Advances the client's clock by `time`, without waiting for sockets.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn get(client: &Client, path: &str) -> Result<Response<Body>, kube_client::Error> {
    send(client, Method::GET, path, "").await
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &'static str,
) -> Result<Response<Body>, kube_client::Error> {
    let body = Body::from(Bytes::from_static(body.as_bytes()));
    let request = Request::builder().method(method).uri(path).body(body).unwrap();
    client.kube().send(request).await
}

async fn status(client: &Client) -> u16 {
    get(client, "/version").await.unwrap().status().as_u16()
}

/// Returns the REST client's classification of a failed connection, on which the classifier decides.
async fn kind(client: &Client) -> TransportKind {
    match client.rest().get().absolute_path("/version").text().await {
        Err(Error::Transport { kind, .. }) => kind,
        other => panic!("not a failed connection: {other:?}"),
    }
}

/// Returns the error of a request that must fail.
async fn failure(client: &Client) -> String {
    let error = get(client, "/version").await.unwrap_err();
    TransportError::of(&error).unwrap_or_else(|| panic!("not a transport error: {error}")).to_string()
}
