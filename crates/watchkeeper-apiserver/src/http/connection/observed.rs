//! A stream that reports received and written bytes.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{activity::Activity, linger::Linger};

/// A stream that reports received and written bytes to the [`Activity`] of its connection.
#[derive(Debug)]
pub(super) struct ObservedIo<S> {
    stream: S,
    activity: Arc<Activity>,
    /// The close of a connection on which the client may still be sending.
    linger: Option<Linger>,
}

impl<S> ObservedIo<S> {
    /// Creates an observer of `stream`.
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, linger: None }
    }

    fn report(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.activity.output.written(bytes);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.received();
        }
        poll
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ObservedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(poll, Poll::Ready(Ok(()))) {
            self.activity.output.flushed();
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            if !this.activity.has_unread_body() {
                return Poll::Ready(Ok(()));
            }
        }
        this.linger.get_or_insert_with(Linger::new).poll_closed(context, &mut this.stream).map(Ok)
    }
}
