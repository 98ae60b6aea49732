//! A queue of the latest state of each object.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    pin::pin,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{KeyError, Object, ObjectKey};

/// A queue that hands out, for each object that changed, its latest state, once.
///
/// An object that is added again before it is popped keeps its place and is popped in its newer state. A deleted one is
/// not popped at all: who must hear of deletions uses a delta FIFO. Each state is handed to one caller of
/// [`Fifo::pop`].
pub struct Fifo<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

/// An object from a [`Fifo`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Popped<K> {
    /// The object in its latest state.
    pub object: Arc<K>,
    /// Whether the first list was not fully popped before this.
    pub is_in_initial_list: bool,
}

struct State<K> {
    /// What is queued under each key: nothing, when it was deleted since; the key stays until it is its turn.
    objects: BTreeMap<ObjectKey, Option<Arc<K>>>,
    /// The same keys in order.
    queue: VecDeque<ObjectKey>,
    is_populated: bool,
    /// Keys of the first replacement that are still to be popped or passed over.
    initial: usize,
    is_closed: bool,
}

impl<K: Object> Fifo<K> {
    /// An empty queue.
    pub fn new() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            queue: VecDeque::new(),
            is_populated: false,
            initial: 0,
            is_closed: false,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Queues an object, or has the one that is queued under its key be this one.
    ///
    /// # Errors
    /// When the object has no key.
    pub fn add(&self, object: Arc<K>) -> Result<(), KeyError> {
        let key = ObjectKey::of(&*object)?;
        let _old = self.state.lock().add(key, object);
        self.changed.notify_one();
        Ok(())
    }

    /// The same as [`Fifo::add`].
    ///
    /// # Errors
    /// When the object has no key.
    pub fn update(&self, object: Arc<K>) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Has the object of a key not be popped.
    pub fn delete(&self, key: &ObjectKey) {
        let _old = {
            let mut state = self.state.lock();
            state.is_populated = true;
            state.objects.get_mut(key).and_then(Option::take)
        };
    }

    /// Has these objects be popped, in this order, and nothing else that was queued.
    ///
    /// # Errors
    /// When an object has no key. Nothing is changed then.
    pub fn replace(&self, objects: impl IntoIterator<Item = Arc<K>>) -> Result<(), KeyError> {
        let keyed = |object: Arc<K>| Ok((ObjectKey::of(&*object)?, object));
        let objects = objects.into_iter().map(keyed).collect::<Result<Vec<_>, KeyError>>()?;
        let _before = self.state.lock().replace(objects);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Waits for the next object. None once the queue is closed and empty. Dropping the future loses nothing.
    pub async fn pop(&self) -> Option<Popped<K>> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before looking, so that what is added in between is heard.
            changed.as_mut().enable();
            {
                let mut state = self.state.lock();
                if let Some(popped) = state.pop() {
                    return Some(popped);
                }
                if state.is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// The next object, if there is one now.
    pub fn try_pop(&self) -> Option<Popped<K>> {
        self.state.lock().pop()
    }

    /// Ends every [`Fifo::pop`] once nothing is left to pop.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_waiters();
    }

    /// Whether [`Fifo::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Whether everything the first [`Fifo::replace`] brought was popped; if something else was done first, that.
    pub fn has_synced(&self) -> bool {
        self.state.lock().has_synced()
    }

    /// The object queued under a key.
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.state.lock().objects.get(key.as_ref()).cloned().flatten()
    }

    /// The queued objects, by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.state.lock().objects.values().flatten().cloned().collect()
    }

    /// The keys of the queued objects, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.state.lock().live().map(|(key, _)| key.clone()).collect()
    }

    /// How many objects are queued.
    pub fn len(&self) -> usize {
        self.state.lock().live().count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K> State<K> {
    fn add(&mut self, key: ObjectKey, object: Arc<K>) -> Option<Arc<K>> {
        self.is_populated = true;
        if let Some(queued) = self.objects.get_mut(&key) {
            return queued.replace(object);
        }
        self.queue.push_back(key.clone());
        self.objects.insert(key, Some(object));
        None
    }

    fn live(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.objects.iter().filter_map(|(key, object)| Some((key, object.as_ref()?)))
    }

    fn replace(&mut self, objects: Vec<(ObjectKey, Arc<K>)>) -> BTreeMap<ObjectKey, Option<Arc<K>>> {
        let before = std::mem::take(&mut self.objects);
        self.queue.clear();
        for (key, object) in objects {
            if self.objects.insert(key.clone(), Some(object)).is_none() {
                self.queue.push_back(key);
            }
        }
        if !std::mem::replace(&mut self.is_populated, true) {
            self.initial = self.queue.len();
        }
        before
    }

    fn pop(&mut self) -> Option<Popped<K>> {
        let is_in_initial_list = !self.has_synced();
        while let Some(key) = self.queue.pop_front() {
            self.initial = self.initial.saturating_sub(1);
            if let Some(object) = self.objects.remove(&key).flatten() {
                return Some(Popped { object, is_in_initial_list });
            }
        }
        None
    }

    fn has_synced(&self) -> bool {
        self.is_populated && self.initial == 0
    }
}

impl<K: Object> Default for Fifo<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> fmt::Debug for Fifo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo").field("queued", &self.len()).finish_non_exhaustive()
    }
}
