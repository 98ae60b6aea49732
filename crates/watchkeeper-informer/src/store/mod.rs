//! The cache: objects by key, indexes, snapshots.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs`, `index.rs`, `snapshot.rs` | the public types: [`Store`], [`Index`], [`Snapshot`] |
//! | `op.rs`, `error.rs` | write operations, their results and errors |
//! | `shared.rs` | the locks, and the work that runs outside of them |
//! | `contents.rs`, `index_table.rs` | the data, as a value without locks that is cheap to clone |
//! | `cow_vec.rs`, `cow_table.rs` | the copy-on-write vector and hash table that the data consists of |

mod contents;
mod cow_table;
mod cow_vec;
mod error;
mod index;
mod index_table;
mod op;
mod shared;
mod snapshot;

use std::{fmt, sync::Arc};

pub use self::{
    error::{IndexError, StoreError},
    index::{EachOf, Index, IndexFailure, IndexHealth, IndexValues},
    op::{ApplyResult, ReplaceResult, StoreOp, StoreOpResult},
    snapshot::Snapshot,
};
use self::{
    index::IndexFunction,
    op::OpBatch,
    shared::{Batch, Shared},
};
use crate::{Cached, MetadataRef, Object, ObjectKey, ResourceVersion, key::KeyText};

/// The name of the built-in index by namespace.
#[doc(alias = "NamespaceIndex")]
pub const NAMESPACE_INDEX: &str = "namespace";

/// The number of the built-in index by namespace.
const NAMESPACES: usize = 0;

/// A cache of objects by key, with indexes.
///
/// A store is a handle; clones share the contents.
///
/// # Guarantees
///
/// 1. **Reads are consistent.** [`get`](Store::get), [`by_index`](Store::by_index) and [`list`](Store::list) each observe
///    every earlier write completely. Several reads that must agree are made on one [`Snapshot`], which also returns
///    objects without incrementing their reference counts.
/// 2. **Writes are atomic.** A read observes all of a batch or replacement, or nothing of it.
/// 3. **Readers do not block the writer.** Listing copies a pointer under the lock and does the rest outside. The first
///    write to a page after a snapshot copies the page, which takes a few microseconds.
/// 4. **Large writes do not block readers.** They are made on a copy, which shares the unchanged pages, and then
///    installed.
/// 5. **The resourceVersion never goes back** within an epoch. A write with an older version is rejected.
/// 6. **Indexes agree with the objects** at all times. An object for which an index function fails or panics is missing
///    from that index only.
/// 7. **Objects are shared and immutable.** A removed object is freed when its last reader drops it.
/// 8. **User code does not run under a lock**: neither index functions nor the `Drop` of an object.
///
/// A store guarantees neither an order of its objects nor fairness between concurrent writers. It does not compare the
/// resourceVersions of single objects; the caller decides which object is newer.
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
#[doc(alias = "NewStore")]
#[doc(alias = "ThreadSafeStore")]
#[doc(alias = "Indexer")]
#[doc(alias = "NewIndexer")]
#[doc(alias = "Writer")]
#[doc(alias = "ThreadSafeMap")]
pub struct Store<K> {
    shared: Arc<Shared<K>>,
}

/// Operations with the index values of their objects, ready to be applied without running user code.
pub(crate) struct PreparedOps<K>(Batch<K>);

/// Methods that read.
impl<K: Object> Store<K> {
    /// Creates an empty store with an index by namespace ([`NAMESPACE_INDEX`]).
    #[doc(alias = "MetaNamespaceIndexFunc")]
    pub fn new() -> Self {
        let shared = Arc::new(Shared::new());
        let by_namespace = |metadata: MetadataRef<'_>| metadata.namespace().map(str::to_owned);
        // The store has no other index yet, so the name is not in use.
        let _ = shared.add_index(&Arc::new(IndexFunction::of_metadata(NAMESPACE_INDEX.into(), by_namespace)));
        Self { shared }
    }

