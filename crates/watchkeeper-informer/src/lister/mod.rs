//! Listers: reads of a cache by name, namespace and label.

mod generic;
mod view;

use std::{fmt, sync::Arc};

use kube_core::{
    Selector, Status,
    response::{StatusDetails, reason},
};

pub use self::{
    generic::{AnyObject, GenericLister, GenericNamespaceLister, GenericView},
    view::{ListerView, NamespaceView},
};
use crate::{CachedRef, Object, ObjectKey, Snapshot, Store, Undecodable, key::KeyRef};

/// A lister of the cached objects of one kind.
///
/// Each call reads a consistent state. Make several calls that must agree on one [`Lister::view`], which also
/// returns objects without incrementing their reference counts. Label selectors are evaluated locally, with
/// every operator of the API: `=`, `!=`, `in`, `notin`, exists and does not exist. The default selector
/// matches all objects. Lists have an unspecified order.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_core::{Expression, Selector};
/// use watchkeeper_informer::{Lister, Store};
///
/// let store = Store::<Pod>::new();
/// let pods = Lister::new(store);
/// let web: Selector = Expression::In("app".into(), ["web".into(), "proxy".into()].into()).into();
/// assert!(pods.namespace("shop").list(&web).is_empty());
///
/// let error = pods.namespace("shop").get("web-0").unwrap_err();
/// assert_eq!(error.to_string(), r#"pods "web-0" in namespace "shop" is not in the cache"#);
/// assert!(error.is_not_found() && error.status().is_not_found());
/// ```
pub struct Lister<K> {
    store: Store<K>,
    resource: Arc<ResourceName>,
}

/// A lister of the cached objects of one kind in one namespace; see [`Lister`].
#[doc(alias = "PodNamespaceLister")]
pub struct NamespaceLister<K> {
    lister: Lister<K>,
    namespace: Arc<str>,
}

/// The name of the resource in errors.
#[derive(Debug, PartialEq, Eq)]
struct ResourceName {
    group: String,
    plural: String,
}

/// The error for an object that is not in the cache.
///
/// The object may exist on the server if the cache has not synced or is not up to date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{plural} {name:?}{} is not in the cache", InNamespace(namespace.as_deref()))]
#[non_exhaustive]
pub struct NotFound {
    /// The API group of the resource; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub plural: String,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
}

struct InNamespace<'a>(Option<&'a str>);

impl fmt::Display for InNamespace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |namespace| write!(f, " in namespace {namespace:?}"))
    }
}

impl NotFound {
    /// Returns the corresponding status of the API server: 404, `NotFound`.
    pub fn status(&self) -> Status {
        let resource = if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        };
        let details = StatusDetails {
            name: self.name.clone(),
            group: self.group.clone(),
            kind: self.plural.clone(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        };
        Status::failure(&format!("{resource} {:?} not found", self.name), reason::NOT_FOUND)
            .with_code(404)
            .with_details(details)
    }
}

impl From<NotFound> for Status {
    fn from(error: NotFound) -> Self {
        error.status()
    }
}

/// The error of reading one object from a cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
    /// The object is not in the cache.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The object is in the cache, and cannot be decoded. It must not be treated as deleted.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
}

impl GetError {
    /// Returns whether the object is not in the cache.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    /// Returns the corresponding status of the API server: 404 for an object that is not in the cache, and 500 for one
    /// that cannot be decoded.
    pub fn status(&self) -> Status {
        match self {
            Self::NotFound(error) => error.status(),
            Self::Undecodable(error) => {
                Status::failure(&error.to_string(), reason::INTERNAL_ERROR).with_code(500)
            }
        }
    }
}

impl From<GetError> for Status {
    fn from(error: GetError) -> Self {
        error.status()
    }
}

impl<K: Object> Lister<K> {
    /// Creates a lister of a store, for a kind known at compile time.
    #[doc(alias = "NewPodLister")]
    pub fn new(store: Store<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::for_kind(store, &K::DynamicType::default())
    }

    /// Creates a lister of a store, for a kind known at run time.
    pub fn for_kind(store: Store<K>, kind: &K::DynamicType) -> Self {
        let resource =
            ResourceName { group: K::group(kind).into_owned(), plural: K::plural(kind).into_owned() };
        Self { store, resource: Arc::new(resource) }
    }

