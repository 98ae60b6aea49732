//! An informer of any type, as the factory remembers it.

use std::{any::Any, pin::Pin, time::Duration};

use crate::{Object, WeakInformer, status::SyncError};

pub(super) type Waiting<'a> = Pin<Box<dyn Future<Output = Result<(), SyncError>> + Send + 'a>>;

/// An informer that others hold. The factory does not keep it alive.
pub(super) trait Entry: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    /// Whether somebody holds it and it was not stopped.
    fn is_alive(&self) -> bool;
    fn start(&self);
    fn stop(&self);
    fn wait_for_sync(&self, within: Option<Duration>) -> Waiting<'_>;
}

impl<K: Object> Entry for WeakInformer<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_alive(&self) -> bool {
        self.is_alive()
    }

    fn start(&self) {
        if let Some(informer) = self.upgrade() {
            informer.start();
        }
    }

    fn stop(&self) {
        if let Some(informer) = self.upgrade() {
            informer.stop();
        }
    }

    fn wait_for_sync(&self, within: Option<Duration>) -> Waiting<'_> {
        Box::pin(self.wait_for_sync(within))
    }
}