    /// Returns a snapshot of the current contents.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.shared.snapshot()
    }

    /// Returns the object stored under `key` (`"namespace/name"` or an [`ObjectKey`]). [`Snapshot::get`] is cheaper for an
    /// object that is not kept.
    ///
    /// Also returns `None` for a packed object that cannot be decoded; [`cached`](Self::cached) distinguishes both.
    #[doc(alias = "GetByKey")]
    pub fn get(&self, key: impl AsRef<str>) -> Option<Arc<K>> {
        self.cached(key)?.get().ok()
    }

    /// Returns the object with this namespace and name; see [`get`](Self::get). The namespace of cluster-scoped objects is
    /// `None`.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        self.cached_in(namespace, name)?.get().ok()
    }

    /// Returns the object stored under `key` without decoding it.
    pub fn cached(&self, key: impl AsRef<str>) -> Option<Cached<K>> {
        self.shared.get(key.as_ref().as_bytes())
    }

    pub(crate) fn cached_in(&self, namespace: Option<&str>, name: &str) -> Option<Cached<K>> {
        self.shared.get(KeyText::for_lookup(namespace, name)?.as_bytes())
    }

    /// Returns whether an object is stored under `key`.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.shared.contains(key.as_ref().as_bytes())
    }

    /// Returns all objects, in unspecified order. Packed objects are decoded, and those that cannot be decoded are left out.
    #[doc(alias = "List")]
    pub fn list(&self) -> Vec<Arc<K>> {
        self.snapshot().list()
    }

    /// Returns all keys, sorted.
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.snapshot().keys()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether the store contains no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the resourceVersion of the contents: that of the last list, event or bookmark that was applied. `None` if
    /// none was.
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.shared.resource_version()
    }
}

/// Methods that write.
impl<K: Object> Store<K> {
    /// Stores an object and returns the object with the same key that it replaces, if any. Advances the store's
    /// resourceVersion to that of the object if that is newer.
    ///
    /// # Errors
    /// Returns [`StoreError::Key`] if the object has no valid key.
    pub fn add(&self, object: impl Into<Cached<K>>) -> Result<Option<Cached<K>>, StoreError> {
        let object = object.into();
        let version = object.resource_version();
        self.shared.apply_one(StoreOp::put(object)?, version.as_ref())
    }

    /// Stores an object, exactly as [`Store::add`] does. The object need not be stored before.
    ///
    /// # Errors
    /// Returns [`StoreError::Key`] if the object has no valid key.
    pub fn update(&self, object: impl Into<Cached<K>>) -> Result<Option<Cached<K>>, StoreError> {
        self.add(object)
    }

    /// Removes and returns the object stored under `key`. Leaves the store's resourceVersion unchanged; use a [`StoreOp`]
    /// and [`Store::apply`] for a delete with a known version.
    pub fn delete(&self, key: &ObjectKey) -> Option<Cached<K>> {
        // A delete is never rejected: it has a valid key, needs no capacity and has no version.
        self.shared.apply_one(StoreOp::delete(key.clone()), None).ok().flatten()
    }

