//! Request and response bodies with deadlines.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::{Instant, Sleep};

use super::activity::{Activity, RequestGuard, now};
use crate::http::{body::ResponseBody, limits::ConnectionLimits};

/// The largest chunk of a response that is passed on at a time. Chunks are copies, so that a client that does not read holds
/// a chunk and not the whole response.
const PIECE_BYTES: usize = 64 * 1024;

/// The reason why a request body could not be read.
#[derive(Debug, Error)]
pub(in crate::http) enum BodyError {
    /// The client did not send the body in time.
    #[error("the request body was not sent in time")]
    TimedOut,
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] hyper::Error),
}

/// A request body that must make progress and must end in time.
pub(super) struct TimedRequestBody {
    incoming: Incoming,
    /// The deadlines; absent for a request without a body, after its end, and once a deadline has passed.
    timer: Option<Timer>,
    activity: Arc<Activity>,
}

struct Timer {
    sleep: Pin<Box<Sleep>>,
    end: Option<Instant>,
    progress_timeout: Duration,
}

impl TimedRequestBody {
    /// Starts the deadlines of a body.
    pub(super) fn new(incoming: Incoming, limits: &ConnectionLimits, activity: &Arc<Activity>) -> Self {
        let timer = (!incoming.is_end_stream()).then(|| {
            let end = now().checked_add(limits.body_timeout);
            let sleep = Box::pin(tokio::time::sleep(limits.body_progress_timeout.min(limits.body_timeout)));
            Timer { sleep, end, progress_timeout: limits.body_progress_timeout }
        });
        Self { incoming, timer, activity: Arc::clone(activity) }
    }
}

impl Drop for TimedRequestBody {
    fn drop(&mut self) {
        // A client that was too slow is not given more time.
        if self.timer.is_some() && !self.incoming.is_end_stream() {
            self.activity.leave_body_unread();
        }
    }
}

impl Timer {
    /// Restarts the timer for the next bytes, limited by the deadline of the whole body.
    fn restart(&mut self) {
        let next = now().checked_add(self.progress_timeout);
        if let Some(deadline) = next.into_iter().chain(self.end).min() {
            self.sleep.as_mut().reset(deadline);
        }
    }
}

impl Body for TimedRequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let poll = Pin::new(&mut this.incoming).poll_frame(context);
        let Some(timer) = &mut this.timer else { return poll.map(|frame| frame.map(|f| Ok(f?))) };
        if let Poll::Ready(frame) = poll {
            match frame {
                Some(_) => timer.restart(),
                None => this.timer = None,
            }
            return Poll::Ready(frame.map(|frame| Ok(frame?)));
        }
        ready!(timer.sleep.as_mut().poll(context));
        this.timer = None;
        Poll::Ready(Some(Err(BodyError::TimedOut)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// The slot of a response body. The body is removed when the client does not read it in time.
#[derive(Debug)]
pub(super) struct Slot(Mutex<Option<Parts>>);

#[derive(Debug)]
struct Parts {
    body: ResponseBody,
    /// The remaining bytes of a frame that is sent in chunks.
    rest: Bytes,
}

impl Slot {
    /// Frees the body. A later read is an error.
    pub(super) fn abandon(&self) {
        drop(self.0.lock().take());
    }
}

/// The error of a response that was removed because the client did not read it in time.
#[derive(Debug, Error)]
#[error("the client did not read the response in time")]
pub(super) struct UnreadResponse;

/// A response body that the client must read in time.
#[derive(Debug)]
pub(super) struct TrackedBody {
    slot: Arc<Slot>,
    /// The guard that keeps the request open as long as there is a body to send.
    request: RequestGuard,
}

impl TrackedBody {
    /// Starts the deadline of a response.
    pub(super) fn new(body: ResponseBody, request: RequestGuard) -> Self {
        let watch_timeout = body.watch_timeout();
        let slot = Arc::new(Slot(Mutex::new(Some(Parts { body, rest: Bytes::new() }))));
        request.activity.add_response(&slot, watch_timeout);
        Self { slot, request }
    }

    /// Passes bytes on, and counts them on HTTP/1.1. HTTP/2 limits each stream itself.
    fn pass(&self, data: Bytes) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.request.is_http2 {
            self.request.activity.output.passed(data.len());
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.request.activity.remove_response(&self.slot);
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.request.is_http2 {
            ready!(self.request.activity.output.poll_below_limit(context));
        }
        let mut slot = self.slot.0.lock();
        let Some(parts) = slot.as_mut() else {
            return Poll::Ready(Some(Err(io::Error::other(UnreadResponse))));
        };
        if parts.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut parts.body).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            match frame?.into_data() {
                Ok(data) if data.len() > PIECE_BYTES => parts.rest = data,
                Ok(data) => return self.pass(data),
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let piece = parts.rest.split_to(PIECE_BYTES.min(parts.rest.len()));
        self.pass(Bytes::copy_from_slice(&piece))
    }

    fn is_end_stream(&self) -> bool {
        let slot = self.slot.0.lock();
        slot.as_ref().is_some_and(|parts| parts.rest.is_empty() && parts.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let slot = self.slot.0.lock();
        let Some(parts) = slot.as_ref() else { return SizeHint::default() };
        let mut hint = parts.body.size_hint();
        match hint.exact() {
            Some(length) => hint.set_exact(length + parts.rest.len() as u64),
            None => hint.set_lower(hint.lower() + parts.rest.len() as u64),
        }
        hint
    }
}
