//! Where something that spans chunks is put together.

use bytes::Bytes;

/// Collects the pieces of one thing, never more than its limit, and hands it out as [`Bytes`].
#[derive(Debug)]
pub(super) struct Spill {
    bytes: Vec<u8>,
    limit: usize,
    /// The length of the last thing: the next is probably as long, so it gets its room at once.
    usual: usize,
}

/// Room is not set aside for more than this on the strength of what came before.
const USUAL_BYTES: usize = 64 << 10;

impl Spill {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, usual: 0 }
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
        if needed > self.bytes.capacity() {
            // Grown by hand: left to itself a vector doubles, past the limit too.
            let roomy = self.bytes.capacity().saturating_mul(2).max(self.usual).min(self.limit);
            self.bytes.reserve_exact(roomy.max(needed) - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
    }

    /// What was collected.
    pub(super) fn take(&mut self) -> Bytes {
        self.usual = self.bytes.len().min(USUAL_BYTES);
        Bytes::from(std::mem::take(&mut self.bytes))
    }
}
