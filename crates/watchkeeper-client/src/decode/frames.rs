//! Splitting of a watch body into frames, one per line.

use bytes::{Buf, Bytes};

use super::{DecodeError, spill::Spill};
use crate::limits::Limits;

/// A splitter of a watch response body into frames, fed chunk by chunk.
///
/// A frame is one line, which contains one watch event as JSON. Blank lines are skipped, and lines may end with
/// `\r\n`. Frames are not parsed or validated.
///
/// A frame within one chunk is a slice of it, not a copy. A frame that spans chunks is assembled in a buffer of
/// at most [`Limits::event_bytes`] (16 MiB by default). A longer line is an error as soon as it exceeds the
/// limit, even if its end never arrives.
///
/// ```
/// use bytes::Bytes;
/// use watchkeeper_client::{decode::FrameSplitter, limits::Limits};
///
/// let mut frames = FrameSplitter::new(&Limits::default());
/// let mut chunk = Bytes::from_static(b"{\"type\":\"ADDED\"}\n{\"type\":");
/// assert_eq!(frames.next_frame(&mut chunk)?.as_deref(), Some(&b"{\"type\":\"ADDED\"}"[..]));
/// assert_eq!(frames.next_frame(&mut chunk)?, None);
/// let mut chunk = Bytes::from_static(b"\"DELETED\"}");
/// assert_eq!(frames.next_frame(&mut chunk)?, None);
/// assert_eq!(frames.finish().as_deref(), Some(&b"{\"type\":\"DELETED\"}"[..]));
/// # Ok::<_, watchkeeper_client::decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct FrameSplitter {
    spill: Spill,
    limit: usize,
    /// The number of bytes of the body consumed so far.
    offset: u64,
}

impl FrameSplitter {
    /// Creates a splitter for the body of one watch.
    pub fn new(limits: &Limits) -> Self {
        // One byte more than an event may have, for the `\r` of a line that ends with `\r\n`.
        Self { spill: Spill::new(limits.event_bytes.saturating_add(1)), limit: limits.event_bytes, offset: 0 }
    }

    /// Returns the next frame, taken from the front of `chunk`. Returns `None` when `chunk` is used up and
    /// the next chunk is needed.
    ///
    /// # Errors
    /// Returns [`DecodeError::TooLarge`] if a frame is longer than [`Limits::event_bytes`]. The splitter
    /// cannot be used afterwards, because the start of the next frame is unknown.
    pub fn next_frame(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        while !chunk.is_empty() {
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                self.check(chunk.len())?;
                self.spill.push(chunk);
                self.offset += chunk.len() as u64;
                chunk.clear();
                return Ok(None);
            };
            self.check(end)?;
            let line = chunk.split_to(end);
            chunk.advance(1);
            self.offset += end as u64 + 1;
            let line = if self.spill.is_empty() {
                line
            } else {
                self.spill.push(&line);
                self.spill.take()
            };
            if let Some(frame) = self.trimmed(line)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Returns the remaining bytes as the last frame, if the body did not end with a newline.
    ///
    /// The frame is incomplete if the connection broke in the middle of an event.
    pub fn finish(mut self) -> Option<Bytes> {
        let line = self.spill.take();
        self.trimmed(line).ok().flatten()
    }

    /// Returns an error if `more` bytes exceed the limit of the current frame.
    fn check(&self, more: usize) -> Result<(), DecodeError> {
        if self.spill.fits(more) { Ok(()) } else { Err(self.too_large(more)) }
    }

    fn too_large(&self, more: usize) -> DecodeError {
        DecodeError::TooLarge {
            part: "a watch event",
            limit: "event_bytes",
            bytes: self.limit as u64,
            offset: self.offset + more as u64,
        }
    }

    fn trimmed(&self, mut line: Bytes) -> Result<Option<Bytes>, DecodeError> {
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.limit {
            return Err(self.too_large(0));
        }
        Ok((!line.trim_ascii().is_empty()).then_some(line))
    }
}
