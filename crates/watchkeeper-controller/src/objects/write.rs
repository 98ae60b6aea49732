//! Creating and updating objects.

use std::error::Error;

use kube_core::{Resource, params::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use watchkeeper_client::rest::ToResourceClient;
pub use watchkeeper_client::rest::{ConflictError, Retry, retry_on_conflict};

/// The effect of [`create_or_update`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "OperationResult")]
pub enum Operation {
    /// The object did not exist and was created.
    Created,
    /// The object existed and was changed.
    Updated,
    /// The object existed as wanted. No write was sent.
    Unchanged,
}

/// A failure of [`create_or_update`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateOrUpdateError {
    /// The object has no name.
    #[error(
        "create or update an object without a name; set metadata.name, generateName creates another object each time"
    )]
    NoName,
    /// The change set another name or namespace.
    #[error("create or update {name}: the change set another name or namespace; leave both as they are")]
    Renamed {
        /// The name before the change.
        name: String,
    },
    /// The change failed.
    #[error("create or update {name}: {source}")]
    Change {
        /// The name of the object.
        name: String,
        /// The error of the change.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The request failed. A conflict means that another client wrote the object after it was read.
    #[error("create or update {name}: {source}")]
    Server {
        /// The name of the object.
        name: String,
        /// The error of the request.
        #[source]
        source: Box<watchkeeper_client::Error>,
    },
}

/// Creates or updates an object: reads the object, calls `change` with it, and writes it if `change` changed it. An object that does not
/// exist is created from `initial`, changed by `change`.
///
/// The write names the resourceVersion that was read, so that a write by another client in between is a conflict and not lost. The
/// error of `change` can be a [`ReconcileError`](crate::ReconcileError), whose class is kept, an `anyhow::Error`, or any type that
/// converts into `Box<dyn Error + Send + Sync>`.
///
/// `resource` is a [`Context`](crate::Context), a [`Client`](watchkeeper_client::Client), a
/// [`ResourceClient`](watchkeeper_client::rest::ResourceClient) or kube's [`Api`](watchkeeper_client::kube_client::Api). The first two find the object in
/// the namespace that `initial` carries.
///
/// # Errors
/// Returns a [`CreateOrUpdateError`] if `change` fails, or if a request fails.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use watchkeeper_controller::{Context, ReconcileError, objects::write::create_or_update};
/// # async fn example(context: Context, settings: ConfigMap) -> Result<(), ReconcileError> {
/// let (settings, operation) = create_or_update(&context, settings, |settings| {
///     settings.data.get_or_insert_default().insert("mode".to_owned(), "fast".to_owned());
///     Ok::<_, ReconcileError>(())
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "CreateOrUpdate")]
#[doc(alias = "entry")]
#[doc(alias = "CreateOrPatch")]
pub async fn create_or_update<K, E>(
    resource: &impl ToResourceClient<K>,
    initial: K,
    change: impl FnOnce(&mut K) -> Result<(), E>,
) -> Result<(K, Operation), CreateOrUpdateError>
where
    K: Resource + Clone + PartialEq + Serialize + DeserializeOwned,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let name = initial.meta().name.clone().ok_or(CreateOrUpdateError::NoName)?;
    let failed = |source: watchkeeper_client::Error| CreateOrUpdateError::Server {
        name: name.clone(),
        source: Box::new(source),
    };
    let resource = resource.to_resource_client().namespace_of(&initial);
    let existing = resource.get_opt(&name).await.map_err(failed)?;
    let mut wanted = existing.clone().unwrap_or_else(|| initial.clone());
    change(&mut wanted)
        .map_err(|error| CreateOrUpdateError::Change { name: name.clone(), source: error.into() })?;
    let identity = |object: &K| (object.meta().name.clone(), object.meta().namespace.clone());
    if identity(&wanted) != identity(existing.as_ref().unwrap_or(&initial)) {
        return Err(CreateOrUpdateError::Renamed { name });
    }
    match existing {
        None => {
            let created = resource.create(&PostParams::default(), &wanted).await.map_err(failed)?;
            Ok((created, Operation::Created))
        }
        Some(existing) if existing == wanted => Ok((existing, Operation::Unchanged)),
        Some(_) => {
            let updated = resource.update(&PostParams::default(), &wanted).await.map_err(failed)?;
            Ok((updated, Operation::Updated))
        }
    }
}
