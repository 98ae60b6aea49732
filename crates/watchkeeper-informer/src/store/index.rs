//! Indexes: the handle, the index function with its failures, and the values that a function may return.

use std::{
    collections::BTreeSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::shared::Shared;
use crate::{Cached, MetadataRef, Object, ObjectKey, Undecodable, key::KeyRef, panic, sync::Mutex};

/// A named index of a [`Store`](super::Store): it maps a value to the objects that have the value.
///
/// An index always agrees with the store: at any time it contains exactly the stored objects, under the values that the
/// index function returned for them. An object for which the function failed or panicked is stored but not indexed; see
/// [`Index::health`].
///
/// An index is a handle that keeps the store alive. Clones are the same index.
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
/// pod.spec = Some(PodSpec { node_name: Some("node-1".into()), ..PodSpec::default() });
/// store.add(Arc::new(pod))?;
///
/// assert_eq!(by_node.get("node-1").len(), 1);
/// assert_eq!(by_node.keys("node-1"), ["shop/web-0".parse()?]);
/// assert_eq!(by_node.count("node-2"), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Index<K> {
    shared: Arc<Shared<K>>,
    number: usize,
    function: Arc<IndexFunction<K>>,
}

impl<K: Object> Index<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, number: usize, function: Arc<IndexFunction<K>>) -> Self {
        Self { shared, number, function }
    }

    /// Returns the name of the index.
    pub fn name(&self) -> &str {
        &self.function.name
    }

    /// Returns the objects with this value, in unspecified order.
    #[doc(alias = "ByIndex")]
    #[doc(alias = "MatchingFields")]
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        decoded(self.shared.indexed(self.number, value))
    }

    /// Returns the objects with this value without decoding them, in unspecified order.
    pub fn get_cached(&self, value: &str) -> Vec<Cached<K>> {
        self.shared.indexed(self.number, value)
    }

    /// Returns the keys of the objects with this value, sorted.
    #[doc(alias = "IndexKeys")]
    pub fn keys(&self, value: &str) -> Vec<ObjectKey> {
        self.shared.indexed_keys(self.number, value)
    }

    /// Returns the number of objects with this value.
    pub fn count(&self, value: &str) -> usize {
        self.shared.count(self.number, value)
    }

    /// Returns the values for which the index contains an object, sorted.
    #[doc(alias = "ListIndexFuncValues")]
    #[doc(alias = "indexKey")]
    pub fn values(&self) -> Vec<Arc<str>> {
        self.shared.snapshot().contents().index_values(self.number)
    }

    /// Returns the stored objects that have a value in common with `object`, each once, in unspecified order. `object`
    /// itself need not be stored.
    #[doc(alias = "Index")]
    pub fn like(&self, object: &K) -> Vec<Arc<K>> {
        let values = self.function.values_of(object);
        decoded(self.shared.snapshot().contents().union(self.number, values.iter()))
    }

    /// Returns the failures of the index function.
    pub fn health(&self) -> IndexHealth {
        self.function.health()
    }
}

fn decoded<K: Object>(objects: Vec<Cached<K>>) -> Vec<Arc<K>> {
    objects.into_iter().filter_map(|object| object.get().ok()).collect()
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), number: self.number, function: Arc::clone(&self.function) }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("name", &self.function.name).finish_non_exhaustive()
    }
}

/// The failures of an index function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IndexHealth {
    /// The number of calls that failed or panicked. The object of each such call is stored but not in this index.
    pub failures: u64,
    /// The last failure.
    pub last_failure: Option<IndexFailure>,
}

/// A call of an index function that failed or panicked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("index {index:?} could not index {key:?}: {reason}")]
#[non_exhaustive]
pub struct IndexFailure {
    /// The name of the index.
    pub index: String,
    /// The key of the object.
    pub key: String,
    /// The message of the error or panic.
    pub reason: String,
}

/// An object that index functions decode at most once.
pub(super) type DecodedOnce<K> = Option<Result<Arc<K>, Undecodable>>;

/// The values of an object, or the reason why the function failed.
type ValuesOrReason = Result<Values, String>;

