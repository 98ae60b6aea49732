//! Response bodies: complete bytes, or a stream of frames.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};
use kube_client::client::Body as ClientBody;

use super::metrics::Counted;
use crate::faults::Cut;

/// The body of a response: complete bytes, or a stream of frames.
///
/// Only an injected [fault](crate::faults) ends a body with an error.
pub struct ResponseBody {
    inner: Inner,
    /// The signal of the fault that ends a watch.
    cut: Option<Cut>,
    /// The duration of a watch.
    watch_timeout: Option<Duration>,
    /// The guard that counts the response while the client reads it.
    _counted: Option<Counted>,
}

enum Inner {
    Whole(Option<Bytes>),
    Frames(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// The body of another server's response.
    Relayed(ClientBody),
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = Some(bytes.into()).filter(|bytes| !bytes.is_empty());
        Self::new(Inner::Whole(bytes))
    }

    pub(crate) fn frames(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::new(Inner::Frames(Box::pin(frames)))
    }

    /// Returns the body of a response that a client received.
    pub(crate) fn relayed(body: ClientBody) -> Self {
        Self::new(Inner::Relayed(body))
    }

    fn new(inner: Inner) -> Self {
        Self { inner, cut: None, watch_timeout: None, _counted: None }
    }

    /// Returns the same body, which ends with an error when it is cut.
    #[must_use]
    pub(crate) fn until(self, cut: Cut) -> Self {
        Self { cut: Some(cut), ..self }
    }

    /// Marks the body as a watch that ends after `timeout`.
    #[must_use]
    pub(crate) fn watching_for(self, timeout: Duration) -> Self {
        Self { watch_timeout: Some(timeout), ..self }
    }

    /// Returns the duration of a watch; none for other responses.
    pub(super) fn watch_timeout(&self) -> Option<Duration> {
        self.watch_timeout
    }

    /// Returns the same body, counted until it is dropped.
    pub(super) fn counted(self, counted: Counted) -> Self {
        Self { _counted: Some(counted), ..self }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Inner::Whole(bytes) => write!(f, "{} bytes", bytes.as_ref().map_or(0, Bytes::len)),
            Inner::Frames(_) | Inner::Relayed(_) => f.write_str("a stream of frames"),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(cut) = &mut self.cut
            && let Poll::Ready(error) = cut.poll(context)
        {
            self.inner = Inner::Whole(None);
            return Poll::Ready(Some(Err(error)));
        }
        match &mut self.inner {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Frames(frames) => {
                frames.as_mut().poll_next(context).map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
            }
            Inner::Relayed(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(io::Error::other))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Whole(bytes) => bytes.is_none(),
            Inner::Frames(_) => false,
            Inner::Relayed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Inner::Frames(_) => SizeHint::default(),
            Inner::Relayed(body) => body.size_hint(),
        }
    }
}
