//! Cleanup before an object is deleted.
//!
//! An object with a finalizer stays, marked as being deleted, until the finalizer is removed. [`finalize`] maintains a finalizer for a
//! reconciler and guarantees:
//!
//! - the finalizer is added before the first apply;
//! - the finalizer is removed only after the cleanup has succeeded;
//! - finalizers of other controllers are not changed, also when they write at the same time;
//! - an object that is being deleted and does not have the finalizer is ignored.
//!
//! A cleanup can run more than once, and so can an apply: both must be idempotent.
//!
//! ```no_run
//! use std::sync::Arc;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use watchkeeper_controller::{
//!     Action, Context, ReconcileError, Request,
//!     objects::finalizer::{Event, finalize},
//! };
//!
//! async fn reconcile(request: Request<ConfigMap>, context: Context) -> Result<Action, ReconcileError> {
//!     let Some(object) = request.object else { return Ok(Action::done()) };
//!     let action = finalize(&context, "shop.example.com/cleanup", object, |event| async {
//!         match event {
//!             Event::Apply(object) => apply(&object).await,
//!             Event::Cleanup(object) => cleanup(&object).await,
//!         }
//!     });
//!     Ok(action.await?)
//! }
//!
//! async fn apply(object: &ConfigMap) -> Result<Action, ReconcileError> {
//! # drop(object);
//!     // Create the objects that `object` describes.
//!     Ok(Action::done())
//! }
//!
//! async fn cleanup(object: &ConfigMap) -> Result<Action, ReconcileError> {
//! # drop(object);
//!     // Delete the objects that were created for `object`.
//!     Ok(Action::done())
//! }
//! ```
//!
//! # Names of finalizers
//!
//! The API server decides which names are valid. All kinds require a qualified name: an optional DNS subdomain and `/`, then at most 63
//! alphanumeric characters, `-`, `_` and `.`. Most built-in kinds also require the subdomain; custom resources do not. A name with a
//! subdomain, such as `shop.example.com/cleanup`, is valid for every kind and does not collide with the names of other controllers.
//!
//! A rejected name is a programming error: the failure has the class [`Terminal`](crate::ErrorClass::Terminal) and is not retried.

use std::{error::Error, sync::Arc};

use kube_core::{
    Resource,
    params::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use watchkeeper_client::{
    error::ApiReason,
    rest::{ResourceClient, ToResourceClient},
};

use crate::ReconcileError;

/// The task of a reconciler that is called by [`finalize`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<K> {
    /// Make the actual state match the object. The object has the finalizer.
    Apply(Arc<K>),
    /// Clean up after the object, which is being deleted.
    Cleanup(Arc<K>),
}

