//! REST mapping that refreshes discovery when a name is not found.

use kube_core::{DynamicObject, GroupVersionKind};

use super::{client::DiscoveryClient, error::MappingError, mapping::RestMapping, model::ServerResources};
use crate::dynamic::GroupVersionResource;

/// A mapper between kinds and resources, based on discovery.
///
/// Lookups use cached discovery. A lookup without a match refreshes discovery once before it fails, because
/// custom resources are often defined after a program has started. A name that does not exist therefore costs
/// a [refresh](DiscoveryClient::refresh) per lookup. Each lookup follows the rules of the method of the same
/// name on [`ServerResources`].
///
/// ```no_run
/// # async fn example(client: watchkeeper_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use watchkeeper_client::discovery::{DiscoveryClient, RestMapper};
///
/// let mapper = RestMapper::new(DiscoveryClient::new(&client));
/// let deployments = mapper.find_resource("deploy").await?;
/// assert_eq!(deployments.resource.to_string(), "apps/v1/deployments");
/// assert_eq!(deployments.kind.kind, "Deployment");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[doc(alias = "DeferredDiscoveryRESTMapper")]
#[doc(alias = "GetRESTMapper")]
#[doc(alias = "NewDiscoveryRESTMapper")]
pub struct RestMapper {
    discovery: DiscoveryClient,
}

impl RestMapper {
    /// Creates a mapper that uses `discovery`.
    #[doc(alias = "NewDynamicRESTMapper")]
    pub fn new(discovery: DiscoveryClient) -> Self {
        Self { discovery }
    }

    /// Returns the underlying discovery client.
    pub fn discovery(&self) -> &DiscoveryClient {
        &self.discovery
    }

    /// Finds a resource by name, as [`ServerResources::find_resource`] does: `pods`, `po`,
    /// `deployments.apps`, `deployments.v1.apps`.
    ///
    /// # Errors
    /// Returns a [`MappingError`] if no single resource matches, or if discovery fails.
    #[doc(alias = "ResourceFor")]
    #[doc(alias = "NewShortcutExpander")]
    pub async fn find_resource(&self, name: &str) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.find_resource(name)).await
    }

    /// Finds a resource by the name of its kind, as [`ServerResources::find_kind`] does: `Deployment`,
    /// `Deployment.apps`, `Deployment.v1.apps`.
    ///
    /// # Errors
    /// Returns a [`MappingError`] if no single resource matches, or if discovery fails.
    pub async fn find_kind(&self, name: &str) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.find_kind(name)).await
    }

    /// Returns the mapping of a resource, as [`ServerResources::mapping_of_resource`] does.
    ///
    /// # Errors
    /// Returns a [`MappingError`] if the server does not serve the resource, or if discovery fails.
    #[doc(alias = "KindFor")]
    pub async fn mapping_of_resource(
        &self,
        name: &GroupVersionResource,
    ) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.mapping_of_resource(name)).await
    }

    /// Returns the mapping of a kind, as [`ServerResources::mapping_of_kind`] does.
    ///
    /// # Errors
    /// Returns a [`MappingError`] if no single resource serves the kind, or if discovery fails.
    #[doc(alias = "GVKForObject")]
    #[doc(alias = "resolve_gvk")]
    pub async fn mapping_of_kind(&self, kind: &GroupVersionKind) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.mapping_of_kind(kind)).await
    }

    /// Returns the mapping of an object by its `apiVersion` and `kind`.
    ///
    /// # Errors
    /// Returns a [`MappingError`]: [`MappingError::Untyped`] if the object has no `apiVersion` and `kind`.
    #[doc(alias = "GroupVersionKindFor")]
    pub async fn mapping_of_object(&self, object: &DynamicObject) -> Result<RestMapping, MappingError> {
        let types = object.types.as_ref().ok_or(MappingError::Untyped)?;
        let kind = GroupVersionKind::try_from(types).map_err(|_| MappingError::Untyped)?;
        self.mapping_of_kind(&kind).await
    }

    async fn look_up(
        &self,
        lookup: impl Fn(&ServerResources) -> Result<RestMapping, MappingError>,
    ) -> Result<RestMapping, MappingError> {
        let Some(known) = self.discovery.cached() else {
            return lookup(&*self.discovery.server_resources().await?);
        };
        match lookup(&known) {
            Err(MappingError::NoMatch { .. }) => lookup(&*self.discovery.refresh().await?),
            mapping => mapping,
        }
    }
}