/// An index function, by what it reads.
enum ErasedFunction<K> {
    Object(Box<dyn Fn(&K) -> ValuesOrReason + Send + Sync>),
    Metadata(Box<dyn Fn(MetadataRef<'_>) -> ValuesOrReason + Send + Sync>),
}

/// The name and the function of an index.
pub(super) struct IndexFunction<K> {
    pub(super) name: Arc<str>,
    function: ErasedFunction<K>,
    health: Mutex<IndexHealth>,
}

impl<K: Object> IndexFunction<K> {
    pub(super) fn new<F, V>(name: Arc<str>, function: F) -> Self
    where
        F: Fn(&K) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        let function = ErasedFunction::Object(Box::new(move |object: &K| Values::of(function(object))));
        Self { name, function, health: Mutex::new(IndexHealth::default()) }
    }

    pub(super) fn of_metadata<F, V>(name: Arc<str>, function: F) -> Self
    where
        F: Fn(MetadataRef<'_>) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        let function = ErasedFunction::Metadata(Box::new(move |metadata| Values::of(function(metadata))));
        Self { name, function, health: Mutex::new(IndexHealth::default()) }
    }

    /// Returns the values of an object, or none if the function fails. Runs user code, so no lock may be held. The object is
    /// decoded at most once for all functions, into `decoded`.
    pub(super) fn values(&self, object: &Cached<K>, decoded: &mut DecodedOnce<K>) -> Values {
        match &self.function {
            ErasedFunction::Metadata(function) => {
                let metadata = object.metadata();
                self.checked(object.key_ref(), || function(metadata))
            }
            ErasedFunction::Object(function) => self.checked(object.key_ref(), || {
                let object = decoded.get_or_insert_with(|| object.decode_transient());
                function(object.as_ref().map_err(Undecodable::to_string)?)
            }),
        }
    }

    /// Returns the values of an object that need not be stored.
    pub(super) fn values_of(&self, object: &K) -> Values {
        let key = KeyRef::of(object);
        self.checked(key, || match &self.function {
            ErasedFunction::Object(function) => function(object),
            ErasedFunction::Metadata(function) => function(MetadataRef::of(object.meta())),
        })
    }

    fn checked(&self, key: KeyRef<'_>, function: impl FnOnce() -> Result<Values, String>) -> Values {
        // Unwind safe: the function has access to nothing of the store but the object, which it cannot change.
        let result = catch_unwind(AssertUnwindSafe(function));
        let result = result.unwrap_or_else(|payload| Err(format!("panicked: {}", panic::message(&*payload))));
        result.unwrap_or_else(|reason| {
            let key = key.to_string();
            tracing::warn!(index = &*self.name, object = key, reason, "object not indexed");
            let mut health = self.health.lock();
            health.failures = health.failures.saturating_add(1);
            health.last_failure = Some(IndexFailure { index: self.name.to_string(), key, reason });
            Values::None
        })
    }

    pub(super) fn health(&self) -> IndexHealth {
        self.health.lock().clone()
    }
}

/// A return type of index functions: the values of an object, or an error.
///
/// | type | meaning |
/// |---|---|
/// | `Option<String>` | one value or none |
/// | `String`, `&'static str` | one value |
/// | `Vec<String>`, an array, a `BTreeSet` | several values; duplicates count once |
/// | [`EachOf`] an iterator | several values, without collecting them first |
/// | `Result` of any of these | on `Err`, the object is not indexed and the index reports the error |
///
/// Each value may be of any type that converts into a `String`.
#[doc(alias = "IndexFunc")]
pub trait IndexValues {
    /// Calls `add` with each value.
    ///
    /// # Errors
    /// The message of the index function's error.
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String>;
}

/// The values of an iterator, for index functions that return one.
#[derive(Debug, Clone)]
pub struct EachOf<I>(pub I);

impl<I: IntoIterator<Item: Into<String>>> IndexValues for EachOf<I> {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        self.0.into_iter().for_each(|value| add(value.into()));
        Ok(())
    }
}

impl<V: Into<String>> IndexValues for Option<V> {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(add)
    }
}

impl<V: Into<String>> IndexValues for Vec<V> {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(add)
    }
}

impl<V: Into<String>, const N: usize> IndexValues for [V; N] {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(add)
    }
}

impl<V: Into<String>> IndexValues for BTreeSet<V> {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(add)
    }
}

impl IndexValues for String {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        add(self);
        Ok(())
    }
}

impl IndexValues for &str {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        add(self.to_owned());
        Ok(())
    }
}

impl<V: IndexValues, E: fmt::Display> IndexValues for Result<V, E> {
    fn each(self, add: &mut dyn FnMut(String)) -> Result<(), String> {
        self.map_err(|error| error.to_string())?.each(add)
    }
}

/// The values of one object in one index, without duplicates. Several values are sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Values {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
}

impl Values {
    fn of(values: impl IndexValues) -> Result<Self, String> {
        let mut all = Self::None;
        values.each(&mut |value| match &mut all {
            Self::None => all = Self::One(value),
            Self::One(first) => all = Self::Several(vec![std::mem::take(first), value]),
            Self::Several(more) => more.push(value),
        })?;
        if let Self::Several(more) = &mut all {
            more.sort_unstable();
            more.dedup();
            if more.len() == 1 {
                all = more.pop().map_or(Self::None, Self::One);
            }
        }
        Ok(all)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let values = match self {
            Self::None => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values.as_slice(),
        };
        values.iter().map(String::as_str)
    }
}
