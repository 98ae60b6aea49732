//! A cache whose objects expire.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::{KeyError, Object, ObjectKey};

/// A cache whose objects expire a fixed time after they were added.
///
/// An expired object is never returned. Its memory is freed by the next get, list or replace, or by
/// [`ExpiringCache::purge`]: the cache has neither a timer nor a task. The caller provides the clock, a
/// function that returns the time since a fixed moment.
#[doc(alias = "NewTTLStore")]
#[doc(alias = "ExpirationCache")]
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::small_stores::ExpiringCache;
///
/// let start = std::time::Instant::now();
/// let cache: ExpiringCache<Pod> = ExpiringCache::new(Duration::from_secs(60), move || start.elapsed());
/// assert!(cache.list().is_empty());
/// ```
pub struct ExpiringCache<K> {
    ttl: Duration,
    now: Box<dyn Fn() -> Duration + Send + Sync>,
    entries: Mutex<Entries<K>>,
}

type Entries<K> = BTreeMap<ObjectKey, Entry<K>>;

struct Entry<K> {
    object: Arc<K>,
    put_at: Duration,
}

impl<K: Object> ExpiringCache<K> {
    /// Creates a cache whose objects expire after `ttl`, measured by the clock `now`. With a `ttl` of zero, objects
    /// never expire.
    pub fn new(ttl: Duration, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { ttl, now: Box::new(now), entries: Mutex::default() }
    }

    /// Adds or replaces an object. Its lifetime starts now.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the object has no valid key.
    pub fn add(&self, object: Arc<K>) -> Result<(), KeyError> {
        let (key, put_at) = (ObjectKey::of(&*object)?, (self.now)());
        let _old = self.entries.lock().insert(key, Entry { object, put_at });
        Ok(())
    }

    /// Removes and returns an object, unless it has expired.
    pub fn delete(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let now = (self.now)();
        let removed = self.entries.lock().remove(key);
        removed.filter(|entry| self.is_live(entry, now)).map(|entry| entry.object)
    }

    /// Returns the object with this key, unless it has expired.
    #[doc(alias = "GetByKey")]
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        let now = (self.now)();
        let mut entries = self.entries.lock();
        let entry = entries.get(key.as_ref())?;
        if self.is_live(entry, now) {
            return Some(Arc::clone(&entry.object));
        }
        let expired = entries.remove(key.as_ref());
        drop(entries);
        drop(expired);
        None
    }

    /// Returns the objects that have not expired, sorted by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        let now = (self.now)();
        let mut entries = self.entries.lock();
        let expired = self.take_expired(&mut entries, now);
        let objects = entries.values().map(|entry| Arc::clone(&entry.object)).collect();
        drop(entries);
        drop(expired);
        objects
    }

    /// Returns the keys of the objects that have not expired, sorted.
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey> {
        let now = (self.now)();
        let entries = self.entries.lock();
        entries.iter().filter(|(_, entry)| self.is_live(entry, now)).map(|(key, _)| key.clone()).collect()
    }

    /// Replaces all contents with `objects`. Their lifetimes start now.
    ///
    /// # Errors
    /// Returns [`KeyError`] if an object has no valid key. Nothing is changed then.
    pub fn replace(&self, objects: impl IntoIterator<Item = Arc<K>>) -> Result<(), KeyError> {
        let put_at = (self.now)();
        let entry = |object: Arc<K>| Ok((ObjectKey::of(&*object)?, Entry { object, put_at }));
        let entries = objects.into_iter().map(entry).collect::<Result<Entries<K>, KeyError>>()?;
        let _before = std::mem::replace(&mut *self.entries.lock(), entries);
        Ok(())
    }

    /// Removes all expired objects and returns their number.
    pub fn purge(&self) -> usize {
        let now = (self.now)();
        let expired = self.take_expired(&mut self.entries.lock(), now);
        expired.len()
    }

    /// Removes and returns the expired objects, to be dropped outside of the lock.
    fn take_expired(&self, entries: &mut Entries<K>, now: Duration) -> Vec<(ObjectKey, Entry<K>)> {
        entries.extract_if(.., |_, entry| !self.is_live(entry, now)).collect()
    }

    /// Returns whether an object has not expired. If the clock goes back, nothing is expired.
    fn is_live(&self, entry: &Entry<K>, now: Duration) -> bool {
        self.ttl.is_zero() || now.saturating_sub(entry.put_at) <= self.ttl
    }
}

impl<K> fmt::Debug for ExpiringCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringCache").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
