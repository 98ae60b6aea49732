//! A store that passes its whole contents on at each change.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::{Object, ObjectKey, ResourceVersion, Snapshot, Store, StoreError};

/// A store whose every change is followed by a call of a function with its whole contents.
///
/// Calls are made one at a time, in order, without a lock held: the function may take its time, and may write to the store
/// itself. A single writer's change has been passed on when its call returns. Changes that others make while the
/// function runs are passed on together, once, by whoever is passing on; so the contents last passed on are
/// always the newest, and however slow the function is, no states pile up.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::small_stores::UndeltaStore;
///
/// let sizes = Arc::new(Mutex::new(Vec::new()));
/// let seen = Arc::clone(&sizes);
/// let store = UndeltaStore::<Pod>::new(move |contents| seen.lock().unwrap().push(contents.len()));
/// store.replace([], None)?;
/// assert_eq!(*sizes.lock().unwrap(), [0]);
/// # Ok::<(), watchkeeper_informer::StoreError>(())
/// ```
pub struct UndeltaStore<K> {
    store: Store<K>,
    push: Push<K>,
    pushing: Mutex<Pushing>,
}

type Push<K> = Box<dyn Fn(&Snapshot<K>) + Send + Sync>;

#[derive(Debug, Default)]
struct Pushing {
    is_running: bool,
    /// Something changed that the running call may not have seen.
    is_due: bool,
}

impl<K: Object> UndeltaStore<K> {
    /// An empty store that calls `push` after each change.
    pub fn new(push: impl Fn(&Snapshot<K>) + Send + Sync + 'static) -> Self {
        Self { store: Store::new(), push: Box::new(push), pushing: Mutex::default() }
    }

    /// As [`Store::add`], then passes the contents on.
    ///
    /// # Errors
    /// When the object has no key. Nothing is passed on then.
    pub fn add(&self, object: Arc<K>) -> Result<Option<Arc<K>>, StoreError> {
        let old = self.store.add(object)?;
        self.pass_on();
        Ok(old)
    }

    /// The same as [`UndeltaStore::add`].
    ///
    /// # Errors
    /// When the object has no key. Nothing is passed on then.
    pub fn update(&self, object: Arc<K>) -> Result<Option<Arc<K>>, StoreError> {
        self.add(object)
    }

    /// As [`Store::delete`], then passes the contents on.
    pub fn delete(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let old = self.store.delete(key);
        self.pass_on();
        old
    }

    /// As [`Store::replace`], then passes the contents on, once.
    ///
    /// # Errors
    /// When an object has no key, or the version is older than the store's. Nothing is changed or passed on then.
    pub fn replace(
        &self,
        objects: impl IntoIterator<Item = Arc<K>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<(), StoreError> {
        self.store.replace(objects, resource_version)?;
        self.pass_on();
        Ok(())
    }

    /// The contents as they are now.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.store.snapshot()
    }

    /// The object of a key.
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.store.get(key)
    }

    fn pass_on(&self) {
        {
            let mut pushing = self.pushing.lock();
            pushing.is_due = true;
            if std::mem::replace(&mut pushing.is_running, true) {
                return;
            }
        }
        let mut run = Run { pushing: &self.pushing, is_over: false };
        while self.is_due() {
            (self.push)(&self.store.snapshot());
        }
        run.is_over = true;
    }

    /// Whether to call once more. Saying no and ending the run is one step: a change after it starts another run.
    fn is_due(&self) -> bool {
        let mut pushing = self.pushing.lock();
        let is_due = std::mem::take(&mut pushing.is_due);
        pushing.is_running = is_due;
        is_due
    }
}

/// A run of calls. Ends with the function's panic too: the next change passes on what this one did not.
struct Run<'a> {
    pushing: &'a Mutex<Pushing>,
    /// It ended by itself, and another may have begun since.
    is_over: bool,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.pushing.lock().is_running = false;
        }
    }
}

impl<K: Object> fmt::Debug for UndeltaStore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndeltaStore").field("store", &self.store).finish_non_exhaustive()
    }
}
