//! Streaming decompression of gzip bodies.

use std::io::{self, BufRead, ErrorKind, Read};

use bytes::{Buf, Bytes};
use flate2::bufread::MultiGzDecoder;

use super::DecodeError;
use crate::limits::Limits;

/// The maximum number of decompressed bytes returned at a time.
const BLOCK: usize = 64 << 10;

/// A decompressor of a gzip body (one or several members), fed chunk by chunk.
///
/// It holds one block of output and the decompressor's window, regardless of the size of the body. The body
/// is rejected if it exceeds [`Limits::decompression_ratio`] times its compressed size. Its total size is not
/// limited, because the blocks are consumed as they are produced.
#[derive(Debug)]
pub(crate) struct Gunzip {
    decoder: MultiGzDecoder<Feed>,
    produced: u64,
    ratio: u32,
    floor_bytes: u64,
}

/// The input of the decompressor: one chunk, then `WouldBlock`, until the body ends.
#[derive(Debug, Default)]
struct Feed {
    chunk: Bytes,
    consumed: u64,
    ended: bool,
}

impl Gunzip {
    /// Creates a decompressor for one body.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            decoder: MultiGzDecoder::new(Feed::default()),
            produced: 0,
            ratio: limits.decompression_ratio,
            floor_bytes: limits.decompression_floor_bytes,
        }
    }

    /// Returns the next block of the body, taken from the front of `chunk`. Returns `None` when `chunk` is
    /// used up and the next chunk is needed.
    ///
    /// # Errors
    /// Returns a [`DecodeError`] if the bytes are not gzip, or a limit is exceeded.
    pub(crate) fn next_block(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, DecodeError> {
        std::mem::swap(&mut self.decoder.get_mut().chunk, chunk);
        let block = self.read();
        std::mem::swap(&mut self.decoder.get_mut().chunk, chunk);
        block
    }

    /// Returns the remaining blocks after the last chunk. Call this until it returns `None`.
    ///
    /// # Errors
    /// Returns [`DecodeError::Truncated`] if the compressed body is incomplete, and the errors of
    /// [`Gunzip::next_block`].
    pub(crate) fn finish(&mut self) -> Result<Option<Bytes>, DecodeError> {
        self.decoder.get_mut().ended = true;
        self.read()
    }

    fn read(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let mut block = vec![0; BLOCK];
        let read = match self.decoder.read(&mut block) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) => {
                let offset = self.decoder.get_ref().consumed;
                return match error.kind() {
                    ErrorKind::WouldBlock => Ok(None),
                    ErrorKind::UnexpectedEof => Err(DecodeError::Truncated { inside: "a gzip body", offset }),
                    _ => Err(DecodeError::Gzip { offset }),
                };
            }
        };
        self.produced += read as u64;
        self.check()?;
        block.truncate(read);
        Ok(Some(Bytes::from(block)))
    }

    fn check(&self) -> Result<(), DecodeError> {
        let consumed = self.decoder.get_ref().consumed;
        if self.produced > self.floor_bytes && self.produced > consumed.saturating_mul(u64::from(self.ratio))
        {
            return Err(DecodeError::DecompressionRatio { ratio: self.ratio, compressed: consumed });
        }
        Ok(())
    }
}

impl Read for Feed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let len = available.len().min(into.len());
        into[..len].copy_from_slice(&available[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Feed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.chunk.is_empty() && !self.ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, len: usize) {
        self.chunk.advance(len);
        self.consumed += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_rejected_only_above_both_the_floor_and_the_ratio() {
        let limits =
            Limits { decompression_floor_bytes: 1_000, decompression_ratio: 20, ..Limits::default() };
        for (produced, consumed, is_accepted) in [
            // At the ratio, and one byte above it.
            (2_000, 100, true),
            (2_001, 100, false),
            // Above the ratio: at the floor, and one byte above it.
            (1_000, 1, true),
            (1_001, 1, false),
            // Above the floor and far below the ratio.
            (1_500, 1_500, true),
            (0, 0, true),
            (200 << 20, u64::MAX, true),
        ] {
            let mut gunzip = Gunzip::new(&limits);
            gunzip.produced = produced;
            gunzip.decoder.get_mut().consumed = consumed;
            match gunzip.check() {
                Ok(()) => assert!(is_accepted, "{produced} of {consumed}"),
                Err(DecodeError::DecompressionRatio { ratio: 20, compressed }) => {
                    assert!(!is_accepted && compressed == consumed, "{produced} of {consumed}");
                }
                Err(other) => panic!("{produced} of {consumed}: {other}"),
            }
        }
    }
}
