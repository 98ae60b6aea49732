//! The service under a reconciler's client.

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
use kube_client::{Error, client::Body};
use tower::Service;
use watchkeeper_client::Client;
use watchkeeper_informer::ObjectKey;

use super::{Answer, Target};
use crate::memory::{Memory, Pending};

/// Answers larger than this are passed on unread. No server stores an object of such a size.
const LARGEST_ANSWER: usize = 32 << 20;

/// Returns `client` with a transport that records its writes under `key`. The settings of the client stay.
pub(crate) fn tracked(client: &Client, memory: &Arc<Memory>, key: &ObjectKey) -> Client {
    let transport = client.transport().clone();
    let service = Tracked { transport, memory: Arc::clone(memory), key: key.clone() };
    client.clone().with_transport(kube_client::Client::new(service, client.default_namespace()))
}

struct Tracked {
    transport: kube_client::Client,
    memory: Arc<Memory>,
    key: ObjectKey,
}

impl Service<Request<Body>> for Tracked {
    type Response = Response<AnswerBody>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // The transport waits for its own readiness, in `send`.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let target = Target::of(request.method(), request.uri());
        let pending = target.and_then(|target| self.memory.about_to_write(&target));
        let (transport, memory) = (self.transport.clone(), Arc::clone(&self.memory));
        let Some(pending) = pending else {
            return Box::pin(async move { Ok(transport.send(request).await?.map(AnswerBody::unread)) });
        };
        let key = self.key.clone();
        Box::pin(async move {
            let response = transport.send(request).await?;
            if !response.status().is_success() {
                return Ok(response.map(AnswerBody::unread));
            }
            let (parts, body) = response.into_parts();
            let body = AnswerBody::read(body).await?;
            note(&memory, &key, pending, &body);
            Ok(Response::from_parts(parts, body))
        })
    }
}

fn note(memory: &Memory, key: &ObjectKey, pending: Pending, body: &AnswerBody) {
    if body.rest.is_none()
        && let Some(answer) = body.begun.as_deref().and_then(Answer::read)
    {
        memory.wrote(key, pending, answer);
    }
}

/// The body of an answer: what was read of it, and what was not.
pub(crate) struct AnswerBody {
    begun: Option<Bytes>,
    rest: Option<Body>,
}

impl AnswerBody {
    fn unread(body: Body) -> Self {
        Self { begun: None, rest: Some(body) }
    }

    /// Reads a body to its end, if that is not too far away.
    async fn read(mut body: Body) -> Result<Self, Error> {
        let mut begun = BytesMut::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                begun.extend_from_slice(&data);
            }
            if begun.len() > LARGEST_ANSWER {
                return Ok(Self { begun: Some(begun.freeze()), rest: Some(body) });
            }
        }
        Ok(Self { begun: Some(begun.freeze()), rest: None })
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(begun) = self.begun.take() {
            return Poll::Ready(Some(Ok(Frame::data(begun))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_none() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let begun = self.begun.as_ref().map_or(0, Bytes::len) as u64;
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(begun.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(begun.saturating_add(upper));
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

    async fn read(bytes: usize) -> AnswerBody {
        let sizes = (0..bytes).step_by(CHUNK).map(move |start| CHUNK.min(bytes - start));
        let frames = sizes.map(|size| Ok(Frame::data(Bytes::from(vec![b' '; size]))));
        AnswerBody::read(body(frames.collect()).await).await.unwrap()
    }

    #[tokio::test]
    async fn a_response_is_read_up_to_the_limit_and_delivered_whole_whatever_its_size() {
        for bytes in [0, 1, LARGEST_ANSWER] {
            let body = read(bytes).await;
            assert!(body.rest.is_none(), "{bytes} bytes are read to the end");
            assert_eq!(body.size_hint().exact(), Some(bytes as u64));
            assert_eq!(body.collect().await.unwrap().to_bytes().len(), bytes);
        }
        for bytes in [LARGEST_ANSWER + 1, 2 * LARGEST_ANSWER] {
            let body = read(bytes).await;
            let begun = body.begun.as_ref().map_or(0, Bytes::len);
            assert!(body.rest.is_some(), "{bytes} bytes are not read to the end");
            assert!(
                (LARGEST_ANSWER + 1..=LARGEST_ANSWER + CHUNK).contains(&begun),
                "{begun} bytes were read"
            );
            assert!(body.size_hint().lower() >= begun as u64 && !body.is_end_stream());
            assert_eq!(body.collect().await.unwrap().to_bytes().len(), bytes);
        }
    }

    #[tokio::test]
    async fn a_response_that_fails_while_it_is_read_is_an_error() {
        let frames = vec![Ok(Frame::data(Bytes::from_static(b"{"))), Err(Error::Service("cut".into()))];
        assert!(AnswerBody::read(body(frames).await).await.is_err());
    }
}
