//! Splitting of a watch body into frames, each after its length, and of frames into type and object.

use bytes::{Buf, Bytes};

use super::{
    super::{DecodeError, RawEvent, WatchEventType, spill::Spill},
    fault::Fault,
    wire::Fields,
};
use crate::limits::Limits;

/// The number of bytes of a length.
const LENGTH_BYTES: usize = 4;

/// A splitter of a watch response body into frames, fed chunk by chunk. A frame follows its length, in four bytes.
///
/// A frame within one chunk is a slice of it, not a copy. A length above [`Limits::event_bytes`] is an error at once.
#[derive(Debug)]
pub(crate) struct MessageFrames {
    /// The bytes of the length received so far.
    length: ([u8; LENGTH_BYTES], usize),
    spill: Spill,
    limit: usize,
    offset: u64,
}

impl MessageFrames {
    /// Creates a splitter for the body of one watch.
    pub(crate) fn new(limits: &Limits) -> Self {
        let limit = limits.event_bytes;
        Self { length: ([0; LENGTH_BYTES], 0), spill: Spill::new(limit), limit, offset: 0 }
    }

    /// Returns the next frame, taken from the front of `chunk`. `None` when `chunk` is used up.
    ///
    /// # Errors
    /// Returns [`DecodeError::TooLarge`] for a frame that exceeds [`Limits::event_bytes`].
    pub(crate) fn next_frame(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        loop {
            let (bytes, filled) = &mut self.length;
            while *filled < LENGTH_BYTES {
                if chunk.is_empty() {
                    return Ok(None);
                }
                bytes[*filled] = chunk.get_u8();
                *filled += 1;
                self.offset += 1;
            }
            let length = usize::try_from(u32::from_be_bytes(*bytes)).unwrap_or(usize::MAX);
            if length > self.limit {
                return Err(DecodeError::TooLarge {
                    part: "a watch event",
                    limit: "event_bytes",
                    bytes: self.limit as u64,
                    offset: self.offset,
                });
            }
            let piece = chunk.split_to((length - self.spill.len()).min(chunk.len()));
            self.offset += piece.len() as u64;
            let frame = if piece.len() == length {
                piece
            } else {
                self.spill.push(&piece);
                if self.spill.len() < length {
                    return Ok(None);
                }
                self.spill.take()
            };
            self.length.1 = 0;
            // A frame without content is no event.
            if !frame.is_empty() {
                return Ok(Some(frame));
            }
        }
    }

    /// Checks that the body did not end within a frame.
    ///
    /// # Errors
    /// Returns [`DecodeError::Truncated`] otherwise.
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        if self.length.1 == 0 {
            return Ok(());
        }
        Err(DecodeError::Truncated { inside: "a watch event", offset: self.offset })
    }
}

/// Splits a frame into its type and its object, which stays in its envelope. The object is a slice of `frame`.
///
/// # Errors
/// Returns a [`DecodeError`] if the frame is not a message with a known type and an object.
pub(crate) fn split_message(frame: &Bytes) -> Result<RawEvent, DecodeError> {
    let fault = |fault: Fault| fault.of_object(frame, 0);
    let (mut event_type, mut object) = (None, None);
    let mut fields = Fields::new(frame);
    while let Some((number, value)) = fields.next().map_err(fault)? {
        match number {
            1 => {
                let text = value.text().map_err(fault)?;
                let offset = (frame.len() - fields.rest().len() - text.len()) as u64;
                let known = WatchEventType::from_wire(text);
                event_type = Some(known.ok_or(DecodeError::UnknownEventType { offset })?);
            }
            2 => {
                let mut parts = Fields::new(value.bytes().map_err(fault)?);
                while let Some((part, value)) = parts.next().map_err(fault)? {
                    if part == 1 {
                        object = Some(value.bytes().map_err(fault)?);
                    }
                }
            }
            _ => {}
        }
    }
    let event_type = event_type.ok_or(DecodeError::Missing { field: "type" })?;
    let object = object.ok_or(DecodeError::Missing { field: "object" })?;
    Ok(RawEvent { event_type, object: frame.slice_ref(object) })
}
