//! Limits and deadlines for requests of kube's own client.
//!
//! A [`Client`] applies its settings itself, above the transport. kube's client has no such settings, so a conversion to
//! kube's type adds the service [`Bounded`] to the stack. The service also restores the settings of a [`Client`] that is
//! converted to kube's type and back: each request of a `Client` carries a [`Caller`] in its extensions, and the service
//! stores the client that it was made from in there.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri, header::UPGRADE};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube_client::client::Body;
use tokio::time::Sleep;
use tower::{BoxError, Service};

use crate::{
    Client,
    client::Origin,
    error::Awaited,
    rest::{Deadline, Deadlines, ResourcePath},
    transport::TransportError,
};

/// Subresources that are streams of bytes of any length.
const STREAMED: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// The sender of a request, for the [`Bounded`] service that the request passes next.
#[derive(Clone)]
struct Caller {
    /// The cell for the client that the sender's transport was converted from.
    origin: Origin,
    /// Whether a deadline is applied already. If not, the service applies its own.
    has_deadline: bool,
}

impl Caller {
    fn sign(client: &Client, has_deadline: bool, request: &mut Request<Body>) {
        let origin = client.origin().clone();
        request.extensions_mut().insert(Self { origin, has_deadline });
    }
}

/// The response head did not arrive in time, or the transport failed.
pub(crate) enum SendError {
    /// The head did not arrive within this time.
    Late(Duration),
    /// The transport failed.
    Transport(kube_client::Error),
}

/// Sends a request of `client` and waits for the response head, at most for `limit` or else the client's own deadline.
/// Returns the response and the rest of the deadline.
///
/// The deadline of a client may be unknown until its first request has passed a [`Bounded`] service, which then applies it.
/// So the default deadline only ends a request that passed no such service.
pub(crate) async fn send(
    client: &Client,
    mut request: Request<Body>,
    limit: Option<Duration>,
) -> Result<(Response<Body>, Deadline), SendError> {
    let known = || client.known_deadlines().map(|deadlines| deadlines.request);
    let limit = limit.or_else(known);
    Caller::sign(client, limit.is_some(), &mut request);
    let mut deadline = Deadline::after(limit.unwrap_or(Deadlines::DEFAULT.request));
    let mut sending = pin!(client.transport().send(request));
    let mut result = deadline.run(&mut sending).await;
    if limit.is_none()
        && let Some(learned) = known()
    {
        deadline.change(learned);
        if result.is_err() {
            result = deadline.run(&mut sending).await;
        }
    }
    let response = result.map_err(SendError::Late)?.map_err(SendError::Transport)?;
    Ok((response, deadline))
}

/// Returns a kube client with the settings of `client`.
pub(crate) fn kube_client(client: &Client) -> kube_client::Client {
    let transport = client.transport();
    kube_client::Client::new(Bounded { client: client.clone() }, transport.default_namespace())
        .with_valid_until(*transport.valid_until())
}

/// A service that applies the settings of `client` to requests that come without.
struct Bounded {
    client: Client,
}

impl Service<Request<Body>> for Bounded {
    type Response = Response<BoundedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The transport waits for its own readiness, in `send`.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        let caller = request.extensions_mut().remove::<Caller>();
        if let Some(caller) = &caller {
            // Fails if an earlier request has set the cell, to the same client.
            let _ = caller.origin.set(client.clone());
        }
        Box::pin(async move {
            if caller.as_ref().is_some_and(|caller| caller.has_deadline) {
                Caller::sign(&client, true, &mut request);
                return Ok(client.transport().send(request).await?.map(BoundedBody::unbounded));
            }
            let shape = Shape::of(&request);
            let (response, deadline) = match send(&client, request, None).await {
                Ok(sent) => sent,
                Err(SendError::Transport(error)) => return Err(error.into()),
                Err(SendError::Late(after)) => {
                    return Err(TransportError::Late { part: Awaited::Head, after }.into());
                }
            };
            // A sender without a `Caller` is kube's client, which limits nothing.
            Ok(if caller.is_none() {
                response.map(|body| BoundedBody::new(body, shape, &client, deadline))
            } else {
                response.map(BoundedBody::unbounded)
            })
        })
    }
}

