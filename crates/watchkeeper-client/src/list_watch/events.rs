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
    encoding::BodyEncoding,
    http::{unreadable, wrong_encoding},
};
use crate::{
    Error,
    decode::{
        Decode, DecodeError, FrameSplitter, MessageFrames, RawEvent, WatchEventType, bookmark_of_message,
        split_event, split_message, status_of_event, status_of_message,
    },
    error::Awaited,
    limits::Limits,
    rest::ByteStream,
};

/// The events of one watch, read from the connection only as fast as they are consumed.
pub(super) struct EventStream<K> {
    bytes: ByteStream,
    chunk: Bytes,
    /// The splitter; `None` after the end.
    frames: Option<Splitter>,
    body: BodyEncoding,
    max_depth: usize,
    kind: Arc<str>,
    decoder: Arc<dyn Decode<K>>,
    /// The time by which the server must have ended the watch.
    deadline: (Pin<Box<Sleep>>, Duration),
}

/// The splitter of the encoding of a watch.
enum Splitter {
    Json(FrameSplitter),
    Protobuf(MessageFrames),
}

impl Splitter {
    fn next_frame(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        match self {
            Self::Json(frames) => frames.next_frame(chunk),
            Self::Protobuf(frames) => frames.next_frame(chunk),
        }
    }

    /// Returns the last frame, if the end of the body ends it.
    fn finish(self) -> Result<Option<Bytes>, DecodeError> {
        match self {
            Self::Json(frames) => Ok(frames.finish()),
            Self::Protobuf(frames) => frames.finish().map(|()| None),
        }
    }
}

impl<K> EventStream<K> {
    pub(super) fn new(
        bytes: ByteStream,
        limits: &Limits,
        kind: Arc<str>,
        (decoder, body): (Arc<dyn Decode<K>>, BodyEncoding),
        deadline: (Pin<Box<Sleep>>, Duration),
    ) -> Result<Self, Error> {
        let encoding = bytes.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(wrong_encoding(bytes.request()));
        }
        let frames = Some(match body {
            BodyEncoding::Json => Splitter::Json(FrameSplitter::new(limits)),
            BodyEncoding::Protobuf => Splitter::Protobuf(MessageFrames::new(limits)),
        });
        let max_depth = limits.json_depth;
        Ok(Self { bytes, chunk: Bytes::new(), frames, body, max_depth, kind, decoder, deadline })
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
                    let last = self.frames.take().map(Splitter::finish).transpose();
                    let last = last.map_err(|fault| unreadable(self.bytes.request(), fault))?.flatten();
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
        let is_json = self.body == BodyEncoding::Json;
        let RawEvent { event_type, object } =
            if is_json { split_event(frame, self.max_depth)? } else { split_message(frame)? };
        let item = |object| ReceivedItem::new(object, &self.kind, self.decoder.clone());
        match event_type {
            WatchEventType::Added => item(object).map(WatchEvent::Added),
            WatchEventType::Modified => item(object).map(WatchEvent::Modified),
            WatchEventType::Deleted => item(object).map(WatchEvent::Deleted),
            WatchEventType::Bookmark if is_json => Bookmark::of_event(&object).map(WatchEvent::Bookmark),
            WatchEventType::Bookmark => bookmark_of_message(&object).map(WatchEvent::Bookmark),
            WatchEventType::Error => {
                let status = if is_json { status_of_event(&object)? } else { status_of_message(&object)? };
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
