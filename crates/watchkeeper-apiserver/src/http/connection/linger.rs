//! The end of a connection whose client may still be sending.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    time::Sleep,
};

/// Time for a client to read the response and close its side.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes that are discarded before the connection is closed anyway.
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// A lingering close: reads and discards until the client closes its side.
///
/// A socket that is closed while received bytes are unread resets the connection. The reset can overtake a response, so
/// that a client whose large request is refused sees a broken pipe instead of the reason.
#[derive(Debug)]
pub(super) struct Linger {
    timeout: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl Linger {
    /// Starts the timeout.
    pub(super) fn new() -> Self {
        Self { timeout: Box::pin(tokio::time::sleep(LINGER_TIMEOUT)), bytes_left: LINGER_BYTES }
    }

    /// Discards bytes until the client closes its side or a limit is reached.
    pub(super) fn poll_closed(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Poll<()> {
        let mut bytes = [0; 8 * 1024];
        while self.bytes_left > 0 && self.timeout.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            self.bytes_left = self.bytes_left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(())
    }
}