    /// Returns the objects whose labels match.
    #[doc(alias = "List")]
    #[doc(alias = "AppendFunc")]
    #[doc(alias = "MatchingLabels")]
    pub fn list(&self, selector: &Selector) -> Vec<Arc<K>> {
        if selector.selects_all() {
            self.store.list()
        } else {
            self.view().list(selector).map(CachedRef::into_arc).collect()
        }
    }

    /// Returns the object with this key (`"namespace/name"` or an [`ObjectKey`]).
    ///
    /// # Errors
    /// Returns a [`GetError`] if the object is not in the cache, or cannot be decoded.
    #[doc(alias = "Get")]
    pub fn get(&self, key: impl AsRef<str>) -> Result<Arc<K>, GetError> {
        self.find(KeyRef::split(key.as_ref()))
    }

    /// Returns the object with this key, or `None` if it is not in the cache.
    ///
    /// # Errors
    /// Returns [`Undecodable`] if the object is in the cache and cannot be decoded, so that it is not taken for an object
    /// that does not exist.
    #[doc(alias = "IgnoreNotFound")]
    pub fn get_opt(&self, key: impl AsRef<str>) -> Result<Option<Arc<K>>, Undecodable> {
        self.find_opt(KeyRef::split(key.as_ref()))
    }

    /// Returns whether the cache contains an object with this key. No object is decoded.
    pub fn contains(&self, key: impl AsRef<str>) -> bool {
        self.store.contains(key)
    }

    /// Returns a lister of one namespace.
    #[doc(alias = "NewNamespaced")]
    pub fn namespace(&self, namespace: impl Into<Arc<str>>) -> NamespaceLister<K> {
        NamespaceLister { lister: self.clone(), namespace: namespace.into() }
    }

    /// Returns all keys, sorted.
    #[doc(alias = "ListKeys")]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.store.keys()
    }

    /// Returns a point-in-time view, which returns objects without incrementing their reference counts.
    pub fn view(&self) -> ListerView<'_, K> {
        ListerView::new(self.snapshot(), &self.resource)
    }

    /// Returns a snapshot of the whole cache.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.store.snapshot()
    }

    fn find(&self, key: KeyRef<'_>) -> Result<Arc<K>, GetError> {
        let cached = self.store.cached_in(Some(key.namespace), key.name);
        Ok(cached.ok_or_else(|| self.resource.not_found(key))?.get()?)
    }

    fn find_opt(&self, key: KeyRef<'_>) -> Result<Option<Arc<K>>, Undecodable> {
        self.store.cached_in(Some(key.namespace), key.name).map(|object| object.get()).transpose()
    }
}

impl ResourceName {
    fn not_found(&self, key: KeyRef<'_>) -> NotFound {
        NotFound {
            group: self.group.clone(),
            plural: self.plural.clone(),
            namespace: (!key.namespace.is_empty()).then(|| key.namespace.to_owned()),
            name: key.name.to_owned(),
        }
    }
}

impl<K: Object> NamespaceLister<K> {
    /// Returns the name of the namespace.
    pub fn name(&self) -> &str {
        &self.namespace
    }

    /// Returns the objects of the namespace whose labels match. Reads the objects of that namespace only.
    pub fn list(&self, selector: &Selector) -> Vec<Arc<K>> {
        self.view().list(selector).map(CachedRef::into_arc).collect()
    }

    /// Returns a point-in-time view of the namespace, which returns objects without incrementing their
    /// reference counts.
    pub fn view(&self) -> NamespaceView<'_, K> {
        NamespaceView::new(self.lister.view(), &self.namespace)
    }

    /// Returns the object with this name.
    ///
    /// # Errors
    /// Returns a [`GetError`] if the object is not in the cache, or cannot be decoded.
    pub fn get(&self, name: &str) -> Result<Arc<K>, GetError> {
        self.lister.find(KeyRef { namespace: &self.namespace, name })
    }

    /// Returns the object with this name, or `None` if it is not in the cache.
    ///
    /// # Errors
    /// Returns [`Undecodable`] if the object is in the cache and cannot be decoded.
    pub fn get_opt(&self, name: &str) -> Result<Option<Arc<K>>, Undecodable> {
        self.lister.find_opt(KeyRef { namespace: &self.namespace, name })
    }

    /// Returns whether the namespace contains an object with this name. No object is decoded.
    pub fn contains(&self, name: &str) -> bool {
        self.lister.store.cached_in(Some(&self.namespace), name).is_some()
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), resource: Arc::clone(&self.resource) }
    }
}

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone(), namespace: Arc::clone(&self.namespace) }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLister")
            .field("resource", &self.lister.resource)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
