//! Every built-in group and version, generated.
//!
//! # Which client to choose
//!
//! | you have | use |
//! |---|---|
//! | a built-in type, or one with `#[derive(CustomResource)]` | [`Clientset`] |
//! | a group, version and resource name, known only when the program runs | [`DynamicClient`](crate::dynamic::DynamicClient) |
//! | a question about what the server serves | [`DiscoveryClient`](crate::discovery::DiscoveryClient) |
//! | a path no other client knows, or bytes to read yourself | [`RestClient`] |
//!
//! All four send through the same [`Client`](crate::Client), and the first two give the same verbs.
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
use kube_core::{ClusterResourceScope, NamespaceResourceScope, Resource};

use crate::rest::{ResourceClient, RestClient};

/// Typed clients for everything that is built into Kubernetes, by group, version and resource.
///
/// The names are client-go's: `clientset.core_v1().pods("default")`, `clientset.apps_v1().deployments("web")`. An
/// accessor costs no request. Types with `#[derive(CustomResource)]` get the same with
/// [`resource`](Self::resource) and [`cluster_resource`](Self::cluster_resource). Cheap to clone.
///
/// ```no_run
/// # async fn example(client: watchkeeper_client::Client) -> Result<(), watchkeeper_client::Error> {
/// use kube_core::params::ListParams;
/// use watchkeeper_client::clientset::Clientset;
///
/// let clientset = Clientset::new(&client);
/// let pods = clientset.core_v1().pods("default").list(&ListParams::default()).await?;
/// let nodes = clientset.core_v1().nodes().list_all(&ListParams::default()).await?;
/// let deployments = clientset.apps_v1().deployments_in_all_namespaces().list_all(&ListParams::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Clientset {
    rest: RestClient,
}

impl Clientset {
    /// A clientset over `rest`, or over a [`Client`](crate::Client).
    pub fn new(rest: impl Into<RestClient>) -> Self {
        Self { rest: rest.into() }
    }

    /// The client requests go through.
    pub fn rest(&self) -> &RestClient {
        &self.rest
    }

    /// The objects of any namespaced type, in one namespace: of a `#[derive(CustomResource)]` type, or only their
    /// metadata with kube's `PartialObjectMeta<K>`.
    pub fn resource<K>(&self, namespace: &str) -> ResourceClient<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        ResourceClient::namespaced(self.rest.clone(), namespace)
    }

    /// The objects of any namespaced type, in all namespaces.
    pub fn resource_in_all_namespaces<K>(&self) -> ResourceClient<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        ResourceClient::all(self.rest.clone())
    }

    /// The objects of any type that is in no namespace.
    pub fn cluster_resource<K>(&self) -> ResourceClient<K>
    where
        K: Resource<Scope = ClusterResourceScope>,
        K::DynamicType: Default,
    {
        ResourceClient::cluster(self.rest.clone())
    }
}
