//! The budgets of all informers that share a limit.

use std::{fmt, sync::Arc};

use crate::sync::Mutex;

/// The sums over all informers that share a limit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sums {
    reserved: u64,
    used: u64,
}

/// The budgets of all informers that share a memory limit, such as those of a factory.
///
/// Reservations are exact under concurrency: the sum never exceeds the capacity that a caller states, except by
/// reservations that were there before.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sums: Mutex<Sums>,
}

impl Ledger {
    /// Returns a ledger without reservations.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Reserves `bytes` for a new informer, whatever the capacity is.
    pub(crate) fn open(self: &Arc<Self>, bytes: u64) -> Reservation {
        let mut reservation = Reservation { ledger: Arc::clone(self), bytes: 0, used: 0 };
        reservation.resize(bytes, None);
        reservation
    }

    /// Returns the sum of all reservations, in bytes.
    #[cfg(test)]
    pub(crate) fn reserved(&self) -> u64 {
        self.sums.lock().reserved
    }

    /// Returns the sum of the bytes that are used, as last stated by the informers.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.sums.lock().used
    }
}

/// The budget of one informer in a [`Ledger`]. Dropping it releases its bytes.
pub(crate) struct Reservation {
    ledger: Arc<Ledger>,
    bytes: u64,
    used: u64,
}

impl Reservation {
    /// Returns the reserved bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reserves `target` bytes instead of the present ones, and returns what was reserved. A larger reservation is
    /// limited by what the others leave of `capacity`, and is never smaller than before.
    pub(crate) fn resize(&mut self, target: u64, capacity: Option<u64>) -> u64 {
        let mut sums = self.ledger.sums.lock();
        let others = sums.reserved - self.bytes;
        // Without a capacity, the sum is limited by its type.
        let free = capacity.unwrap_or(u64::MAX).saturating_sub(others);
        let granted = target.min(free.max(self.bytes));
        sums.reserved = others + granted;
        self.bytes = granted;
        granted
    }

    /// Returns whether `bytes` could be reserved within `capacity`.
    pub(crate) fn fits(&self, bytes: u64, capacity: u64) -> bool {
        let others = self.ledger.sums.lock().reserved - self.bytes;
        bytes <= capacity.saturating_sub(others)
    }

    /// States the bytes that this informer uses, and returns those of all informers.
    pub(crate) fn set_used(&mut self, bytes: u64) -> u64 {
        let mut sums = self.ledger.sums.lock();
        let others = sums.used - self.used;
        self.used = bytes.min(u64::MAX - others);
        sums.used = others + self.used;
        sums.used
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut sums = self.ledger.sums.lock();
        sums.reserved -= self.bytes;
        sums.used -= self.used;
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("bytes", &self.bytes)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
