//! Any resource by group, version and resource name.

mod gvr;
mod resource;

pub use gvr::{GroupVersionResource, ParseResourceError};
pub use resource::DynamicResourceClient;

use crate::rest::RestClient;

/// Reads and writes any resource a server has, its type known or not: built-in, custom, or from an aggregated server.
///
/// Objects are kube's `DynamicObject`: metadata as a type, everything else as JSON. A group, a version and a plural
/// name are enough; the kind is in the objects. Where only a kind is known, a
/// [`RestMapper`](crate::discovery::RestMapper) finds the rest. Cheap to clone.
///
/// ```no_run
/// # async fn example(client: watchkeeper_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use kube_core::params::ListParams;
/// use watchkeeper_client::dynamic::{DynamicClient, GroupVersionResource};
///
/// let dynamic = DynamicClient::new(&client);
/// let widgets: GroupVersionResource = "example.com/v1/widgets".parse()?;
/// for widget in dynamic.resource(&widgets).namespace("default").list_all(&ListParams::default()).await?.items {
///     println!("{:?}: {}", widget.metadata.name, widget.data["spec"]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct DynamicClient {
    rest: RestClient,
}

impl DynamicClient {
    /// A dynamic client over `rest`, or over a [`Client`](crate::Client).
    pub fn new(rest: impl Into<RestClient>) -> Self {
        Self { rest: rest.into() }
    }

    /// The client requests go through.
    pub fn rest(&self) -> &RestClient {
        &self.rest
    }

    /// The objects of a resource: of the cluster if they are in no namespace, else of all namespaces. One namespace
    /// is chosen with [`DynamicResourceClient::namespace`].
    pub fn resource(&self, resource: &GroupVersionResource) -> DynamicResourceClient {
        DynamicResourceClient::new(self.rest.clone(), resource)
    }
}
