//! Accessors of every built-in group, version and resource, by client-go's names.
//!
//! The accessors return the same [`ResourceClient`]s as [`Client::resource`].
//!
//! # Kinds without a full client
//!
//! - Reviews (`TokenReview`, `SelfSubjectAccessReview` and similar) can only be created. The result is in the status of
//!   the returned object. Their accessors return a [`CreateOnlyClient`].
//! - `Eviction`, `Binding`, `TokenRequest` and `Scale` are subresources of an object, and methods of its client:
//!   `pods.evict`, `pods.bind`, `service_accounts.create_token` and, for every type, `scale`.
//!
//! # Code generation
//!
//! `cargo xtask clientset` reads the sources of k8s-openapi for every Kubernetes version that it supports, and writes a
//! table of group-versions and resources with the versions that have them. Macros expand the rows to accessors. The
//! Kubernetes version that k8s-openapi is built for determines the rows of a build.

mod built_in;
mod create_only;
mod generated;
mod on_parent;

pub use built_in::*;
pub use create_only::CreateOnlyClient;

use crate::Client;
#[cfg(doc)]
use crate::rest::ResourceClient;

/// Typed clients of all resources that are built into Kubernetes, by group, version and resource.
///
/// The names are client-go's: `clientset.core_v1().pods("default")`, `clientset.apps_v1().deployments("web")`. Accessors
/// send no request. [`Client::resource`] covers custom types too. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), watchkeeper_client::Error> {
/// # let server = watchkeeper_apiserver::ApiServer::in_process();
/// # let client = watchkeeper_client::Client::from(server.client());
/// use kube_core::params::ListParams;
///
/// let clientset = client.clientset();
/// let pods = clientset.core_v1().pods("default").list(&ListParams::default()).await?;
/// let nodes = clientset.core_v1().nodes().list_all(&ListParams::default()).await?;
/// let deployments = clientset.apps_v1().deployments_in_all_namespaces().list_all(&ListParams::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Clientset {
    client: Client,
}

impl Clientset {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone() }
    }
}
