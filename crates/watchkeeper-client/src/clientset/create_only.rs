//! Kinds that are asked and answered, never stored.

use std::fmt;

use kube_core::{Resource, params::PostParams};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, rest::ResourceClient};

/// The one verb of a kind that is a question: create it, and it comes back answered.
///
/// There is nothing to get, list or watch, and this type makes that a compile error and not a 405.
///
/// ```no_run
/// # async fn example(clientset: watchkeeper_client::clientset::Clientset) -> Result<(), watchkeeper_client::Error> {
/// use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview};
///
/// let mut question = SelfSubjectAccessReview::default();
/// question.spec.resource_attributes = Some(ResourceAttributes {
///     verb: Some("watch".into()),
///     resource: Some("pods".into()),
///     ..ResourceAttributes::default()
/// });
/// let answer = clientset.authorization_v1().self_subject_access_reviews().create(&question).await?;
/// println!("may watch pods: {}", answer.status.is_some_and(|status| status.allowed));
/// # Ok(())
/// # }
/// ```
pub struct CreateOnlyClient<K> {
    client: ResourceClient<K>,
}

impl<K: Resource + Serialize + DeserializeOwned> CreateOnlyClient<K> {
    pub(super) fn new(client: ResourceClient<K>) -> Self {
        Self { client }
    }

    /// Asks the question; the answer is in the status of what comes back.
    ///
    /// # Errors
    /// When the request fails. A question answered with "no" is no error.
    pub async fn create(&self, question: &K) -> Result<K, Error> {
        self.create_with(&PostParams::default(), question).await
    }

    /// Creates the object with parameters; see [`create`](Self::create).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn create_with(&self, params: &PostParams, question: &K) -> Result<K, Error> {
        self.client.create(params, question).await
    }

    #[cfg(test)]
    pub(super) fn resource_client(&self) -> &ResourceClient<K> {
        &self.client
    }
}

impl<K> Clone for CreateOnlyClient<K> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone() }
    }
}

impl<K> fmt::Debug for CreateOnlyClient<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateOnlyClient").field("client", &self.client).finish()
    }
}
