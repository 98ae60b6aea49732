//! Response bodies: complete bytes, or a stream of frames.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};

use super::metrics::Counted;

/// The body of a response: complete bytes, or a stream of frames.
pub struct ResponseBody {
    inner: Inner,
    /// The duration of a watch.
    watch_timeout: Option<Duration>,
    /// The guard that counts the response while the client reads it.
    _counted: Option<Counted>,
}

enum Inner {
    Whole(Option<Bytes>),
    Frames(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = Some(bytes.into()).filter(|bytes| !bytes.is_empty());
        Self { inner: Inner::Whole(bytes), watch_timeout: None, _counted: None }
    }

    pub(crate) fn frames(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { inner: Inner::Frames(Box::pin(frames)), watch_timeout: None, _counted: None }
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
            Inner::Frames(_) => f.write_str("a stream of frames"),
        }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.inner {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Frames(frames) => {
                frames.as_mut().poll_next(context).map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.inner, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Inner::Frames(_) => SizeHint::default(),
        }
    }
}
