//! A store that calls a function with all contents after each change.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::{Cached, Object, ObjectKey, ResourceVersion, Snapshot, Store, StoreError};

/// A store that calls a function with a snapshot of all contents after each change.
///
/// The function is called by one writer at a time, in order, and without a lock: it may be slow, and may
/// write to the store. With a single writer, the function has returned when the write returns. Changes by
/// other writers while the function runs are combined into one more call by the writer that runs it. The last
/// snapshot is therefore always the newest, and a slow function does not queue states.
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
    /// Whether the contents changed since the running call took its snapshot.
    is_due: bool,
}

impl<K: Object> UndeltaStore<K> {
    /// Creates an empty store that calls `push` after each change.
    pub fn new(push: impl Fn(&Snapshot<K>) + Send + Sync + 'static) -> Self {
        Self { store: Store::new(), push: Box::new(push), pushing: Mutex::default() }
    }

    /// Stores an object as [`Store::add`] does, then calls the function.
    ///
    /// # Errors
    /// Returns [`StoreError::Key`] if the object has no valid key. The function is not called then.
    pub fn add(&self, object: Arc<K>) -> Result<Option<Cached<K>>, StoreError> {
        let old = self.store.add(object)?;
        self.pass_on();
        Ok(old)
    }

    /// Stores an object, exactly as [`UndeltaStore::add`] does.
    ///
    /// # Errors
    /// Returns [`StoreError::Key`] if the object has no valid key. The function is not called then.
    pub fn update(&self, object: Arc<K>) -> Result<Option<Cached<K>>, StoreError> {
        self.add(object)
    }

    /// Removes an object as [`Store::delete`] does, then calls the function.
    pub fn delete(&self, key: &ObjectKey) -> Option<Cached<K>> {
        let old = self.store.delete(key);
        self.pass_on();
        old
    }

    /// Replaces all contents as [`Store::replace`] does, then calls the function once.
    ///
    /// # Errors
    /// Returns [`StoreError`] if an object has no valid key, or the version is older than that of the store.
    /// Nothing is changed and the function is not called then.
    pub fn replace(
        &self,
        objects: impl IntoIterator<Item = Arc<K>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<(), StoreError> {
        self.store.replace(objects, resource_version)?;
        self.pass_on();
        Ok(())
    }

    /// Returns a snapshot of the current contents.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.store.snapshot()
    }

    /// Returns the object with this key.
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

    /// Returns whether to call the function once more, and otherwise ends the run in the same step: a later
    /// change starts another run.
    fn is_due(&self) -> bool {
        let mut pushing = self.pushing.lock();
        let is_due = std::mem::take(&mut pushing.is_due);
        pushing.is_running = is_due;
        is_due
    }
}

/// A run of calls. It also ends with a panic of the function; the next change then calls the function again.
struct Run<'a> {
    pushing: &'a Mutex<Pushing>,
    /// Whether the run has ended normally. Another run may have started since.
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
