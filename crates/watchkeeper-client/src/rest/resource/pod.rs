//! Verbs of pods.

use k8s_openapi::api::core::v1::Pod;
use kube_core::{
    Status,
    params::GetParams,
    subresource::{EvictParams, LogParams},
};
use serde_json::json;

use super::ResourceClient;
use crate::{
    Error,
    rest::{ApiRequest, ByteStream, Verb},
};

impl ResourceClient<Pod> {
    /// Evicts a pod, if its disruption budgets allow that.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A disruption budget that does not allow the eviction is a 429, with the wait that
    /// the server requests in [`Error::retry_after`].
    pub async fn evict(&self, name: &str, params: &EvictParams) -> Result<Status, Error> {
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": name },
            "deleteOptions": params.delete_options,
        });
        self.create_subresource(name, "eviction", &params.post_options, &eviction).await
    }

    /// Returns the log of a pod as a stream. A followed log has no idle deadline.
    ///
    /// # Errors
    /// Returns [`Error`] if the log cannot be opened. A later failure is the last item of the stream.
    #[doc(alias = "logs")]
    pub async fn log(&self, name: &str, params: &LogParams) -> Result<ByteStream, Error> {
        let request = self
            .object_path(name)
            .and_then(|path| Ok(path.subresource("log")?))
            .and_then(|path| ApiRequest::get(path, &GetParams::default()))
            .and_then(|request| request.with_params(params))
            .and_then(|request| request.with_header("accept", "*/*"));
        let mut sending = self.sending(Verb::Get, request)?;
        if params.follow {
            sending = sending.idle_deadline(None);
        }
        sending.stream().await
    }
}
