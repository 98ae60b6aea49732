//! An index as it was asked for: a name, a function, and how the function has fared.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{
    sync::Mutex,
    values::{IndexValues, Values},
};
use crate::{Object, key_ref::KeyRef};

type IndexFunction<K> = Box<dyn Fn(&K) -> Result<Values, String> + Send + Sync>;

/// The name and function of an index.
pub(crate) struct Definition<K> {
    pub(crate) name: Arc<str>,
    function: IndexFunction<K>,
    health: Mutex<IndexHealth>,
}

/// How an index function has fared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IndexHealth {
    /// How often it failed or panicked. The object of each such call is in the store and not in this index.
    pub failures: u64,
    /// The last failure.
    pub last_failure: Option<IndexFailure>,
}

/// A call of an index function that gave no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("index {index:?} could not index {key:?}: {reason}")]
#[non_exhaustive]
pub struct IndexFailure {
    /// The name of the index.
    pub index: String,
    /// The key of the object.
    pub key: String,
    /// The error's text, or the panic's.
    pub reason: String,
}

impl<K: Object> Definition<K> {
    pub(crate) fn new<F, V>(name: Arc<str>, function: F) -> Self
    where
        F: Fn(&K) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        let function = Box::new(move |object: &K| Values::of(function(object)));
        Self { name, function, health: Mutex::new(IndexHealth::default()) }
    }

    /// The values of an object; none, and a note of it, when the function fails. Runs the user's code: hold no lock.
    pub(crate) fn values(&self, object: &K) -> Values {
        // Whatever the function had borrowed is gone with it, and of ours it can only have seen the object.
        let result = catch_unwind(AssertUnwindSafe(|| (self.function)(object)));
        result.unwrap_or_else(|panic| Err(format!("panicked: {}", text_of(&*panic)))).unwrap_or_else(
            |reason| {
                let KeyRef { namespace, name } = KeyRef::of(object);
                let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
                let failure = IndexFailure { index: self.name.to_string(), key, reason };
                tracing::warn!(
                    index = failure.index,
                    object = failure.key,
                    reason = failure.reason,
                    "object not indexed"
                );
                let mut health = self.health.lock();
                health.failures = health.failures.saturating_add(1);
                health.last_failure = Some(failure);
                Values::None
            },
        )
    }

    pub(crate) fn health(&self) -> IndexHealth {
        self.health.lock().clone()
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something other than a text")
}
