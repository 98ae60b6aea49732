//! The lock and the atomics the queue uses, and their stand-ins when Shuttle explores interleavings.

#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

/// Releases a lock that was held for long: to whoever has been put to sleep over it, if anyone was.
#[cfg(not(shuttle))]
#[inline]
pub(crate) fn unlock_fairly<T>(guard: MutexGuard<'_, T>) {
    MutexGuard::unlock_fair(guard);
}

#[cfg(shuttle)]
pub(crate) use explored::{Mutex, MutexGuard, unlock_fairly};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(shuttle)]
mod explored {
    use std::sync::{PoisonError, TryLockError};

    pub(crate) fn unlock_fairly<T>(guard: MutexGuard<'_, T>) {
        drop(guard);
    }

    pub(crate) type MutexGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

    /// Shuttle's mutex with `parking_lot`'s signature.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }
}
