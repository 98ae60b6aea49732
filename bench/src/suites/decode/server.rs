//! The server both sides ask: in this process, so that neither sockets nor TLS are in the figures.

use std::convert::Infallible;

use bytes::{Buf, Bytes};
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::client::Body;
use tokio::runtime::{Builder, Runtime};

use crate::suite::RunFailure;

/// As a TLS record carries it.
const CHUNK_BYTES: usize = 16 << 10;

/// A client for a server that answers every request with `body`.
pub(super) fn client(body: Bytes) -> kube_client::Client {
    let service = tower::service_fn(move |_: Request<Body>| {
        let chunks = stream::unfold(body.clone(), |mut rest| async move {
            let chunk = rest.split_to(rest.remaining().min(CHUNK_BYTES));
            (!chunk.is_empty()).then_some((Ok::<_, Infallible>(Frame::data(chunk)), rest))
        });
        std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(chunks)))))
    });
    kube_client::Client::new(service, "default")
}

/// One thread for everything, so that all of it is under the meter.
pub(super) fn runtime() -> Result<Runtime, RunFailure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
