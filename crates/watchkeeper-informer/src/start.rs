//! The start of informers.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

/// The start of an informer, shared by everything of the informer that callers can wait on.
///
/// The default is for a reflector or processor without an informer, which has no start: such a future may be
/// polled for the first time after a wait on it has begun.
#[derive(Debug, Clone, Default)]
pub(crate) struct InformerStart(Option<Arc<AtomicBool>>);

impl InformerStart {
    /// Returns the start of an informer that has not been started.
    pub(crate) fn pending() -> Self {
        Self(Some(Arc::default()))
    }

    /// Returns whether the informer is neither started nor stopped, so that a wait on it might never end.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.as_ref().is_some_and(|is_complete| !is_complete.load(Acquire))
    }

    /// Records that the informer was started, or was stopped and can no longer be started.
    pub(crate) fn complete(&self) {
        if let Some(is_complete) = &self.0 {
            is_complete.store(true, Release);
        }
    }
}
