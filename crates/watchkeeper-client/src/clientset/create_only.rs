//! Kinds that can only be created, such as reviews.

use std::fmt;

use kube_core::{Resource, params::PostParams};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, rest::ResourceClient};

/// A client of a kind that can only be created, such as a review. The server returns the result in the status.
///
/// The server does not store such objects. Getting, listing or watching them does not compile.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), watchkeeper_client::Error> {
/// # let server = watchkeeper_apiserver::ApiServer::in_process();
/// # let clientset = watchkeeper_client::Client::from(server.client()).clientset();
/// use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview};
///
/// let mut review = SelfSubjectAccessReview::default();
/// review.spec.resource_attributes = Some(ResourceAttributes {
///     verb: Some("watch".into()),
///     resource: Some("pods".into()),
///     ..ResourceAttributes::default()
/// });
/// let reviewed = clientset.authorization_v1().self_subject_access_reviews().create(&review).await?;
/// assert!(reviewed.status.is_some_and(|status| status.allowed));
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

    /// Creates the object and returns it with the result in its status.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A negative result is not an error.
    pub async fn create(&self, object: &K) -> Result<K, Error> {
        self.create_with(&PostParams::default(), object).await
    }

    /// Creates the object with parameters; see [`create`](Self::create).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn create_with(&self, params: &PostParams, object: &K) -> Result<K, Error> {
        self.client.create(params, object).await
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