    /// Applies several operations atomically and sets the store's resourceVersion, if one is given. Operations on the same
    /// key are applied in order.
    ///
    /// # Errors
    /// Returns [`StoreError::Backwards`] if `resource_version` is older than that of the store. Nothing is
    /// changed then.
    pub fn apply(
        &self,
        ops: impl IntoIterator<Item = StoreOp<K>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<ApplyResult<K>, StoreError> {
        self.shared.apply(OpBatch::new(ops), resource_version)
    }

    /// Computes the index values of operations, which runs user code, for [`apply_prepared`](Self::apply_prepared).
    pub(crate) fn prepare(&self, ops: Vec<StoreOp<K>>) -> PreparedOps<K> {
        let mut batch = OpBatch::new(ops);
        self.shared.index_batch(&mut batch);
        PreparedOps(batch)
    }

    /// Applies prepared operations without running user code, optionally in a new epoch. If an index was added since they
    /// were prepared, returns them as the outer error, to be [completed](Self::complete).
    pub(crate) fn apply_prepared(
        &self,
        ops: PreparedOps<K>,
        resource_version: Option<&ResourceVersion>,
        is_new_epoch: bool,
    ) -> Result<Result<ApplyResult<K>, StoreError>, PreparedOps<K>> {
        self.shared.apply_indexed(ops.0, resource_version, is_new_epoch).map_err(PreparedOps)
    }

    /// Computes the values of the indexes that were added since the operations were prepared.
    pub(crate) fn complete(&self, ops: &mut PreparedOps<K>) {
        self.shared.index_batch(&mut ops.0);
    }

    /// Replaces all contents with `objects`, as of `resource_version`. If several objects have the same key, the last one is
    /// stored.
    ///
    /// An object that is already stored (the same `Arc`) is left in place.
    ///
    /// # Errors
    /// Returns [`StoreError::Key`] if an object has no valid key, and [`StoreError::Backwards`] when `resource_version` is older
    /// than that of the store. Nothing is changed then.
    #[doc(alias = "Replace")]
    pub fn replace(
        &self,
        objects: impl IntoIterator<Item = impl Into<Cached<K>>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<ReplaceResult<K>, StoreError> {
        self.shared.replace(puts(objects)?, resource_version, false)
    }

    /// Replaces all contents and starts a new epoch, in which any `resource_version` is accepted.
    ///
    /// For a server whose history was replaced: its storage was restored from a backup, or it is another server.
    ///
    /// # Errors
    /// Returns [`StoreError::Key`] if an object has no valid key. Nothing is changed then.
    pub fn replace_in_new_epoch(
        &self,
        objects: impl IntoIterator<Item = impl Into<Cached<K>>>,
        resource_version: Option<&ResourceVersion>,
    ) -> Result<ReplaceResult<K>, StoreError> {
        self.shared.replace(puts(objects)?, resource_version, true)
    }

    /// Advances the store's resourceVersion without changing the contents.
    ///
    /// # Errors
    /// Returns [`StoreError::Backwards`] if `resource_version` is older than that of the store.
    #[doc(alias = "Bookmark")]
    pub fn bookmark(&self, resource_version: &ResourceVersion) -> Result<(), StoreError> {
        self.shared.apply(OpBatch::new([]), Some(resource_version)).map(drop)
    }
}

/// Methods for indexes.
impl<K: Object> Store<K> {
    /// Adds an index that maps each value that `function` returns for an object to that object.
    ///
    /// Stored objects are indexed before this returns. Meanwhile the store can be read and written, and the incomplete
    /// index is not visible. The function is called once for each object, before the object is stored, and must depend on
    /// the object alone. See [`IndexValues`] for its return type.
    ///
    /// # Errors
    /// Returns [`IndexError::Duplicate`] if the store already has an index with that name.
    #[doc(alias = "AddIndexers")]
    #[doc(alias = "Indexers")]
    #[doc(alias = "Indices")]
    pub fn add_index<F, V>(&self, name: impl Into<Arc<str>>, function: F) -> Result<Index<K>, IndexError>
    where
        F: Fn(&K) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        let function = Arc::new(IndexFunction::new(name.into(), function));
        let number = self.shared.add_index(&function)?;
        Ok(Index::new(Arc::clone(&self.shared), number, function))
    }

    /// Returns the index with this name.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    pub fn index(&self, name: &str) -> Result<Index<K>, IndexError> {
        let (number, function) = self.shared.index(name)?;
        Ok(Index::new(Arc::clone(&self.shared), number, function))
    }

    /// Returns the objects with this value in an index, in unspecified order. [`Snapshot::by_index`] is cheaper for objects
    /// that are not kept.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    #[doc(alias = "ByIndex")]
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, IndexError> {
        Ok(self.index(index)?.get(value))
    }

    /// Returns the keys of the objects with this value in an index, sorted.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self.index(index)?.keys(value))
    }

    /// Returns the values for which an index contains objects, sorted.
    ///
    /// # Errors
    /// Returns [`IndexError::Unknown`] if the store has no index with that name.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn index_values(&self, index: &str) -> Result<Vec<Arc<str>>, IndexError> {
        Ok(self.index(index)?.values())
    }

    /// Returns the names of the indexes, in the order in which they were added.
    #[doc(alias = "GetIndexers")]
    pub fn index_names(&self) -> Vec<String> {
        self.snapshot().index_names().map(str::to_owned).collect()
    }
}

fn puts<K: Object>(objects: impl IntoIterator<Item = impl Into<Cached<K>>>) -> Result<Batch<K>, StoreError> {
    let ops: Result<Vec<StoreOp<K>>, _> = objects.into_iter().map(StoreOp::put).collect();
    Ok(OpBatch::new(ops?))
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
