//! Server-side apply that skips requests without effect.
//!
//! Applying an unchanged object again has no effect, but costs a request for each reconcile. An [`Applier`] remembers what it
//! applied last, and skips the request if two conditions hold:
//!
//! - the object to apply equals the one that this process applied last, so no field has to be removed;
//! - the cached object has the version that the last apply created, or contains every field to apply with the same value,
//!   so no other client has changed one.
//!
//! # Limitations
//!
//! - Another manager can take over the ownership of a field without changing its value. The applier does not detect this
//!   until the value changes.
//! - Two processes that apply different fields under the same manager name are not supported.
//! - After a start, each object is applied once.
//! - If the server normalizes a value (`1000m` to `1`), the second condition depends on the version alone, and any other
//!   change of the object causes a request.
//!
//! A request that changed nothing is recognized by the version in the response ([`Applied::Unchanged`]).

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use kube_core::{
    Resource,
    params::{Patch, PatchParams},
};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use watchkeeper_client::rest::ToResourceClient;

/// The default number of objects that an applier remembers, at about 200 bytes each.
const DEFAULT_CAPACITY: usize = 10_000;

/// The effect of an apply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Applied<K> {
    /// The request was skipped, because the object is as wanted.
    Skipped,
    /// The request changed nothing. Contains the object.
    Unchanged(K),
    /// The request changed or created the object. Contains the new state.
    Changed(K),
}

/// A failure of [`Applier::apply`] or [`Applier::apply_status`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The object has no name.
    #[error("apply an object without a name; set metadata.name")]
    NoName,
    /// The object cannot be serialized as JSON.
    #[error("apply {name}: cannot serialize the object as JSON: {source}")]
    Encode {
        /// The name of the object.
        name: String,
        /// The serialization error.
        #[source]
        source: serde_json::Error,
    },
    /// The request failed.
    #[error("apply {name}: {source}")]
    Server {
        /// The name of the object.
        name: String,
        /// The error of the request.
        #[source]
        source: Box<watchkeeper_client::Error>,
    },
}

/// A client-side cache for server-side apply by one field manager. Share one applier between all reconciles of a controller.
///
/// A skipped request leaves the object as wanted, within the [limitations](self#limitations) of the module. Memory is bounded:
/// the applier remembers the [most recently used](Self::capacity) objects.
#[derive(Debug)]
pub struct Applier {
    params: PatchParams,
    applied: Mutex<AppliedObjects>,
}

#[derive(Debug)]
struct AppliedObjects {
    objects: BTreeMap<String, AppliedState>,
    /// The names in the order of their last use.
    by_use: BTreeMap<u64, String>,
    next_use: u64,
    capacity: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct AppliedState {
    digest: [u64; 2],
    uid: Option<String>,
    resource_version: Option<String>,
    last_use: u64,
}

impl Applier {
    /// Creates an applier for a field manager, usually the name of the controller, which must not change between versions. The
    /// applier takes over fields from other managers, as is recommended for controllers; see
    /// [`without_force`](Self::without_force).
    #[doc(alias = "WithFieldOwner")]
    pub fn new(field_manager: impl Into<String>) -> Self {
        let params =
            PatchParams { field_manager: Some(field_manager.into()), force: true, ..PatchParams::default() };
        let applied = AppliedObjects {
            objects: BTreeMap::new(),
            by_use: BTreeMap::new(),
            next_use: 0,
            capacity: DEFAULT_CAPACITY,
        };
        Self { params, applied: Mutex::new(applied) }
    }

    /// Makes a field that another manager owns a conflict, instead of taking over the field.
    #[must_use]
    pub fn without_force(mut self) -> Self {
        self.params.force = false;
        self
    }

    /// Sets the number of objects that the applier remembers. Defaults to 10,000. At the limit, the least recently used object
    /// is removed, and is applied once more when needed.
    #[must_use]
    pub fn capacity(self, objects: usize) -> Self {
        self.applied.lock().capacity = objects;
        self
    }

    /// Applies `object`: sets the fields that `object` contains, and removes fields that an earlier apply contained. `cached` is
    /// the current object from a cache; without it, the request is always sent.
    ///
    /// `resource` is a [`Context`](crate::Context), a [`Client`](watchkeeper_client::Client), a
    /// [`ResourceClient`](watchkeeper_client::rest::ResourceClient) or kube's [`Api`](watchkeeper_client::kube_client::Api). The first two apply in the
    /// namespace that `object` carries.
    ///
    /// # Errors
    /// Returns an [`ApplyError`] if the object has no name or cannot be serialized, or if the request fails.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use watchkeeper_controller::{Context, ReconcileError, objects::apply::Applier};
    /// # async fn example(context: Context, applier: Applier, wanted: ConfigMap) -> Result<(), ReconcileError> {
    /// let cached = context.lister::<ConfigMap>()?.namespace("default").get_opt("settings")?;
    /// applier.apply(&context, &wanted, cached.as_deref()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply<K>(
        &self,
        resource: &impl ToResourceClient<K>,
        object: &K,
        cached: Option<&K>,
    ) -> Result<Applied<K>, ApplyError>
    where
        K: Resource + Serialize + DeserializeOwned,
    {
        self.send(resource, None, object, cached).await
    }

    /// Applies the status of an existing object, as [`apply`](Self::apply) does for the object.
    ///
    /// # Errors
    /// Returns the same errors as [`apply`](Self::apply).
    pub async fn apply_status<K>(
        &self,
        resource: &impl ToResourceClient<K>,
        object: &K,
        cached: Option<&K>,
    ) -> Result<Applied<K>, ApplyError>
    where
        K: Resource + Serialize + DeserializeOwned,
    {
        self.send(resource, Some("status"), object, cached).await
    }

