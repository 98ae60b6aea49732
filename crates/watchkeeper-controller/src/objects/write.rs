//! Read, change, write.

use std::error::Error;

use kube_client::Api;
use kube_core::{Resource, params::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use watchkeeper_client::rest::Retry;

use crate::time::Time;

/// An error that may mean that somebody else wrote first.
pub trait MaybeConflict {
    /// Somebody else wrote first.
    fn is_conflict(&self) -> bool;
}

impl MaybeConflict for kube_client::Error {
    fn is_conflict(&self) -> bool {
        // Of the two that are told by 409, the other is that the object exists already.
        matches!(self, Self::Api(status) if status.code == 409 && status.reason != "AlreadyExists")
    }
}

impl MaybeConflict for watchkeeper_client::Error {
    fn is_conflict(&self) -> bool {
        Self::is_conflict(self)
    }
}

/// Runs `operation` again as long as it fails because somebody else wrote first; [`Retry::conflicts`] is client-go's default.
///
/// The operation reads the object anew each time, changes that, and writes it. In a reconciler, returning the conflict is usually better: the
/// key comes back when the cache has seen the other write.
///
/// # Errors
/// Any other error, and the conflict of the last attempt.
pub async fn retry_on_conflict<T, E, F, Fut>(time: &Time, policy: &Retry, mut operation: F) -> Result<T, E>
where
    E: MaybeConflict,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut backoff = policy.backoff();
    loop {
        let error = match operation().await {
            Err(error) if error.is_conflict() => error,
            result => return result,
        };
        match backoff.next_wait(None) {
            Some(wait) => time.sleep(wait).await,
            None => return Err(error),
        }
    }
}

/// What [`create_or_update`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// The object was not there.
    Created,
    /// It was there, and was another.
    Updated,
    /// It was there, and as it should be: nothing was written.
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
        source: Box<kube_client::Error>,
    },
}

/// Creates or updates an object: reads the object, calls `change` with it, and writes it if `change` changed it. An object that does not
/// exist is created from `initial`, changed by `change`.
///
/// The write names the resourceVersion that was read, so that a write by another client in between is a conflict and not lost. The
/// error of `change` can be a [`ReconcileError`](crate::ReconcileError), whose class is kept, an `anyhow::Error`, or any type that
/// converts into `Box<dyn Error + Send + Sync>`.
///
/// # Errors
/// When `change` fails, and when a request fails. See [`CreateOrUpdateError`].
#[doc(alias = "CreateOrUpdate")]
pub async fn create_or_update<K, E>(
    api: &Api<K>,
    initial: K,
    change: impl FnOnce(&mut K) -> Result<(), E>,
) -> Result<(K, Operation), CreateOrUpdateError>
where
    K: Resource + Clone + PartialEq + Serialize + DeserializeOwned + std::fmt::Debug,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let name = initial.meta().name.clone().ok_or(CreateOrUpdateError::NoName)?;
    let failed = |source: kube_client::Error| CreateOrUpdateError::Server {
        name: name.clone(),
        source: Box::new(source),
    };
    let there = api.get_opt(&name).await.map_err(failed)?;
    let mut wanted = there.clone().unwrap_or_else(|| initial.clone());
    change(&mut wanted)
        .map_err(|error| CreateOrUpdateError::Change { name: name.clone(), source: error.into() })?;
    let identity = |object: &K| (object.meta().name.clone(), object.meta().namespace.clone());
    if identity(&wanted) != identity(there.as_ref().unwrap_or(&initial)) {
        return Err(CreateOrUpdateError::Renamed { name });
    }
    match there {
        None => {
            let created = api.create(&PostParams::default(), &wanted).await.map_err(failed)?;
            Ok((created, Operation::Created))
        }
        Some(there) if there == wanted => Ok((there, Operation::Unchanged)),
        Some(_) => {
            let updated = api.replace(&name, &PostParams::default(), &wanted).await.map_err(failed)?;
            Ok((updated, Operation::Updated))
        }
    }
}
