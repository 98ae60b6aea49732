//! The cache: objects by key, indexes, snapshots.
//!
//! `state.rs` is the contents, a value without locks that is cheap to copy; `pages.rs` is what makes it so, and `slots.rs`,
//! `table.rs` and `index_table.rs` are made of it. `shared.rs` is the shell around it: who may write when, and what
//! must happen outside the locks. This file is the store as its users hold it.

mod change;
mod definition;
mod error;
mod index;
mod index_table;
mod key_text;
mod paged;
mod pages;
mod shared;
mod slab;
mod slot_set;
mod slots;
mod snapshot;
mod state;
mod stored;
mod sync;
mod table;
mod values;

use std::{fmt, sync::Arc};

pub use self::{
    change::{Applied, Change, Outcome, Replaced},
    definition::{IndexFailure, IndexHealth},
    error::{IndexError, StoreError},
    index::Index,
    snapshot::Snapshot,
    values::{EachOf, IndexValues},
};
use self::{
    change::{Batch, Prepared},
    definition::Definition,
    key_text::KeyText,
    shared::Shared,
};
use crate::{Object, ObjectKey, ResourceVersion};

/// The name of the index every store has: namespaced objects by their namespace.
pub const NAMESPACE_INDEX: &str = "namespace";

/// The number of that index.
const NAMESPACES: usize = 0;

/// A cache of objects by key, with indexes.
///
/// A handle: clones share one store.
///
/// # What it promises
///
/// 1. **Reads are of one moment.** [`get`](Store::get), [`by_index`](Store::by_index) and [`list`](Store::list) each see
///    every write before them and no half of one. Several reads that must agree are made on one [`Snapshot`], which
///    carries the version its contents are true for. It is also how one looks at objects without keeping them, which
///    counts no references.
/// 2. **Writes are whole.** A batch of changes, or a replacement of everything, is seen by a read in full or not at all.
/// 3. **Readers do not hold up the writer.** Listing copies a pointer under the lock and does the rest outside it. What a
///    snapshot costs, the next write to each of its pages pays: a few microseconds.
/// 4. **Big writes do not hold up readers.** They are made beside the contents and then put in their place; what did not
///    change is shared, so there are never two caches side by side.
/// 5. **The version never goes back**, unless a new epoch is declared. What would take it back is refused.
/// 6. **Indexes agree with the objects** at every moment, and an index function that fails or panics costs its object
///    the place in that index and nothing else.
/// 7. **Objects are shared, never copied and never changed.** Those no longer stored are freed when the last reader lets go.
/// 8. **No user code runs under a lock**: neither index functions nor the `Drop` of an object.
///
/// What it does not promise: an order of the objects, or that concurrent writers are served in the order they came. It
/// does not compare versions of single objects; whoever feeds it decides what is news.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{Pod, PodSpec};
/// use watchkeeper_informer::Store;
///
/// let store = Store::new();
/// let by_node = store.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
///
/// let mut pod = Pod::default();
/// (pod.metadata.namespace, pod.metadata.name) = (Some("shop".into()), Some("web-0".into()));
/// pod.spec = Some(PodSpec { node_name: Some("n1".into()), ..PodSpec::default() });
/// store.add(Arc::new(pod))?;
///
/// assert!(store.get("shop/web-0").is_some());
/// assert_eq!(by_node.get("n1").len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store<K> {
    shared: Arc<Shared<K>>,
}

/// Changes with the index values of their objects.
pub(crate) struct PreparedChanges<K>(Batch<Vec<Prepared<K>>>);

/// [`Store`], by the name client-go gives a store with indexes.
pub type Indexer<K> = Store<K>;

/// Reading.
impl<K: Object> Store<K> {
    /// An empty store, with an index by namespace ([`NAMESPACE_INDEX`]).
    pub fn new() -> Self {
        let shared = Arc::new(Shared::new());
        let by_namespace =
            |object: &K| object.meta().namespace.clone().filter(|namespace| !namespace.is_empty());
        // Nobody else has the store yet, so the name cannot be taken.
        let _ = shared.add_index(&Arc::new(Definition::new(NAMESPACE_INDEX.into(), by_namespace)));
        Self { shared }
    }

    /// The contents as they are now.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.shared.snapshot()
    }

    /// The object of a key, such as `"namespace/name"` or an [`ObjectKey`], to keep. For a look at it,
    /// [`Snapshot::get`] is cheaper.
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.shared.get(key.as_ref().as_bytes())
    }

    /// The object of this namespace and name, to keep. Cluster-scoped objects have no namespace.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        self.shared.get(KeyText::looked_for(namespace, name)?.as_bytes())
    }

    /// Whether there is an object of this key.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.shared.contains(key.as_ref().as_bytes())
    }

    /// Every object, in no particular order.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.snapshot().list()
    }

    /// Every key, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.snapshot().keys()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version the contents are true for: that of the last list, event or bookmark applied. None before the first.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.shared.resource_version()
    }
}

/// Writing.
impl<K: Object> Store<K> {
    /// Stores an object, in the place of an earlier one of the same key, which is returned. The store's version moves on
    /// to the object's if that is newer.
    ///
    /// # Errors
    /// When the object has no key to be stored under.
    pub fn add(&self, object: Arc<K>) -> Result<Option<Arc<K>>, StoreError> {
        let version = ResourceVersion::of(&*object);
        self.shared.apply_one(Change::put(object)?, version.as_ref())
    }

    /// The same as [`Store::add`]: an object that is not there yet is added, and one that is there is replaced.
    ///
    /// # Errors
    /// When the object has no key to be stored under.
    pub fn update(&self, object: Arc<K>) -> Result<Option<Arc<K>>, StoreError> {
        self.add(object)
    }

