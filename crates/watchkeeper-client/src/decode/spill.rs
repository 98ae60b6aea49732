//! The one buffer in which something that spans chunks is put together.

use bytes::{Bytes, BytesMut};

/// A buffer kept after use is not larger than this, so that one huge object does not cost for ever.
const KEEP_BYTES: usize = 1 << 20;

/// Collects the pieces of one thing, never more than its limit, and hands it out as [`Bytes`]. The allocation is
/// used again once what was handed out is dropped.
#[derive(Debug)]
pub(super) struct Spill {
    bytes: BytesMut,
    limit: usize,
}

impl Spill {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            limit,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether `more` bytes still fit under the limit.
    pub(super) fn fits(&self, more: usize) -> bool {
        self.bytes.len().saturating_add(more) <= self.limit
    }

    /// Adds `piece`, which the caller has seen to fit.
    pub(super) fn push(&mut self, piece: &[u8]) {
        debug_assert!(self.fits(piece.len()), "a spill never holds more than its limit");
        let needed = self.bytes.len() + piece.len();
        if needed > self.bytes.capacity() && !self.bytes.try_reclaim(piece.len()) {
            // Grown by hand: `reserve` doubles, past the limit too.
            let roomy = needed
                .max(self.bytes.capacity().saturating_mul(2))
                .min(self.limit.max(needed));
            let mut grown = BytesMut::with_capacity(roomy);
            grown.extend_from_slice(&self.bytes);
            self.bytes = grown;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// What was collected.
    pub(super) fn take(&mut self) -> Bytes {
        let taken = self.bytes.split().freeze();
        if taken.len() > KEEP_BYTES {
            self.bytes = BytesMut::new();
        }
        taken
    }
}
