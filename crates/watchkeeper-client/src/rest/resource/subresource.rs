//! Subresources of objects.

use k8s_openapi::api::autoscaling::v1::Scale;
use kube_core::{
    Resource,
    params::{GetParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};

use super::ResourceClient;
use crate::{
    Error,
    rest::{ApiRequest, InvalidRequest, ResourcePath, Verb},
};

/// Subresources of any type; `T` is the type of the response.
impl<K: Resource> ResourceClient<K> {
    fn subresource_path(&self, name: &str, subresource: &str) -> Result<ResourcePath, InvalidRequest> {
        Ok(self.object_path(name)?.subresource(subresource)?)
    }

    /// Returns a subresource of the object called `name`.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails or the response is not a `T`.
    #[doc(alias = "SubResourceClient")]
    #[doc(alias = "get_status")]
    #[doc(alias = "get_ephemeral_containers")]
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        name: &str,
        subresource: &str,
    ) -> Result<T, Error> {
        let request = self
            .subresource_path(name, subresource)
            .and_then(|path| ApiRequest::get(path, &GetParams::default()));
        self.send(Verb::Get, request).await
    }

    /// Creates a subresource, such as an eviction, a binding or a token, and returns the response.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails or the response is not a `T`.
    pub async fn create_subresource<T: DeserializeOwned>(
        &self,
        name: &str,
        subresource: &str,
        params: &PostParams,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let request =
            self.subresource_path(name, subresource).and_then(|path| ApiRequest::create(path, params, body));
        self.send(Verb::Create, request).await
    }

    /// Replaces a subresource and returns the result.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails or the response is not a `T`. A write of another client since
    /// the
    /// `resourceVersion` in `body` is a [conflict](Error::is_conflict).
    pub async fn update_subresource<T: DeserializeOwned>(
        &self,
        name: &str,
        subresource: &str,
        params: &PostParams,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let request =
            self.subresource_path(name, subresource).and_then(|path| ApiRequest::update(path, params, body));
        self.send(Verb::Update, request).await
    }

    /// Patches a subresource and returns the result.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails or the response is not a `T`.
    pub async fn patch_subresource<T: DeserializeOwned, P: Serialize>(
        &self,
        name: &str,
        subresource: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<T, Error> {
        let request =
            self.subresource_path(name, subresource).and_then(|path| ApiRequest::patch(path, params, patch));
        self.send(Verb::Patch, request).await
    }

    /// Returns the `scale` of the object called `name`: its current and its desired number of replicas.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A resource without a `scale` is [not
    /// found](Error::is_not_found).
    #[doc(alias = "get_scale")]
    pub async fn scale(&self, name: &str) -> Result<Scale, Error> {
        self.get_subresource(name, "scale").await
    }

    /// Replaces the `scale` of an object and returns the result.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A write of another client since the `resourceVersion` in
    /// `scale` is a [conflict](Error::is_conflict).
    #[doc(alias = "replace_scale")]
    pub async fn update_scale(&self, name: &str, params: &PostParams, scale: &Scale) -> Result<Scale, Error> {
        self.update_subresource(name, "scale", params, scale).await
    }

    /// Patches the `scale` of an object and returns the result.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails.
    pub async fn patch_scale<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Scale, Error> {
        self.patch_subresource(name, "scale", params, patch).await
    }
}

impl<K: Resource + DeserializeOwned> ResourceClient<K> {
    /// Patches the status of an object and returns the object.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails or the response is not a `K`.
    pub async fn patch_status<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        self.patch_subresource(name, "status", params, patch).await
    }
}