/// A failure of [`finalize`].
///
/// Converted into a [`ReconcileError`], for example by `?`, a failure keeps the class of its source; [`Identity`](Self::Identity) and
/// [`Name`](Self::Name) are [terminal](crate::ErrorClass::Terminal).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizeError {
    /// The object has no name, uid or resourceVersion.
    #[error("finalize {object}: {source}")]
    Identity {
        /// The object, as `namespace/name`.
        object: String,
        /// A description of the cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server rejected the name of the finalizer. The reconciler was not called.
    #[error("add finalizer {finalizer:?} to {object}: {source}; use a name such as \"example.com/cleanup\"")]
    Name {
        /// The name of the finalizer.
        finalizer: String,
        /// The object, as `namespace/name`.
        object: String,
        /// The response of the server.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The finalizer was not added, for another reason. The reconciler was not called.
    #[error("add finalizer {finalizer:?} to {object}: {source}")]
    Add {
        /// The name of the finalizer.
        finalizer: String,
        /// The object, as `namespace/name`.
        object: String,
        /// The error of the request.
        #[source]
        source: Box<watchkeeper_client::Error>,
    },
    /// The reconciler failed on [`Event::Apply`].
    #[error("apply {object}: {source}")]
    Apply {
        /// The object, as `namespace/name`.
        object: String,
        /// The error of the reconciler.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The reconciler failed on [`Event::Cleanup`]. The object keeps the finalizer.
    #[error("clean up {object}: {source}")]
    Cleanup {
        /// The object, as `namespace/name`.
        object: String,
        /// The error of the reconciler.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The cleanup succeeded and the finalizer was not removed. The cleanup runs again.
    #[error("remove finalizer {finalizer:?} from {object}: {source}")]
    Remove {
        /// The name of the finalizer.
        finalizer: String,
        /// The object, as `namespace/name`.
        object: String,
        /// The error of the request.
        #[source]
        source: Box<watchkeeper_client::Error>,
    },
}

/// The number of attempts to remove a finalizer while other clients write the object.
const REMOVALS: usize = 5;

/// The field that a server names in its rejection of a finalizer.
const FINALIZERS_FIELD: &str = "metadata.finalizers";
/// The reason of a server for not adding any finalizer: the object is being deleted.
const FORBIDDEN: &str = "FieldValueForbidden";

/// The part of the metadata that identifies an object on the server.
struct Identity {
    name: String,
    uid: String,
}

/// Calls `reconcile` for an object with a finalizer: adds a missing finalizer before [`Event::Apply`], and removes it after
/// [`Event::Cleanup`]. See the [module](self) for guarantees and an example.
///
/// Returns the result of `reconcile`, or the default value when there is nothing to do. The error of `reconcile` can be a
/// [`ReconcileError`], whose class is kept, an `anyhow::Error`, or any type that converts into `Box<dyn Error + Send + Sync>`.
///
/// The `object` can come from a cache: writes name its resourceVersion, so that an outdated object is a conflict.
///
/// `resource` is a [`Context`](crate::Context), a [`Client`](watchkeeper_client::Client), a [`ResourceClient`] or kube's
/// [`Api`](watchkeeper_client::kube_client::Api).
///
/// # Errors
/// Returns a [`FinalizeError`] if the finalizer cannot be added or removed, or if `reconcile` fails.
#[doc(alias = "AddFinalizer")]
#[doc(alias = "RemoveFinalizer")]
#[doc(alias = "ContainsFinalizer")]
pub async fn finalize<K, A, E, F>(
    resource: &impl ToResourceClient<K>,
    finalizer: &str,
    object: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> F,
) -> Result<A, FinalizeError>
where
    K: Resource + DeserializeOwned,
    A: Default,
    E: Into<Box<dyn Error + Send + Sync>>,
    F: Future<Output = Result<A, E>>,
{
    let metadata = object.meta();
    let label = match (&metadata.namespace, metadata.name.as_deref().unwrap_or("(no name)")) {
        (Some(namespace), name) => format!("{namespace}/{name}"),
        (None, name) => name.to_owned(),
    };
    let identity =
        metadata.name.clone().zip(metadata.uid.clone()).filter(|_| metadata.resource_version.is_some());
    let Some((name, uid)) = identity else {
        let cause = "the object has no name, uid or resourceVersion; read it from a server or a cache";
        return Err(FinalizeError::Identity {
            object: label,
            source: ReconcileError::terminal(cause).into(),
        });
    };
    let identity = Identity { name, uid };
    let resource = resource.to_resource_client().namespace_of(&object);
    match (metadata.deletion_timestamp.is_some(), has(&*object, finalizer)) {
        (false, true) => apply(reconcile, object, label).await,
        (false, false) => match add(&resource, &identity, finalizer, &object).await {
            Ok(added) => apply(reconcile, Arc::new(added), label).await,
            Err(error) => Err(not_added(finalizer, label, error)),
        },
        (true, true) => {
            let cleaned_up = reconcile(Event::Cleanup(Arc::clone(&object))).await;
            let result = cleaned_up
                .map_err(|error| FinalizeError::Cleanup { object: label.clone(), source: error.into() })?;
            let removed = remove(&resource, &identity, finalizer, object).await;
            removed.map_err(|source| FinalizeError::Remove {
                finalizer: finalizer.to_owned(),
                object: label,
                source: Box::new(source),
            })?;
            Ok(result)
        }
        (true, false) => Ok(A::default()),
    }
}

async fn apply<K, A, E, F>(
    reconcile: impl FnOnce(Event<K>) -> F,
    object: Arc<K>,
    label: String,
) -> Result<A, FinalizeError>
where
    E: Into<Box<dyn Error + Send + Sync>>,
    F: Future<Output = Result<A, E>>,
{
    let applied = reconcile(Event::Apply(object)).await;
    applied.map_err(|error| FinalizeError::Apply { object: label, source: error.into() })
}

fn not_added(finalizer: &str, object: String, error: watchkeeper_client::Error) -> FinalizeError {
    let finalizer = finalizer.to_owned();
    if is_name_rejected(&error) {
        FinalizeError::Name { finalizer, object, source: ReconcileError::terminal(error).into() }
    } else {
        FinalizeError::Add { finalizer, object, source: Box::new(error) }
    }
}

/// Returns whether the server rejected the finalizers, and not the object for another reason.
fn is_name_rejected(error: &watchkeeper_client::Error) -> bool {
    let Some(status) = error.status() else { return false };
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    ApiReason::of(status) == ApiReason::Invalid
        && causes.iter().any(|cause| cause.field.starts_with(FINALIZERS_FIELD) && cause.reason != FORBIDDEN)
}

fn has<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|other| other == finalizer)
}

/// Builds a patch that sets the finalizers of this version of the object only.
fn patch<K: Resource>(identity: &Identity, object: &K, finalizers: &[&String]) -> Patch<Value> {
    let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    Patch::Merge(json!({ "metadata": {
        "uid": identity.uid,
        "resourceVersion": object.meta().resource_version,
        "finalizers": finalizers,
    }}))
}

async fn add<K>(
    resource: &ResourceClient<K>,
    identity: &Identity,
    finalizer: &str,
    object: &K,
) -> Result<K, watchkeeper_client::Error>
where
    K: Resource + DeserializeOwned,
{
    let finalizer = finalizer.to_owned();
    let finalizers: Vec<&String> =
        object.meta().finalizers.iter().flatten().chain(std::iter::once(&finalizer)).collect();
    resource.patch(&identity.name, &PatchParams::default(), &patch(identity, object, &finalizers)).await
}

/// Removes the finalizer. After a conflict the object is read again, so that the writes of other clients are kept.
async fn remove<K>(
    resource: &ResourceClient<K>,
    identity: &Identity,
    finalizer: &str,
    object: Arc<K>,
) -> Result<(), watchkeeper_client::Error>
where
    K: Resource + DeserializeOwned,
{
    let mut object = object;
    let mut tries_left = REMOVALS;
    loop {
        let others = object.meta().finalizers.iter().flatten().filter(|other| *other != finalizer);
        let patch = patch(identity, &*object, &others.collect::<Vec<_>>());
        let error = match resource.patch(&identity.name, &PatchParams::default(), &patch).await {
            Ok(_) => return Ok(()),
            // Another client removed the last finalizer, so the object was deleted.
            Err(error) if error.is_object_not_found() => return Ok(()),
            Err(error) => error,
        };
        tries_left -= 1;
        if !error.is_conflict() || tries_left == 0 {
            return Err(error);
        }
        match resource.get_opt(&identity.name).await? {
            Some(now) if now.meta().uid.as_ref() == Some(&identity.uid) && has(&now, finalizer) => {
                object = Arc::new(now);
            }
            // The object or the finalizer is gone, or the name belongs to a new object.
            _ => return Ok(()),
        }
    }
}
