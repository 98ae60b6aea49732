//! Watch frames: one line each.

use bytes::{Buf, Bytes};

use super::{DecodeError, spill::Spill};
use crate::limits::Limits;

/// Cuts the body of a watch into its frames, fed chunk by chunk.
///
/// A frame is a line: blank lines are passed over, and the end of a line may be `\r\n`. A frame that lies in one
/// chunk is a slice of it, not a copy; only a frame that spans chunks is put together in a buffer of its own. No
/// more than [`Limits::event_bytes`] are ever buffered: a longer line is an error as soon as it is known to be
/// longer, whether or not its end ever comes.
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
    /// Bytes of the body behind us.
    offset: u64,
}

impl FrameSplitter {
    /// A splitter for the body of one watch.
    pub fn new(limits: &Limits) -> Self {
        // One byte more than an event may have, for the `\r` of a line that ends in two.
        Self { spill: Spill::new(limits.event_bytes.saturating_add(1)), limit: limits.event_bytes, offset: 0 }
    }

    /// The next frame, taken off the front of `chunk`. None means that `chunk` is used up and the next is needed.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`] when a frame is longer than [`Limits::event_bytes`]. The splitter is of no
    /// further use then: where the next frame would begin is not known.
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

    /// The last frame, when the body ended without a newline.
    pub fn finish(mut self) -> Option<Bytes> {
        let line = self.spill.take();
        self.trimmed(line).ok().flatten()
    }

    /// Whether `more` bytes can be part of the frame being collected.
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
