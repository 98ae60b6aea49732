//! A client whose writes are recorded under the key being reconciled.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tower::Service;
use watchkeeper_client::Client;
use watchkeeper_client::kube_client::{Error, client::Body};
use watchkeeper_informer::ObjectKey;

use super::{PendingWrite, Target, WriteResponse, WriteTracker};

/// The maximum size of a response that is parsed. Larger ones are passed on unread; no API server stores an object
/// of this size.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Returns `client` with a transport that records its writes under `key`. The settings of the client are kept.
pub(crate) fn tracked_client(client: &Client, tracker: &Arc<WriteTracker>, key: &ObjectKey) -> Client {
    let transport = client.transport().clone();
    let service = TrackedTransport { transport, tracker: Arc::clone(tracker), key: key.clone() };
    client
        .clone()
        .with_transport(watchkeeper_client::kube_client::Client::new(service, client.default_namespace()))
}

struct TrackedTransport {
    transport: watchkeeper_client::kube_client::Client,
    tracker: Arc<WriteTracker>,
    key: ObjectKey,
}

impl Service<Request<Body>> for TrackedTransport {
    type Response = Response<ResponseBody>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // The transport waits for its own readiness, in `send`.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let target = Target::of(request.method(), request.uri());
        let pending = target.and_then(|target| self.tracker.prepare_write(&target));
        let (transport, tracker) = (self.transport.clone(), Arc::clone(&self.tracker));
        let Some(pending) = pending else {
            return Box::pin(async move { Ok(transport.send(request).await?.map(ResponseBody::unread)) });
        };
        let key = self.key.clone();
        Box::pin(async move {
            let response = transport.send(request).await?;
            if !response.status().is_success() {
                return Ok(response.map(ResponseBody::unread));
            }
            let (parts, body) = response.into_parts();
            let body = ResponseBody::buffered(body).await?;
            record(&tracker, &key, pending, &body);
            Ok(Response::from_parts(parts, body))
        })
    }
}

fn record(tracker: &WriteTracker, key: &ObjectKey, pending: PendingWrite, body: &ResponseBody) {
    if body.rest.is_none()
        && let Some(response) = body.read_part.as_deref().and_then(WriteResponse::parse)
    {
        tracker.record_write(key, pending, response);
    }
}

/// A response body: the part that was read to parse it, and the part that was not read.
pub(crate) struct ResponseBody {
    read_part: Option<Bytes>,
    rest: Option<Body>,
}

impl ResponseBody {
    fn unread(body: Body) -> Self {
        Self { read_part: None, rest: Some(body) }
    }

    /// Reads a body to its end, or up to the size limit.
    async fn buffered(mut body: Body) -> Result<Self, Error> {
        let mut read_part = BytesMut::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                read_part.extend_from_slice(&data);
            }
            if read_part.len() > MAX_RESPONSE_BYTES {
                return Ok(Self { read_part: Some(read_part.freeze()), rest: Some(body) });
            }
        }
        Ok(Self { read_part: Some(read_part.freeze()), rest: None })
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(read_part) = self.read_part.take() {
            return Poll::Ready(Some(Ok(Frame::data(read_part))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read_part.is_none() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read_part = self.read_part.as_ref().map_or(0, Bytes::len) as u64;
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(read_part.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(read_part.saturating_add(upper));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;
    use parking_lot::Mutex;

    use super::*;

    const CHUNK: usize = 8 << 20;

    /// The body of a response that arrives in these frames.
    async fn body(frames: Vec<Result<Frame<Bytes>, Error>>) -> Body {
        let frames = Arc::new(Mutex::new(frames));
        let service = tower::service_fn(move |_: Request<Body>| {
            let frames = std::mem::take(&mut *frames.lock());
            async move { Ok::<_, Error>(Response::new(StreamBody::new(stream::iter(frames)))) }
        });
        let client = Client::from_service(service, "default");
        let response = client.transport().send(Request::new(Body::empty())).await;
        response.unwrap().into_body()
    }

    async fn read(bytes: usize) -> ResponseBody {
        let sizes = (0..bytes).step_by(CHUNK).map(move |start| CHUNK.min(bytes - start));
        let frames = sizes.map(|size| Ok(Frame::data(Bytes::from(vec![b' '; size]))));
        ResponseBody::buffered(body(frames.collect()).await).await.unwrap()
    }

    #[tokio::test]
    async fn a_response_is_buffered_up_to_the_limit_and_delivered_completely() {
        for bytes in [0, 1, MAX_RESPONSE_BYTES] {
            let body = read(bytes).await;
            assert!(body.rest.is_none(), "{bytes} bytes are read to the end");
            assert_eq!(body.size_hint().exact(), Some(bytes as u64));
            assert_eq!(body.collect().await.unwrap().to_bytes().len(), bytes);
        }
        for bytes in [MAX_RESPONSE_BYTES + 1, 2 * MAX_RESPONSE_BYTES] {
            let body = read(bytes).await;
            let read_part = body.read_part.as_ref().map_or(0, Bytes::len);
            assert!(body.rest.is_some(), "{bytes} bytes are not read to the end");
            assert!(
                (MAX_RESPONSE_BYTES + 1..=MAX_RESPONSE_BYTES + CHUNK).contains(&read_part),
                "{read_part} bytes were read"
            );
            assert!(body.size_hint().lower() >= read_part as u64 && !body.is_end_stream());
            assert_eq!(body.collect().await.unwrap().to_bytes().len(), bytes);
        }
    }

    #[tokio::test]
    async fn an_error_while_a_response_is_buffered_is_returned() {
        let frames = vec![Ok(Frame::data(Bytes::from_static(b"{"))), Err(Error::Service("cut".into()))];
        assert!(ResponseBody::buffered(body(frames).await).await.is_err());
    }
}
