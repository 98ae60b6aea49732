//! The response bytes that are not yet written.

use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The maximum number of response bytes that a connection buffers for a client that does not read. hyper alone would buffer
/// up to the maximum size of a head.
const LIMIT_BYTES: u64 = 128 * 1024;

/// A counter of the bytes between the response bodies of an HTTP/1.1 connection and its stream.
#[derive(Debug, Default)]
pub(super) struct OutputCounter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting_bytes: u64,
    body: Option<Waker>,
}

impl OutputCounter {
    /// Waits until fewer bytes than the limit are buffered.
    pub(super) fn poll_below_limit(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.waiting_bytes < LIMIT_BYTES {
            return Poll::Ready(());
        }
        state.body = Some(context.waker().clone());
        Poll::Pending
    }

    /// Records bytes that a body passed on.
    pub(super) fn passed(&self, bytes: usize) {
        self.0.lock().waiting_bytes += bytes as u64;
    }

    /// Records bytes that the stream has written. They include bytes outside of bodies, such as heads.
    pub(super) fn written(&self, bytes: usize) {
        let mut state = self.0.lock();
        state.waiting_bytes = state.waiting_bytes.saturating_sub(bytes as u64);
        state.wake();
    }

    /// Records that the stream has written everything.
    pub(super) fn flushed(&self) {
        let mut state = self.0.lock();
        state.waiting_bytes = 0;
        state.wake();
    }
}

impl State {
    fn wake(&mut self) {
        if self.waiting_bytes < LIMIT_BYTES
            && let Some(body) = self.body.take()
        {
            body.wake();
        }
    }
}
