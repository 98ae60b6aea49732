//! Response bodies as streams.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use http_body::Body as _;
use kube_client::client::Body;
use tokio::time::Sleep;

use super::{info::RequestInfo, response::ResponseParts, response::transport};
use crate::{Error, error::Awaited};

/// A response body as a stream of bytes: a log, a list, a watch.
///
/// The stream ends when the server ends the body. Otherwise its last item is an error: the connection failed, no bytes
/// arrived within the idle deadline, or the body exceeds its limit. Chunk boundaries are arbitrary. Dropping the stream
/// closes its connection.
#[must_use = "nothing is read from a stream that is not polled"]
pub struct ByteStream {
    request: Box<RequestInfo>,
    headers: HeaderMap,
    /// `None` after the end of the stream.
    body: Option<Body>,
    idle: Option<Duration>,
    /// Runs from the first poll that had to wait. Time spent by the reader on a chunk is not the server's silence.
    silence: Option<Pin<Box<Sleep>>>,
    limit: Option<ByteLimit>,
}

/// A limit on the total size of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteLimit {
    pub(super) name: &'static str,
    pub(super) allowed: u64,
    pub(super) left: u64,
}

impl ByteStream {
    pub(super) fn new(
        request: RequestInfo,
        response: ResponseParts,
        idle: Option<Duration>,
        limit: Option<ByteLimit>,
    ) -> Self {
        Self {
            request: Box::new(request),
            headers: response.headers,
            body: Some(response.body),
            idle,
            silence: None,
            limit,
        }
    }

    /// Returns the request of this response.
    pub fn request(&self) -> &RequestInfo {
        &self.request
    }

    /// Returns the response headers, including `content-encoding` if compression was requested.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn over(&mut self, error: Error) -> Poll<Option<Result<Bytes, Error>>> {
        self.body = None;
        self.silence = None;
        Poll::Ready(Some(Err(error)))
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let Some(after) = self.idle else {
            return Poll::Pending;
        };
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
        match silence.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let request = self.request.clone();
                self.over(Error::Deadline { request, part: Awaited::Chunk, after })
            }
        }
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let Some(body) = &mut this.body else {
                return Poll::Ready(None);
            };
            match Pin::new(body).poll_frame(cx) {
                Poll::Pending => return this.poll_silence(cx),
                Poll::Ready(None) => {
                    this.body = None;
                    this.silence = None;
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(error))) => {
                    let error = transport(&this.request, error);
                    return this.over(error);
                }
                Poll::Ready(Some(Ok(frame))) => {
                    this.silence = None;
                    let Ok(data) = frame.into_data() else { continue };
                    if data.is_empty() {
                        continue;
                    }
                    if let Some(limit) = &mut this.limit {
                        let Some(left) = limit.left.checked_sub(data.len() as u64) else {
                            let ByteLimit { name, allowed, .. } = *limit;
                            let request = this.request.clone();
                            return this.over(Error::Limit { request, limit: name, allowed });
                        };
                        limit.left = left;
                    }
                    return Poll::Ready(Some(Ok(data)));
                }
            }
        }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream")
            .field("request", &self.request)
            .field("idle", &self.idle)
            .field("limit", &self.limit)
            .field("over", &self.body.is_none())
            .finish_non_exhaustive()
    }
}
