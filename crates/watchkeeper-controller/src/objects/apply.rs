//! Server-side apply that sends nothing when nothing would change.
//!
//! Applying the same again does no harm, and costs a request each time a key is reconciled. An [`Applier`] knows what it applied last, and
//! skips the request when two things hold:
//!
//! - what is to be applied is what this process applied to this very object last, so no field is to be taken away;
//! - the object in the cache is the version that apply made, or has every field that is to be applied, so nobody has changed one.
//!
//! What this does not see: somebody who takes a field from this manager without changing its value, which is found when the value
//! changes; and another process that applies other fields under the same manager's name. After a start, each object is applied once.
//! When the server writes a value differently from how it is applied (`1000m` as `1`) the second rule rests on the version alone, and a change of anything
//! else about the object sends the apply again.
//!
//! An apply that was sent and changed nothing is told apart by the version it came back with ([`Applied::Unchanged`]).

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

/// Objects an applier remembers, unless said otherwise. Some 200 bytes each.
const REMEMBERED: usize = 10_000;

/// What became of an apply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Applied<K> {
    /// Nothing was sent: the object is as it should be.
    Skipped,
    /// The server had nothing to change.
    Unchanged(K),
    /// The object is another now, or new.
    Changed(K),
}

/// Why something was not applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The object has no name.
    #[error("an object that is applied has a name")]
    NoName,
    /// The object cannot be written as JSON.
    #[error("{name} cannot be written as JSON: {source}")]
    Encode {
        /// The name of the object.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The server did not do it.
    #[error("{name} could not be applied: {source}")]
    Server {
        /// The name of the object.
        name: String,
        /// Why.
        #[source]
        source: Box<watchkeeper_client::Error>,
    },
}

/// Applies objects for one field manager. Share one; it remembers what it applied.
#[derive(Debug)]
pub struct Applier {
    params: PatchParams,
    memory: Mutex<Memory>,
}

#[derive(Debug)]
struct Memory {
    objects: BTreeMap<String, Remembered>,
    /// The names in the order of their last use.
    by_use: BTreeMap<u64, String>,
    next_use: u64,
    capacity: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Remembered {
    digest: [u64; 2],
    uid: Option<String>,
    resource_version: Option<String>,
    last_use: u64,
}

impl Applier {
    /// An applier for a field manager: the name of the controller, the same in every version of it. It takes fields from other managers, as
    /// controllers should; see [`yielding`](Self::yielding).
    pub fn new(field_manager: impl Into<String>) -> Self {
        let params =
            PatchParams { field_manager: Some(field_manager.into()), force: true, ..PatchParams::default() };
        let memory =
            Memory { objects: BTreeMap::new(), by_use: BTreeMap::new(), next_use: 0, capacity: REMEMBERED };
        Self { params, memory: Mutex::new(memory) }
    }

    /// A field that another manager has is a conflict, instead of being taken.
    #[must_use]
    pub fn yielding(mut self) -> Self {
        self.params.force = false;
        self
    }

    /// Remembers so many objects, those used last; 10,000 unless said otherwise. One that was forgotten is applied once more.
    #[must_use]
    pub fn remembering(self, objects: usize) -> Self {
        self.memory.lock().capacity = objects;
        self
    }

    /// Applies an object: the fields that are set in it get the values they have there. `cached` is the object as read from a cache; without
    /// it the request is always sent.
    ///
    /// `resource` is a [`Context`](crate::Context), a [`Client`](watchkeeper_client::Client), a
    /// [`ResourceClient`](watchkeeper_client::rest::ResourceClient) or kube's [`Api`](kube_client::Api). The first two apply in the
    /// namespace that `object` carries.
    ///
    /// # Errors
    /// When the object has no name or cannot be encoded, and when the request fails. See [`ApplyError`].
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use watchkeeper_controller::{Context, ReconcileError, objects::apply::Applier};
    /// # async fn example(context: Context, applier: Applier, wanted: ConfigMap) -> Result<(), ReconcileError> {
    /// let cached = context.lister::<ConfigMap>()?.namespace("default").get("settings").ok();
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

    /// Applies the status of an object that exists; see [`apply`](Self::apply).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
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
            && let Some(last) = self.memory.lock().recall(&key)
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
        self.memory.lock().remember(key, digest, uid, resource_version);
        Ok(if is_same { Applied::Unchanged(applied) } else { Applied::Changed(applied) })
    }
}

impl Memory {
    fn recall(&mut self, key: &str) -> Option<Remembered> {
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
        let remembered = Remembered { digest, uid, resource_version, last_use };
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

/// Every field of `wanted` is in `there`, with the same value. Lists are the same when they are as long and each element is contained in
/// its counterpart: elements may have been given defaults, and lists that others add to are sent.
fn is_contained(wanted: &Value, there: &Value) -> bool {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => {
            wanted.iter().all(|(key, value)| match there.get(key) {
                Some(there) => is_contained(value, there),
                None => is_nothing(value),
            })
        }
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len()
                && wanted.iter().zip(there).all(|(wanted, there)| is_contained(wanted, there))
        }
        (wanted, there) => wanted == there || (is_nothing(wanted) && is_nothing(there)),
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null()
}

/// 128 bits of a value, the same in every process: members are sorted.
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
    fn what_is_wanted_may_be_there_among_other_things() {
        let there = json!({"a": 1, "b": {"c": [{"name": "x", "default": true}], "d": "e"}, "f": null});
        for wanted in
            [json!({}), json!({"a": 1}), json!({"b": {"c": [{"name": "x"}]}}), json!({"f": null, "g": null})]
        {
            assert!(is_contained(&wanted, &there), "{wanted}");
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
            assert!(!is_contained(&wanted, &there), "{wanted}");
        }
    }

    #[test]
    fn the_object_used_longest_ago_is_forgotten_first() {
        let mut memory =
            Memory { objects: BTreeMap::new(), by_use: BTreeMap::new(), next_use: 0, capacity: 2 };
        for key in ["a", "b"] {
            memory.remember(key.to_owned(), [0, 0], None, None);
        }
        assert!(memory.recall("a").is_some());
        memory.remember("c".to_owned(), [0, 0], None, None);
        assert!(memory.recall("b").is_none() && memory.recall("a").is_some() && memory.recall("c").is_some());
        assert_eq!((memory.objects.len(), memory.by_use.len()), (2, 2));
    }
}
