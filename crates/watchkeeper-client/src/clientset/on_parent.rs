//! Subresources of one type, as methods of its client. (`evict` and `scale` are in the `rest` module.)

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    certificates::v1::CertificateSigningRequest,
    core::v1::{Binding, Namespace, Pod, ServiceAccount},
};
use kube_core::{Status, params::PostParams};

use crate::{Error, rest::ResourceClient};

impl ResourceClient<Pod> {
    /// Binds a pod to the node that `binding.target` names, as a scheduler does.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A pod that is already bound is a
    /// [conflict](Error::is_conflict).
    pub async fn bind(&self, name: &str, params: &PostParams, binding: &Binding) -> Result<Status, Error> {
        self.create_subresource(name, "binding", params, binding).await
    }
}

impl ResourceClient<ServiceAccount> {
    /// Creates a token of a service account and returns it in the status.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails.
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
    /// Approves or denies a certificate signing request by the conditions in its status.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails.
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
    /// Replaces the finalizers in the spec of a namespace. A deleted namespace without finalizers is removed.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails.
    pub async fn finalize(
        &self,
        name: &str,
        params: &PostParams,
        namespace: &Namespace,
    ) -> Result<Namespace, Error> {
        self.update_subresource(name, "finalize", params, namespace).await
    }
}
