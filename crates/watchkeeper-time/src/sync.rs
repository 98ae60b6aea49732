//! The locks and flags of our crates, replaced by Shuttle's under `--cfg shuttle`.
//!
//! Shuttle explores interleavings of threads and only sees the accesses to its own locks. The types have the signatures of
//! `parking_lot` in both builds: acquiring a lock does not fail.

#[cfg(not(shuttle))]
pub use parking_lot::{Mutex, MutexGuard, RwLock};
#[cfg(not(shuttle))]
pub use std::sync::atomic::AtomicBool;

#[cfg(shuttle)]
pub use explored::{Mutex, MutexGuard, RwLock};
#[cfg(shuttle)]
pub use shuttle::sync::atomic::AtomicBool;

#[cfg(shuttle)]
mod explored {
    use std::sync::PoisonError;

    /// The guard of a [`Mutex`].
    pub type MutexGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

    /// Shuttle's mutex with the signature of `parking_lot`.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Creates an unlocked lock.
        pub fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Shuttle's read-write lock with the signature of `parking_lot`.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        /// Creates an unlocked lock.
        pub fn new(value: T) -> Self {
            Self(shuttle::sync::RwLock::new(value))
        }

        /// Waits for shared access.
        pub fn read(&self) -> shuttle::sync::RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        /// Waits for exclusive access.
        pub fn write(&self) -> shuttle::sync::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
