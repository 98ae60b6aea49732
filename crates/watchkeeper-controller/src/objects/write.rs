//! Read, change, write.

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

/// Why [`create_or_update`] did not do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateOrUpdateError<E: std::error::Error + 'static> {
    /// The object has no name.
    #[error("an object that is created or updated has a name; generateName makes another each time")]
    NoName,
    /// The change gave it another name or namespace.
    #[error("{name}: the change gave the object another name or namespace")]
    Renamed {
        /// The name it had.
        name: String,
    },
    /// The change failed.
    #[error(transparent)]
    Change(E),
    /// The server did not do it. A conflict among others, if somebody wrote in between.
    #[error("{name}: {source}")]
    Server {
        /// The name of the object.
        name: String,
        /// Why.
        #[source]
        source: Box<kube_client::Error>,
    },
}

/// Makes an object be as `change` makes it: reads it, changes that, and writes it if that changed anything; or changes `initial` and creates that.
///
/// The write names the version that was read, so that what others write in between is not undone: it is a conflict.
///
/// # Errors
/// If the change fails, or the server refuses.
pub async fn create_or_update<K, E>(
    api: &Api<K>,
    initial: K,
    change: impl FnOnce(&mut K) -> Result<(), E>,
) -> Result<(K, Operation), CreateOrUpdateError<E>>
where
    K: Resource + Clone + PartialEq + Serialize + DeserializeOwned + std::fmt::Debug,
    E: std::error::Error + 'static,
{
    let name = initial.meta().name.clone().ok_or(CreateOrUpdateError::NoName)?;
    let failed = |source: kube_client::Error| CreateOrUpdateError::Server {
        name: name.clone(),
        source: Box::new(source),
    };
    let there = api.get_opt(&name).await.map_err(failed)?;
    let mut wanted = there.clone().unwrap_or_else(|| initial.clone());
    change(&mut wanted).map_err(CreateOrUpdateError::Change)?;
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
