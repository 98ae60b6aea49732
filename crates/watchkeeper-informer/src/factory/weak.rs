//! References to factories that do not keep them alive.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::{Shared, SharedInformerFactory};

/// A reference to a factory that does not keep it alive.
#[derive(Clone)]
pub struct WeakInformerFactory {
    shared: Weak<Shared>,
}

impl SharedInformerFactory {
    /// Returns a reference to the factory that does not keep it alive.
    ///
    /// ```
    /// use watchkeeper_informer::factory::FactoryBuilder;
    ///
    /// let factory = FactoryBuilder::without_client().build();
    /// let weak = factory.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(factory);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn downgrade(&self) -> WeakInformerFactory {
        WeakInformerFactory { shared: Arc::downgrade(&self.shared) }
    }
}

impl WeakInformerFactory {
    /// Returns the factory, if a handle to it exists.
    pub fn upgrade(&self) -> Option<SharedInformerFactory> {
        Some(SharedInformerFactory { shared: self.shared.upgrade()? })
    }
}

impl fmt::Debug for WeakInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakInformerFactory").finish_non_exhaustive()
    }
}
