//! The server of both sides, in this process, so that the figures include neither sockets nor TLS.

use std::convert::Infallible;

use bytes::{Buf, Bytes};
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::client::Body;
use tokio::runtime::{Builder, Runtime};

use crate::suite::RunFailure;

/// The size of a TLS record.
const CHUNK_BYTES: usize = 16 << 10;

/// Returns a client for a server that responds to every request with `body`.
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

/// Creates a runtime with a single thread, so that all work is measured.
pub(super) fn runtime() -> Result<Runtime, RunFailure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
