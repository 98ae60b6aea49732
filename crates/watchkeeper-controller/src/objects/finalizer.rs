//! Work before an object goes.
//!
//! An object with a finalizer stays, marked as being deleted, until the finalizer is taken away. [`finalize`] keeps that promise for a
//! reconciler:
//!
//! - the finalizer is there before anything is done that would have to be cleaned up;
//! - it is taken away only after the cleanup has succeeded;
//! - finalizers of others are not touched, whatever they do at the same time;
//! - an object that is being deleted and has no such finalizer is nobody's business any more: nothing is done.
//!
//! A cleanup may run more than once, and an apply may be repeated: both must be able to.
//!
//! ```no_run
//! use std::sync::Arc;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::Api;
//! use watchkeeper_controller::objects::finalizer::{Event, finalize};
//!
//! # async fn example(api: Api<ConfigMap>, object: Arc<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
//! finalize(&api, "shop.example.com/cleanup", object, |event| async {
//!     match event {
//!         Event::Apply(object) => println!("make the world like {:?}", object.metadata.name),
//!         Event::Cleanup(object) => println!("undo what was made for {:?}", object.metadata.name),
//!     }
//!     Ok::<_, std::io::Error>(())
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```

use std::{fmt, sync::Arc};

use kube_client::Api;
use kube_core::{
    Resource,
    params::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::write::MaybeConflict as _;

/// What a reconciler is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<K> {
    /// Make the world like the object. The finalizer is there.
    Apply(Arc<K>),
    /// Undo what was made: the object is about to go.
    Cleanup(Arc<K>),
}

/// Why an object was not finalized.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizeError<E: std::error::Error + 'static> {
    /// A finalizer is named `domain/name`.
    #[error("{name:?} is no name of a finalizer; say it as example.com/cleanup")]
    Name {
        /// The name.
        name: String,
    },
    /// The object has no name, uid or version: it was not read from a server.
    #[error(
        "an object that is finalized was read from a server, and this one has no name, uid or resourceVersion"
    )]
    NoIdentity,
    /// The finalizer could not be added. Nothing was applied.
    #[error("finalizer {finalizer} could not be added to {object}: {source}")]
    Add {
        /// The finalizer.
        finalizer: String,
        /// The name of the object.
        object: String,
        /// Why.
        #[source]
        source: Box<kube_client::Error>,
    },
    /// What the reconciler said to [`Event::Apply`].
    #[error(transparent)]
    Apply(E),
    /// What the reconciler said to [`Event::Cleanup`]. The finalizer stays.
    #[error(transparent)]
    Cleanup(E),
    /// The cleanup is done, and the finalizer could not be taken away; the cleanup will run again.
    #[error("finalizer {finalizer} could not be taken from {object}: {source}")]
    Remove {
        /// The finalizer.
        finalizer: String,
        /// The name of the object.
        object: String,
        /// Why.
        #[source]
        source: Box<kube_client::Error>,
    },
}

/// How often taking the finalizer away is tried when others write at the same time.
const REMOVALS: usize = 5;

/// What an object must have to be finalized.
struct Identity {
    name: String,
    uid: String,
}

/// Reconciles an object with a finalizer: adds it if it is missing and applies, or cleans up and takes it away; see the [module](self).
///
/// The answer is the reconciler's, or the default one when there was nothing to do. The `object` may come from a cache: what is written
/// names its version, so that one that is out of date is a conflict, which says to look again.
///
/// # Errors
/// If the finalizer cannot be added or taken away, or the reconciler's own.
pub async fn finalize<K, A, E, F>(
    api: &Api<K>,
    finalizer: &str,
    object: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> F,
) -> Result<A, FinalizeError<E>>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
    A: Default,
    E: std::error::Error + 'static,
    F: Future<Output = Result<A, E>>,
{
    let is_name =
        finalizer.split_once('/').is_some_and(|(domain, name)| !domain.is_empty() && !name.is_empty());
    if !is_name {
        return Err(FinalizeError::Name { name: finalizer.to_owned() });
    }
    let metadata = object.meta();
    let identity =
        metadata.name.clone().zip(metadata.uid.clone()).filter(|_| metadata.resource_version.is_some());
    let (name, uid) = identity.ok_or(FinalizeError::NoIdentity)?;
    let identity = Identity { name, uid };
    match (metadata.deletion_timestamp.is_some(), has(&*object, finalizer)) {
        (false, true) => reconcile(Event::Apply(object)).await.map_err(FinalizeError::Apply),
        (false, false) => {
            let added =
                add(api, &identity, finalizer, &object).await.map_err(|source| FinalizeError::Add {
                    finalizer: finalizer.to_owned(),
                    object: identity.name.clone(),
                    source: Box::new(source),
                })?;
            reconcile(Event::Apply(Arc::new(added))).await.map_err(FinalizeError::Apply)
        }
        (true, true) => {
            let answer =
                reconcile(Event::Cleanup(Arc::clone(&object))).await.map_err(FinalizeError::Cleanup)?;
            let removed = remove(api, &identity, finalizer, object).await;
            removed.map_err(|source| FinalizeError::Remove {
                finalizer: finalizer.to_owned(),
                object: identity.name,
                source: Box::new(source),
            })?;
            Ok(answer)
        }
        (true, false) => Ok(A::default()),
    }
}

fn has<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|other| other == finalizer)
}

/// Sets the finalizers of the very version of the object that is known, and of no other.
fn patch<K: Resource>(identity: &Identity, object: &K, finalizers: &[&String]) -> Patch<Value> {
    let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    Patch::Merge(json!({ "metadata": {
        "uid": identity.uid,
        "resourceVersion": object.meta().resource_version,
        "finalizers": finalizers,
    }}))
}

async fn add<K>(
    api: &Api<K>,
    identity: &Identity,
    finalizer: &str,
    object: &K,
) -> Result<K, kube_client::Error>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    let finalizer = finalizer.to_owned();
    let finalizers: Vec<&String> =
        object.meta().finalizers.iter().flatten().chain(std::iter::once(&finalizer)).collect();
    api.patch(&identity.name, &PatchParams::default(), &patch(identity, object, &finalizers)).await
}

/// Takes the finalizer away. When others write at the same time, what they wrote is read and left as it is.
async fn remove<K>(
    api: &Api<K>,
    identity: &Identity,
    finalizer: &str,
    object: Arc<K>,
) -> Result<(), kube_client::Error>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    let mut object = object;
    let mut tries_left = REMOVALS;
    loop {
        let others = object.meta().finalizers.iter().flatten().filter(|other| *other != finalizer);
        let patch = patch(identity, &*object, &others.collect::<Vec<_>>());
        let error = match api.patch(&identity.name, &PatchParams::default(), &patch).await {
            Ok(_) => return Ok(()),
            // Somebody else has taken it away, and it is gone.
            Err(kube_client::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => error,
        };
        tries_left -= 1;
        if !error.is_conflict() || tries_left == 0 {
            return Err(error);
        }
        match api.get_opt(&identity.name).await? {
            Some(now) if now.meta().uid.as_ref() == Some(&identity.uid) && has(&now, finalizer) => {
                object = Arc::new(now);
            }
            // It is gone, another has its name, or the finalizer is.
            _ => return Ok(()),
        }
    }
}
