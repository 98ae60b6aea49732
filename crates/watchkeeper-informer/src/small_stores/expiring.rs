//! Objects that are forgotten after a while.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::{KeyError, Object, ObjectKey};

/// A cache whose objects are gone a given time after they were last put in.
///
/// An object is never returned later than that. Its memory is given back when it is next asked for, listed or replaced, or
/// by [`ExpiringCache::purge`]: there is no timer and no task. The clock is the caller's: any that says how long it has
/// been since some fixed moment.
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
    /// A cache that forgets objects this long after they were put in, by this clock. With zero it never forgets.
    pub fn new(ttl: Duration, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { ttl, now: Box::new(now), entries: Mutex::default() }
    }

    /// Puts an object in; its time begins now, anew if it was there.
    ///
    /// # Errors
    /// When the object has no key.
    pub fn add(&self, object: Arc<K>) -> Result<(), KeyError> {
        let (key, put_at) = (ObjectKey::of(&*object)?, (self.now)());
        let _old = self.entries.lock().insert(key, Entry { object, put_at });
        Ok(())
    }

    /// Takes an object out, unless it had expired.
    pub fn delete(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let now = (self.now)();
        let removed = self.entries.lock().remove(key);
        removed.filter(|entry| self.is_live(entry, now)).map(|entry| entry.object)
    }

    /// The object of a key, unless it has expired.
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

    /// The objects that have not expired, by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        let now = (self.now)();
        let mut entries = self.entries.lock();
        let expired = self.take_expired(&mut entries, now);
        let objects = entries.values().map(|entry| Arc::clone(&entry.object)).collect();
        drop(entries);
        drop(expired);
        objects
    }

    /// The keys of the objects that have not expired, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let now = (self.now)();
        let entries = self.entries.lock();
        entries.iter().filter(|(_, entry)| self.is_live(entry, now)).map(|(key, _)| key.clone()).collect()
    }

    /// Makes the contents these objects and no others. Their time begins now.
    ///
    /// # Errors
    /// When an object has no key. Nothing is changed then.
    pub fn replace(&self, objects: impl IntoIterator<Item = Arc<K>>) -> Result<(), KeyError> {
        let put_at = (self.now)();
        let entry = |object: Arc<K>| Ok((ObjectKey::of(&*object)?, Entry { object, put_at }));
        let entries = objects.into_iter().map(entry).collect::<Result<Entries<K>, KeyError>>()?;
        let _before = std::mem::replace(&mut *self.entries.lock(), entries);
        Ok(())
    }

    /// Lets go of everything that has expired and says how much that was.
    pub fn purge(&self) -> usize {
        let now = (self.now)();
        let expired = self.take_expired(&mut self.entries.lock(), now);
        expired.len()
    }

    /// What has expired, to be dropped outside the lock.
    fn take_expired(&self, entries: &mut Entries<K>, now: Duration) -> Vec<(ObjectKey, Entry<K>)> {
        entries.extract_if(.., |_, entry| !self.is_live(entry, now)).collect()
    }

    /// A clock that went backwards finds nothing expired.
    fn is_live(&self, entry: &Entry<K>, now: Duration) -> bool {
        self.ttl.is_zero() || now.saturating_sub(entry.put_at) <= self.ttl
    }
}

impl<K> fmt::Debug for ExpiringCache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringCache").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
