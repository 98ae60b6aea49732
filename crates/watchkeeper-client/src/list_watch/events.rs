//! The event stream of a watch.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::header::CONTENT_ENCODING;
use tokio::time::Sleep;

use super::{
    Bookmark, ReceivedItem, WatchEvent,
    http::{unreadable, wrong_encoding},
};
use crate::{
    Error,
    decode::{Decode, DecodeError, FrameSplitter, RawEvent, WatchEventType, split_event, status_of_event},
    error::Awaited,
    limits::Limits,
    rest::ByteStream,
};

/// The events of one watch, read from the connection only as fast as they are consumed.
pub(super) struct EventStream<K> {
    bytes: ByteStream,
    chunk: Bytes,
    /// The splitter; `None` after the end.
    frames: Option<FrameSplitter>,
    max_depth: usize,
    kind: Arc<str>,
    decoder: Arc<dyn Decode<K>>,
    /// The time by which the server must have ended the watch.
    deadline: (Pin<Box<Sleep>>, Duration),
}

impl<K> EventStream<K> {
    pub(super) fn new(
        bytes: ByteStream,
        limits: &Limits,
        kind: Arc<str>,
        decoder: Arc<dyn Decode<K>>,
        deadline: (Pin<Box<Sleep>>, Duration),
    ) -> Result<Self, Error> {
        let encoding = bytes.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(wrong_encoding(bytes.request()));
        }
        let frames = Some(FrameSplitter::new(limits));
        let max_depth = limits.json_depth;
        Ok(Self { bytes, chunk: Bytes::new(), frames, max_depth, kind, decoder, deadline })
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<WatchEvent<K>>, Error>> {
        loop {
            let Some(frames) = &mut self.frames else {
                return Poll::Ready(Ok(None));
            };
            let frame = frames
                .next_frame(&mut self.chunk)
                .map_err(|fault| unreadable(self.bytes.request(), fault))?;
            if let Some(frame) = frame {
                return Poll::Ready(self.event(&frame).map(Some));
            }
            match Pin::new(&mut self.bytes).poll_next(cx) {
                Poll::Ready(Some(chunk)) => self.chunk = chunk?,
                Poll::Ready(None) => {
                    let last = self.frames.take().and_then(FrameSplitter::finish);
                    return Poll::Ready(last.map(|frame| self.event(&frame)).transpose());
                }
                // Only an idle connection can be overdue: a server that sends longer than requested is alive.
                Poll::Pending => {
                    let (deadline, after) = &mut self.deadline;
                    if deadline.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    let request = Box::new(self.bytes.request().clone());
                    return Poll::Ready(Err(Error::Deadline {
                        request,
                        part: Awaited::Chunk,
                        after: *after,
                    }));
                }
            }
        }
    }

    fn event(&self, frame: &Bytes) -> Result<WatchEvent<K>, Error> {
        self.read(frame).map_err(|fault| unreadable(self.bytes.request(), fault))
    }

    fn read(&self, frame: &Bytes) -> Result<WatchEvent<K>, DecodeError> {
        let RawEvent { event_type, object } = split_event(frame, self.max_depth)?;
        let item = |object| ReceivedItem::new(object, &self.kind, self.decoder.clone());
        match event_type {
            WatchEventType::Added => item(object).map(WatchEvent::Added),
            WatchEventType::Modified => item(object).map(WatchEvent::Modified),
            WatchEventType::Deleted => item(object).map(WatchEvent::Deleted),
            WatchEventType::Bookmark => Bookmark::of_event(&object).map(WatchEvent::Bookmark),
            WatchEventType::Error => {
                let status = status_of_event(&object)?;
                Err(DecodeError::Status { instead_of: "an event", status })
            }
        }
    }
}

impl<K> Stream for EventStream<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = std::task::ready!(self.poll_event(cx));
        if event.is_err() {
            self.frames = None;
            // Bytes that are buffered after an error must not be read.
            self.chunk = Bytes::new();
        }
        Poll::Ready(event.transpose())
    }
}