    async fn send<K>(
        &self,
        resource: &impl ToResourceClient<K>,
        subresource: Option<&str>,
        object: &K,
        cached: Option<&K>,
    ) -> Result<Applied<K>, ApplyError>
    where
        K: Resource + Serialize + DeserializeOwned,
    {
        let name = object.meta().name.clone().ok_or(ApplyError::NoName)?;
        let encode = |object: &K| {
            serde_json::to_value(object).map_err(|source| ApplyError::Encode { name: name.clone(), source })
        };
        let wanted = encode(object)?;
        let digest = digest(&wanted);
        let failed = |source: watchkeeper_client::Error| ApplyError::Server {
            name: name.clone(),
            source: Box::new(source),
        };
        let resource = resource.to_resource_client().namespace_of(object);
        let path = resource.path().map_err(|reason| failed(reason.into()))?;
        let key = format!("{path} {name} {}", subresource.unwrap_or_default());
        if let Some(cached) = cached
            && let Some(last) = self.applied.lock().recall(&key)
            && (last.digest, &last.uid) == (digest, &cached.meta().uid)
        {
            let is_untouched =
                last.resource_version.is_some() && last.resource_version == cached.meta().resource_version;
            if is_untouched || is_contained(&wanted, &encode(cached)?) {
                return Ok(Applied::Skipped);
            }
        }
        let patch = Patch::Apply(&wanted);
        let result = match subresource {
            None => resource.patch(&name, &self.params, &patch).await,
            Some(_) => resource.patch_status(&name, &self.params, &patch).await,
        };
        let applied = result.map_err(failed)?;
        let metadata = applied.meta();
        let (uid, resource_version) = (metadata.uid.clone(), metadata.resource_version.clone());
        let is_same = cached.is_some_and(|cached| {
            (&cached.meta().uid, &cached.meta().resource_version) == (&uid, &resource_version)
        });
        self.applied.lock().remember(key, digest, uid, resource_version);
        Ok(if is_same { Applied::Unchanged(applied) } else { Applied::Changed(applied) })
    }
}

impl AppliedObjects {
    fn recall(&mut self, key: &str) -> Option<AppliedState> {
        let now = self.next_use;
        let remembered = self.objects.get_mut(key)?;
        self.by_use.remove(&remembered.last_use);
        remembered.last_use = now;
        self.by_use.insert(now, key.to_owned());
        self.next_use += 1;
        Some(remembered.clone())
    }

    fn remember(
        &mut self,
        key: String,
        digest: [u64; 2],
        uid: Option<String>,
        resource_version: Option<String>,
    ) {
        let last_use = self.next_use;
        self.next_use += 1;
        let remembered = AppliedState { digest, uid, resource_version, last_use };
        if let Some(last) = self.objects.insert(key.clone(), remembered) {
            self.by_use.remove(&last.last_use);
        }
        self.by_use.insert(last_use, key);
        while self.objects.len() > self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.objects.remove(&oldest);
        }
    }
}

/// Returns whether every field of `wanted` is in `actual` with the same value. Lists must have the same length, and each
/// element must be contained in its counterpart, because the server may have added defaults to it.
fn is_contained(wanted: &Value, actual: &Value) -> bool {
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => {
            wanted.iter().all(|(key, value)| match actual.get(key) {
                Some(actual) => is_contained(value, actual),
                None => value.is_null(),
            })
        }
        (Value::Array(wanted), Value::Array(actual)) => {
            wanted.len() == actual.len()
                && wanted.iter().zip(actual).all(|(wanted, actual)| is_contained(wanted, actual))
        }
        (wanted, actual) => wanted == actual || (wanted.is_null() && actual.is_null()),
    }
}

/// Returns a 128-bit digest of a value. The members of objects are sorted, so their order does not matter.
fn digest(value: &Value) -> [u64; 2] {
    let text = value.to_string();
    [1_u8, 2].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, &text).hash(&mut hasher);
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_contained_in_one_with_additional_fields() {
        let actual = json!({"a": 1, "b": {"c": [{"name": "x", "default": true}], "d": "e"}, "f": null});
        for wanted in
            [json!({}), json!({"a": 1}), json!({"b": {"c": [{"name": "x"}]}}), json!({"f": null, "g": null})]
        {
            assert!(is_contained(&wanted, &actual), "{wanted}");
        }
        for wanted in [
            json!({"a": 2}),
            json!({"a": "1"}),
            json!({"g": 1}),
            json!({"b": {"c": []}}),
            json!({"b": {"c": [{"name": "y"}]}}),
            json!({"b": {"c": [{"name": "x"}, {"name": "y"}]}}),
            json!({"b": null}),
        ] {
            assert!(!is_contained(&wanted, &actual), "{wanted}");
        }
    }

    #[test]
    fn the_least_recently_used_object_is_evicted_first() {
        let mut applied =
            AppliedObjects { objects: BTreeMap::new(), by_use: BTreeMap::new(), next_use: 0, capacity: 2 };
        for key in ["a", "b"] {
            applied.remember(key.to_owned(), [0, 0], None, None);
        }
        assert!(applied.recall("a").is_some());
        applied.remember("c".to_owned(), [0, 0], None, None);
        assert!(
            applied.recall("b").is_none() && applied.recall("a").is_some() && applied.recall("c").is_some()
        );
        assert_eq!((applied.objects.len(), applied.by_use.len()), (2, 2));
    }
}