    /// Removes the object of a key and returns it. The store's version stays; a delete that is known to have happened at
    /// some version is a [`Change`] for [`Store::apply`].
    pub fn delete(&self, key: &ObjectKey) -> Option<Arc<K>> {
        // A delete is never refused: it has a key, needs no room and no version.
        self.shared.apply_one(Change::delete(key.clone()), None).ok().flatten()
    }

    /// Makes several changes at once, after which the contents are true for `resource_version`; without one the version
    /// stays. Changes of one key are made in their order.
    ///
    /// # Errors
    /// When the version is older than the store's: what is newer must not be overwritten with what is older. Nothing is
    /// changed then.
    pub fn apply(
        &self,
        changes: impl IntoIterator<Item = Change<K>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<Applied<K>, StoreError> {
        self.shared.apply(Batch::new(changes), resource_version)
    }

    /// Takes changes and computes the index values of their objects, which runs the user's code, so that
    /// [`apply_prepared`](Self::apply_prepared) need not.
    pub(crate) fn prepare(&self, changes: Vec<Change<K>>) -> PreparedChanges<K> {
        let mut batch = Batch::new(changes);
        self.shared.index_batch(&mut batch);
        PreparedChanges(batch)
    }

    /// As [`apply`](Self::apply), of changes that are prepared, running no code of the user's; and it may begin a new
    /// epoch. When an index was added meanwhile, they come back, to be [completed](Self::complete).
    pub(crate) fn apply_prepared(
        &self,
        changes: PreparedChanges<K>,
        resource_version: Option<&ResourceVersion>,
        is_new_epoch: bool,
    ) -> Result<Result<Applied<K>, StoreError>, PreparedChanges<K>> {
        self.shared.apply_indexed(changes.0, resource_version, is_new_epoch).map_err(PreparedChanges)
    }

    /// Prepares changes for the indexes that were added since they were.
    pub(crate) fn complete(&self, changes: &mut PreparedChanges<K>) {
        self.shared.index_batch(&mut changes.0);
    }

    /// Makes the contents these objects and no others, true for `resource_version`. Of two objects of one key the later
    /// counts.
    ///
    /// Passing an object that is stored already, the very same, leaves it where it is.
    ///
    /// # Errors
    /// When an object has no key, or the version is older than the store's. Nothing is changed then.
    pub fn replace(
        &self,
        objects: impl IntoIterator<Item = Arc<K>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<Replaced<K>, StoreError> {
        self.shared.replace(batch_of(objects)?, resource_version, false)
    }

    /// As [`Store::replace`], for when the server's history has begun anew (its storage was restored from a backup, or
    /// it is another server): whatever the version is, it is the store's from now on.
    ///
    /// # Errors
    /// When an object has no key. Nothing is changed then.
    pub fn replace_in_new_epoch(
        &self,
        objects: impl IntoIterator<Item = Arc<K>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<Replaced<K>, StoreError> {
        self.shared.replace(batch_of(objects)?, resource_version, true)
    }

    /// Says that the contents, as they are, are true for a newer version.
    ///
    /// # Errors
    /// When the version is older than the store's.
    pub fn bookmark(&self, resource_version: &ResourceVersion) -> Result<(), StoreError> {
        self.shared.apply(Batch::new([]), Some(resource_version)).map(drop)
    }
}

/// Indexes.
impl<K: Object> Store<K> {
    /// Adds an index: from each value that `function` returns for an object to that object.
    ///
    /// Objects that are there already are indexed before this returns; meanwhile the store is read and written as usual,
    /// and nobody sees the index half done. The function is called for every object that is stored, before it is; it
    /// should depend on the object alone. See [`IndexValues`] for what it may return.
    ///
    /// # Errors
    /// When there is an index of that name.
    pub fn add_index<F, V>(&self, name: impl Into<Arc<str>>, function: F) -> Result<Index<K>, IndexError>
    where
        F: Fn(&K) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        let definition = Arc::new(Definition::new(name.into(), function));
        let number = self.shared.add_index(&definition)?;
        Ok(Index::new(Arc::clone(&self.shared), number, definition))
    }

    /// The index of this name.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index(&self, name: &str) -> Result<Index<K>, IndexError> {
        let (number, definition) = self.shared.index(name)?;
        Ok(Index::new(Arc::clone(&self.shared), number, definition))
    }

    /// The objects that have a value in an index, to keep, in no particular order. For a look at them,
    /// [`Snapshot::by_index`] is cheaper.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, IndexError> {
        Ok(self.index(index)?.get(value))
    }

    /// The keys of the objects that have a value in an index, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self.index(index)?.keys(value))
    }

    /// The values an index has objects for, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_values(&self, index: &str) -> Result<Vec<Arc<str>>, IndexError> {
        Ok(self.index(index)?.values())
    }

    /// The names of the indexes, in the order they were added.
    pub fn index_names(&self) -> Vec<String> {
        self.snapshot().index_names().map(str::to_owned).collect()
    }
}

fn batch_of<K: Object>(
    objects: impl IntoIterator<Item = Arc<K>>,
) -> Result<Batch<Vec<Prepared<K>>>, StoreError> {
    let changes: Result<Vec<Change<K>>, _> = objects.into_iter().map(Change::put).collect();
    Ok(Batch::new(changes?))
}

impl<K: Object> Default for Store<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Object> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snapshot = self.snapshot();
        f.debug_struct("Store")
            .field("objects", &snapshot.len())
            .field("resource_version", &snapshot.resource_version())
            .field("indexes", &snapshot.index_names().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
