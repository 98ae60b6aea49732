//! Every built-in group and version, generated.
//!
//! The accessors return the same [`ResourceClient`]s as [`Client::resource`], by client-go's names instead of by Rust types.
//!
//! # What has no accessor
//!
//! Some kinds are questions or commands and are never stored:
//!
//! - Reviews (`TokenReview`, `SelfSubjectAccessReview` and their like) can only be created; the answer is in the
//!   status of what comes back. Their accessors give a [`CreateOnlyClient`], which has that one verb.
//! - `Eviction`, `Binding`, `TokenRequest` and `Scale` are commands to one object, so they are methods of its
//!   client: `pods.evict`, `pods.bind`, `service_accounts.create_token` and, for every type, `scale`.
//!
//! # How it is made
//!
//! `cargo xtask clientset` reads the sources of k8s-openapi, for every version of Kubernetes it has types for, and
//! writes a table of group-versions and resources, each with the versions that have it; macros here turn the rows
//! into accessors. Which rows a build has depends on the version feature of k8s-openapi it was built with.

mod built_in;
mod create_only;
mod generated;
mod on_parent;

pub use built_in::*;
pub use create_only::CreateOnlyClient;

use crate::Client;
#[cfg(doc)]
use crate::rest::ResourceClient;

/// Typed clients for everything that is built into Kubernetes, by group, version and resource.
///
/// The names are client-go's: `clientset.core_v1().pods("default")`, `clientset.apps_v1().deployments("web")`. Accessors
/// send no request. [`Client::resource`] covers custom types too. Cheap to clone.
///
/// ```no_run
/// # async fn example(client: watchkeeper_client::Client) -> Result<(), watchkeeper_client::Error> {
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