/// The contents of a response, as far as the request determines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A single object.
    Object,
    /// A list, or anything else that has an end.
    Page,
    /// The events of a watch.
    Watch,
    /// A stream of any length, and with pauses of any length: a log, a proxied request, an upgraded connection.
    Stream,
}

impl Shape {
    fn of(request: &Request<Body>) -> Self {
        let uri = request.uri();
        if has_flag(uri, "watch") {
            return Self::Watch;
        }
        let path: Option<ResourcePath> = uri.path().parse().ok();
        let is_streamed =
            path.as_ref().is_some_and(|path| path.subresources().any(|part| STREAMED.contains(&part)));
        if is_streamed || request.headers().contains_key(UPGRADE) {
            Self::Stream
        } else if path.is_some_and(|path| path.name().is_some()) {
            Self::Object
        } else {
            Self::Page
        }
    }
}

fn has_flag(uri: &Uri, name: &str) -> bool {
    let query = uri.query().unwrap_or_default().as_bytes();
    form_urlencoded::parse(query).any(|(key, value)| key == name && matches!(&*value, "1" | "true"))
}

/// A response body that fails when it exceeds a limit or a deadline.
struct BoundedBody {
    body: Body,
    /// The name and the value of the limit on the size.
    limit: Option<(&'static str, u64)>,
    read_bytes: u64,
    /// The time by which the body has to end.
    deadline: Option<Deadline>,
    /// The longest time without a byte.
    idle: Option<Duration>,
    silence: Option<Pin<Box<Sleep>>>,
}

impl BoundedBody {
    fn unbounded(body: Body) -> Self {
        Self { body, limit: None, read_bytes: 0, deadline: None, idle: None, silence: None }
    }

    fn new(body: Body, shape: Shape, client: &Client, deadline: Deadline) -> Self {
        let body = Self::unbounded(body);
        let limit = match shape {
            Shape::Object => ("object_bytes", client.limits().object_bytes as u64),
            Shape::Page => ("page_bytes", client.limits().page_bytes),
            Shape::Watch => return Self { idle: client.deadlines().idle, ..body },
            Shape::Stream => return body,
        };
        Self { limit: Some(limit), deadline: Some(deadline), ..body }
    }

    /// Polls the deadlines of a body that has nothing to read.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<TransportError> {
        if let Some(deadline) = &mut self.deadline
            && let Poll::Ready(after) = deadline.poll(cx)
        {
            return Poll::Ready(TransportError::Late { part: Awaited::Body, after });
        }
        let Some(after) = self.idle else { return Poll::Pending };
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
        silence.as_mut().poll(cx).map(|()| TransportError::Late { part: Awaited::Chunk, after })
    }
}

impl HttpBody for BoundedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            return this.poll_late(cx).map(|late| Some(Err(late.into())));
        };
        this.silence = None;
        let Some(frame) = frame.transpose()? else { return Poll::Ready(None) };
        this.read_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        Poll::Ready(Some(match this.limit {
            Some((limit, allowed)) if this.read_bytes > allowed => {
                Err(TransportError::Limit { limit, allowed }.into())
            }
            _ => Ok(frame),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_response_depend_on_its_request() {
        for (uri, expected) in [
            ("/api/v1/namespaces/a/pods/b", Shape::Object),
            ("/api/v1/namespaces/a/pods/b/status", Shape::Object),
            ("/apis/apps/v1/namespaces/a/deployments/b?watch=0", Shape::Object),
            ("/api/v1/namespaces/a/pods", Shape::Page),
            ("/api/v1/pods?watch=false", Shape::Page),
            ("/openapi/v2", Shape::Page),
            ("/api/v1/pods?limit=1&watch=true", Shape::Watch),
            ("/api/v1/pods?watch=1", Shape::Watch),
            ("/api/v1/namespaces/a/pods/b/log?follow=true", Shape::Stream),
            ("/api/v1/namespaces/a/services/b/proxy/metrics", Shape::Stream),
        ] {
            let request = Request::get(uri).body(Body::empty()).unwrap();
            assert_eq!(Shape::of(&request), expected, "{uri}");
        }
        let upgrade = Request::get("/api/v1/namespaces/a/pods/b").header(UPGRADE, "websocket");
        assert_eq!(Shape::of(&upgrade.body(Body::empty()).unwrap()), Shape::Stream);
    }
}
