//! A buffer for values that span chunks.

use bytes::Bytes;

/// A buffer that collects the pieces of one value, up to a limit, and returns it as [`Bytes`].
#[derive(Debug)]
pub(super) struct Spill {
    bytes: Vec<u8>,
    limit: usize,
    /// The length of the last value. The next is probably as long, so its capacity is allocated at once.
    usual: usize,
}

/// The maximum capacity that is allocated in advance.
const USUAL_BYTES: usize = 64 << 10;

impl Spill {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, usual: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of collected bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether `more` bytes fit within the limit.
    pub(super) fn fits(&self, more: usize) -> bool {
        self.bytes.len().saturating_add(more) <= self.limit
    }

    /// Appends `piece`, which the caller has checked to fit.
    pub(super) fn push(&mut self, piece: &[u8]) {
        debug_assert!(self.fits(piece.len()), "a spill never holds more than its limit");
        let needed = self.bytes.len() + piece.len();
        if needed > self.bytes.capacity() {
            // Grown explicitly, because a vector doubles beyond the limit.
            let roomy = self.bytes.capacity().saturating_mul(2).max(self.usual).min(self.limit);
            self.bytes.reserve_exact(roomy.max(needed) - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the collected bytes.
    pub(super) fn take(&mut self) -> Bytes {
        self.usual = self.bytes.len().min(USUAL_BYTES);
        Bytes::from(std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spill_grows_by_doubling_up_to_its_limit_and_not_beyond() {
        let mut spill = Spill::new(25);
        for (piece, capacity) in [(10, 10), (0, 10), (1, 20), (9, 20), (1, 25), (4, 25), (0, 25)] {
            spill.push(&[b'x'; 10][..piece]);
            assert_eq!(spill.bytes.capacity(), capacity, "with {} bytes", spill.bytes.len());
        }
        assert!(spill.fits(0) && !spill.fits(1));
        assert_eq!(spill.take().len(), 25);
        assert!(spill.is_empty());
    }

    #[test]
    fn the_next_thing_gets_the_room_of_the_last_one_within_bounds() {
        let limit = 4 * USUAL_BYTES;
        let mut spill = Spill::new(limit);
        for (last, room) in [(300, 300), (USUAL_BYTES, USUAL_BYTES), (limit, USUAL_BYTES)] {
            spill.push(&vec![b'x'; last]);
            spill.take();
            spill.push(b"x");
            assert_eq!(spill.bytes.capacity(), room, "after {last} bytes");
            spill.take();
        }
    }
}
