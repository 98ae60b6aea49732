//! The stream of a list page.

use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::header::CONTENT_ENCODING;
use tokio::time::{Sleep, sleep};

use super::{
    ListPart, ReceivedItem,
    encoding::BodyEncoding,
    http::{unreadable, wrong_encoding},
};
use crate::{
    Error,
    decode::{Decode, DecodeError, Gunzip, ListEnvelope, ListSplitter, MessageList},
    error::Awaited,
    limits::Limits,
    rest::ByteStream,
};

/// The parts of one page, read from the connection only as fast as they are consumed.
pub(super) struct PageStream<K> {
    bytes: ByteStream,
    /// The decoder; `None` after the end.
    page: Option<Page>,
    kind: Arc<str>,
    decoder: Arc<dyn Decode<K>>,
    progress: Progress,
}

/// The time limit between two objects of a list.
struct Progress {
    deadline: Pin<Box<Sleep>>,
    within: Duration,
    /// Whether an object was read since the deadline was set. The timer is reset only when no data is
    /// available, not for each of many thousand objects.
    was_made: bool,
}

impl Progress {
    fn new(within: Duration) -> Self {
        Self { deadline: Box::pin(sleep(within)), within, was_made: false }
    }

    /// Polls the deadline, while no data is available.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if mem::take(&mut self.was_made) {
            self.deadline.set(sleep(self.within));
        }
        self.deadline.as_mut().poll(cx)
    }
}

impl<K> PageStream<K> {
    pub(super) fn new(
        bytes: ByteStream,
        limits: &Limits,
        kind: Arc<str>,
        (decoder, body): (Arc<dyn Decode<K>>, BodyEncoding),
        within: Duration,
    ) -> Result<Self, Error> {
        let encoding =
            bytes.headers().get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase());
        let gunzip = match encoding.as_deref() {
            None | Some(b"identity") => None,
            Some(b"gzip" | b"x-gzip") => Some(Gunzip::new(limits)),
            Some(_) => return Err(wrong_encoding(bytes.request())),
        };
        let splitter = match body {
            BodyEncoding::Json => Splitter::Json(ListSplitter::new(limits)),
            BodyEncoding::Protobuf => Splitter::Protobuf(MessageList::new(limits)),
        };
        let page = Some(Page::new(splitter, gunzip));
        Ok(Self { bytes, page, kind, decoder, progress: Progress::new(within) })
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<ListPart<K>>, Error>> {
        let refuse = |bytes: &ByteStream, fault| unreadable(bytes.request(), fault);
        loop {
            let Some(page) = &mut self.page else {
                return Poll::Ready(Ok(None));
            };
            match page.step().map_err(|fault| refuse(&self.bytes, fault))? {
                Step::Item(bytes) => {
                    self.progress.was_made = true;
                    let item = ReceivedItem::new(bytes, &self.kind, self.decoder.clone());
                    return Poll::Ready(
                        item.map(|item| Some(ListPart::Item(item))).map_err(|f| refuse(&self.bytes, f)),
                    );
                }
                Step::End => {
                    let end = self.page.take().map(|page| page.splitter.finish()).transpose();
                    let end = end.map_err(|fault| refuse(&self.bytes, fault))?;
                    return Poll::Ready(Ok(end.map(|envelope| ListPart::End(envelope.into()))));
                }
                Step::More => {}
            }
            match Pin::new(&mut self.bytes).poll_next(cx) {
                Poll::Ready(Some(chunk)) => page.received = chunk?,
                Poll::Ready(None) => page.ended = true,
                // Checked only when no data is available: the time of a slow consumer does not count.
                Poll::Pending => {
                    ready!(self.progress.poll_overdue(cx));
                    let request = Box::new(self.bytes.request().clone());
                    let after = self.progress.within;
                    return Poll::Ready(Err(Error::Deadline { request, part: Awaited::Body, after }));
                }
            }
        }
    }
}

impl<K> Stream for PageStream<K> {
    type Item = Result<ListPart<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let part = ready!(self.poll_part(cx));
        if part.is_err() {
            self.page = None;
        }
        Poll::Ready(part.transpose())
    }
}

/// The splitter of the encoding of a page.
enum Splitter {
    Json(ListSplitter),
    Protobuf(MessageList),
}

impl Splitter {
    fn next_item(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        match self {
            Self::Json(list) => list.next_item(chunk),
            Self::Protobuf(list) => list.next_item(chunk),
        }
    }

    fn finish(self) -> Result<ListEnvelope, DecodeError> {
        match self {
            Self::Json(list) => list.finish(),
            Self::Protobuf(list) => list.finish(),
        }
    }
}

/// The sans-IO decoder of a page: bytes in, items out.
struct Page {
    /// Received bytes, not yet decompressed.
    received: Bytes,
    /// Decompressed bytes, not yet split.
    plain: Bytes,
    gunzip: Option<Gunzip>,
    splitter: Splitter,
    /// Whether the body has been received completely.
    ended: bool,
}

enum Step {
    Item(Bytes),
    /// The body has been read to its end.
    End,
    /// The next chunk, or the end, of the body is needed.
    More,
}

impl Page {
    fn new(splitter: Splitter, gunzip: Option<Gunzip>) -> Self {
        Self { received: Bytes::new(), plain: Bytes::new(), gunzip, splitter, ended: false }
    }

    fn step(&mut self) -> Result<Step, DecodeError> {
        loop {
            if let Some(item) = self.splitter.next_item(&mut self.plain)? {
                return Ok(Step::Item(item));
            }
            match self.next_plain()? {
                Some(plain) => self.plain = plain,
                None if self.ended => return Ok(Step::End),
                None => return Ok(Step::More),
            }
        }
    }

    fn next_plain(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(gunzip) = &mut self.gunzip else {
            let plain = mem::take(&mut self.received);
            return Ok((!plain.is_empty()).then_some(plain));
        };
        if !self.received.is_empty()
            && let Some(block) = gunzip.next_block(&mut self.received)?
        {
            return Ok(Some(block));
        }
        if self.ended { gunzip.finish() } else { Ok(None) }
    }
}
