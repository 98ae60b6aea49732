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

/// A queue of the latest state of each changed object.
///
/// An object that is added again before it is popped keeps its position and is popped in its newer state. A
/// deleted object is not popped; use a [`DeltaFifo`](crate::delta_fifo::DeltaFifo) to observe deletions. Each
/// state is returned to one caller of [`Fifo::pop`].
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::small_stores::Fifo;
///
/// let fifo = Fifo::new();
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("web-0".into());
/// fifo.add(Arc::new(pod))?;
/// assert_eq!(fifo.try_pop().and_then(|item| item.object.metadata.name.clone()).as_deref(), Some("web-0"));
/// assert!(fifo.is_empty());
/// # Ok::<(), watchkeeper_informer::KeyError>(())
/// ```
#[doc(alias = "NewFIFO")]
pub struct Fifo<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

/// An object popped from a [`Fifo`].
#[derive(Debug)]
#[non_exhaustive]
pub struct FifoItem<K> {
    /// The latest state of the object.
    pub object: Arc<K>,
    /// Whether the object belongs to the initial list.
    pub is_in_initial_list: bool,
}

struct State<K> {
    /// The object queued under each key, or `None` if it was deleted since. The key stays queued until it is
    /// popped.
    objects: BTreeMap<ObjectKey, Option<Arc<K>>>,
    /// The queued keys in order.
    queue: VecDeque<ObjectKey>,
    is_populated: bool,
    /// The number of keys of the first replacement that have not been popped or skipped.
    initial: usize,
    is_closed: bool,
}

impl<K: Object> Fifo<K> {
    /// Creates an empty queue.
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

    /// Queues an object, or replaces the one that is queued under its key.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the object has no valid key.
    pub fn add(&self, object: Arc<K>) -> Result<(), KeyError> {
        let key = ObjectKey::of(&*object)?;
        let _old = self.state.lock().add(key, object);
        self.changed.notify_one();
        Ok(())
    }

    /// Queues an object, exactly as [`Fifo::add`] does.
    ///
    /// # Errors
    /// Returns [`KeyError`] if the object has no valid key.
    pub fn update(&self, object: Arc<K>) -> Result<(), KeyError> {
        self.add(object)
    }

    /// Removes the object with this key from the queue.
    pub fn delete(&self, key: &ObjectKey) {
        let _old = {
            let mut state = self.state.lock();
            state.is_populated = true;
            state.objects.get_mut(key).and_then(Option::take)
        };
    }

    /// Replaces all queued objects with `objects`, in this order.
    ///
    /// # Errors
    /// Returns [`KeyError`] if an object has no valid key. Nothing is changed then.
    #[doc(alias = "Replace")]
    pub fn replace(&self, objects: impl IntoIterator<Item = Arc<K>>) -> Result<(), KeyError> {
        let keyed = |object: Arc<K>| Ok((ObjectKey::of(&*object)?, object));
        let objects = objects.into_iter().map(keyed).collect::<Result<Vec<_>, KeyError>>()?;
        let _before = self.state.lock().replace(objects);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Waits for the next object and pops it. Returns `None` when the queue is closed and empty. The future
    /// is cancel safe.
    #[doc(alias = "Pop")]
    pub async fn pop(&self) -> Option<FifoItem<K>> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Enabled before the queue is read, so that an object that is added in between wakes this task.
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

    /// Pops the next object, if any.
    pub fn try_pop(&self) -> Option<FifoItem<K>> {
        self.state.lock().pop()
    }

    /// Closes the queue: [`Fifo::pop`] returns `None` once it is empty.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_waiters();
    }

    /// Returns whether [`Fifo::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Returns whether everything of the first [`Fifo::replace`] was popped, or another change was made
    /// before it.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        self.state.lock().has_synced()
    }

    /// Returns the object queued under a key.
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.state.lock().objects.get(key.as_ref()).cloned().flatten()
    }

    /// Returns the queued objects, sorted by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.state.lock().objects.values().flatten().cloned().collect()
    }

    /// Returns the keys of the queued objects, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.state.lock().live().map(|(key, _)| key.clone()).collect()
    }

    /// Returns the number of queued objects.
    pub fn len(&self) -> usize {
        self.state.lock().live().count()
    }

    /// Returns whether the queue is empty.
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

    fn pop(&mut self) -> Option<FifoItem<K>> {
        let is_in_initial_list = !self.has_synced();
        while let Some(key) = self.queue.pop_front() {
            self.initial = self.initial.saturating_sub(1);
            if let Some(object) = self.objects.remove(&key).flatten() {
                return Some(FifoItem { object, is_in_initial_list });
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
