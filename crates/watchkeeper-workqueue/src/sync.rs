//! The lock and the atomics the queue uses, and their stand-ins when Shuttle explores interleavings.

#[cfg(not(shuttle))]
use std::{hint, thread, time::Duration};

#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

/// Takes a lock that others take all the time, each for a moment.
///
/// One who waits for such a lock in the kernel is woken when it is released next, and finds it taken again: it and the one
/// who had to wake it pay more for that than for the work. So this one looks a few times, stays away while the others get
/// something done, looks again, and only then waits in the kernel, where nobody waits for ever.
#[cfg(not(shuttle))]
#[cold]
#[expect(clippy::disallowed_methods, reason = "a thread that stays away; no time is told by it")]
pub(crate) fn lock_among_many<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    const ABSENCE: Duration = Duration::from_micros(50);
    look_for_lock(mutex).unwrap_or_else(|| {
        thread::sleep(ABSENCE);
        look_for_lock(mutex).unwrap_or_else(|| mutex.lock())
    })
}

#[cfg(not(shuttle))]
fn look_for_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    const LOOKS: u32 = 4;
    (1..=LOOKS).find_map(|look| {
        (0..4 * look).for_each(|_| hint::spin_loop());
        mutex.try_lock()
    })
}

/// Releases a lock that was held for long: to whoever has been put to sleep over it, if anyone was.
#[cfg(not(shuttle))]
#[inline]
pub(crate) fn unlock_fairly<T>(guard: MutexGuard<'_, T>) {
    MutexGuard::unlock_fair(guard);
}

#[cfg(shuttle)]
pub(crate) use explored::{Mutex, MutexGuard, lock_among_many, unlock_fairly};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(shuttle)]
mod explored {
    use std::sync::{PoisonError, TryLockError};

    pub(crate) fn lock_among_many<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }

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
