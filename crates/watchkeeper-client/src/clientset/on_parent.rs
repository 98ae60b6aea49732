//! Commands to one object, as methods of its client. (`evict` and `scale` are with the resource client itself.)

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    certificates::v1::CertificateSigningRequest,
    core::v1::{Binding, Namespace, Pod, ServiceAccount},
};
use kube_core::{Status, params::PostParams};

use crate::{Error, rest::ResourceClient};

impl ResourceClient<Pod> {
    /// Binds a pod to the node `binding.target` names: what a scheduler does in the end.
    ///
    /// # Errors
    /// When the request fails; a pod that is bound already is a conflict.
    pub async fn bind(&self, name: &str, params: &PostParams, binding: &Binding) -> Result<Status, Error> {
        self.create_subresource(name, "binding", params, binding).await
    }
}

impl ResourceClient<ServiceAccount> {
    /// Makes a token for a service account; it is in the status of what comes back.
    ///
    /// # Errors
    /// When the request fails.
    #[doc(alias = "create_token_request")]
    pub async fn create_token(
        &self,
        name: &str,
        params: &PostParams,
        request: &TokenRequest,
    ) -> Result<TokenRequest, Error> {
        self.create_subresource(name, "token", params, request).await
    }
}

impl ResourceClient<CertificateSigningRequest> {
    /// Approves or denies a request, by the conditions in the status of `request`.
    ///
    /// # Errors
    /// When the request fails.
    #[doc(alias = "get_approval")]
    pub async fn update_approval(
        &self,
        name: &str,
        params: &PostParams,
        request: &CertificateSigningRequest,
    ) -> Result<CertificateSigningRequest, Error> {
        self.update_subresource(name, "approval", params, request).await
    }
}

impl ResourceClient<Namespace> {
    /// Replaces the finalizers in the spec of a namespace; once a deleted namespace has none, it is gone.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn finalize(
        &self,
        name: &str,
        params: &PostParams,
        namespace: &Namespace,
    ) -> Result<Namespace, Error> {
        self.update_subresource(name, "finalize", params, namespace).await
    }
}
