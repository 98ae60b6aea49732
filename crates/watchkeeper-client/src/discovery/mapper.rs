//! Mapping that notices when the server has learnt something new.

use kube_core::{DynamicObject, GroupVersionKind};

use super::{client::DiscoveryClient, error::MappingError, mapping::RestMapping, model::ServerResources};
use crate::dynamic::GroupVersionResource;

/// Maps kinds to resources and back, by what the server says it serves.
///
/// Lookups are answered from memory. One that finds nothing there asks the server once more before it says so,
/// because custom resources are often defined after a program has started; so a name nobody serves costs a
/// [refresh](DiscoveryClient::refresh) each time it is looked up. The rules of each lookup are those of the
/// method of the same name on [`ServerResources`].
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
pub struct RestMapper {
    discovery: DiscoveryClient,
}

impl RestMapper {
    /// A mapper over what `discovery` knows.
    pub fn new(discovery: DiscoveryClient) -> Self {
        Self { discovery }
    }

    /// The discovery client underneath.
    pub fn discovery(&self) -> &DiscoveryClient {
        &self.discovery
    }

    /// As [`ServerResources::find_resource`]: `pods`, `po`, `deployments.apps`, `deployments.v1.apps`.
    ///
    /// # Errors
    /// [`MappingError`], also when discovery fails.
    pub async fn find_resource(&self, name: &str) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.find_resource(name)).await
    }

    /// As [`ServerResources::find_kind`]: `Deployment`, `Deployment.apps`, `Deployment.v1.apps`.
    ///
    /// # Errors
    /// [`MappingError`], also when discovery fails.
    pub async fn find_kind(&self, name: &str) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.find_kind(name)).await
    }

    /// As [`ServerResources::mapping_of_resource`].
    ///
    /// # Errors
    /// [`MappingError`], also when discovery fails.
    pub async fn mapping_of_resource(
        &self,
        name: &GroupVersionResource,
    ) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.mapping_of_resource(name)).await
    }

    /// As [`ServerResources::mapping_of_kind`].
    ///
    /// # Errors
    /// [`MappingError`], also when discovery fails.
    pub async fn mapping_of_kind(&self, kind: &GroupVersionKind) -> Result<RestMapping, MappingError> {
        self.look_up(|served| served.mapping_of_kind(kind)).await
    }

    /// Where an object belongs, by the `apiVersion` and `kind` it carries.
    ///
    /// # Errors
    /// [`MappingError`]; [`MappingError::Untyped`] when the object does not say what it is.
    pub async fn mapping_of_object(&self, object: &DynamicObject) -> Result<RestMapping, MappingError> {
        let types = object.types.as_ref().ok_or(MappingError::Untyped)?;
        let kind = GroupVersionKind::try_from(types).map_err(|_| MappingError::Untyped)?;
        self.mapping_of_kind(&kind).await
    }

    async fn look_up(
        &self,
        question: impl Fn(&ServerResources) -> Result<RestMapping, MappingError>,
    ) -> Result<RestMapping, MappingError> {
        let Some(known) = self.discovery.cached() else {
            return question(&*self.discovery.server_resources().await?);
        };
        match question(&known) {
            Err(MappingError::NoMatch { .. }) => question(&*self.discovery.refresh().await?),
            answer => answer,
        }
    }
}
