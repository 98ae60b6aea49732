//! Conversions from and to kube's `Api`.

use kube_client::Api;
use kube_core::Resource;

use super::{KnownScope, KnownType, ResourceClient};
use crate::{
    Client,
    rest::{InvalidRequest, PathError, ResourcePath},
};

/// A client of the objects of type `K`: a [`ResourceClient`], kube's [`Api`], or a [`Client`].
///
/// Functions with such a parameter accept each of them. With a [`Client`], they use the namespace of the object.
pub trait ToResourceClient<K: Resource> {
    /// Returns a client for the objects of type `K`.
    fn to_resource_client(&self) -> ResourceClient<K>;
}

impl<K: Resource> ToResourceClient<K> for ResourceClient<K> {
    fn to_resource_client(&self) -> ResourceClient<K> {
        self.clone()
    }
}

impl<K: Resource<Scope: KnownScope> + Clone> ToResourceClient<K> for Api<K> {
    fn to_resource_client(&self) -> ResourceClient<K> {
        self.clone().into()
    }
}

impl<K> ToResourceClient<K> for Client
where
    K: Resource<Scope: KnownScope>,
    K::DynamicType: Default,
{
    fn to_resource_client(&self) -> ResourceClient<K> {
        self.resource()
    }
}

/// The result has the settings of the [`Client`] that the client of the `Api` was converted from.
impl<K: Resource<Scope: KnownScope>> From<Api<K>> for ResourceClient<K> {
    fn from(api: Api<K>) -> Self {
        let collection: Result<ResourcePath, PathError> = api.resource_url().parse();
        // The kind is inside the `Api` and cannot be read.
        Self::at(&api.into_client().into(), collection.map_err(InvalidRequest::from), "")
    }
}

/// The limits and deadlines of the [`Client`] apply to the requests of the `Api`. Fails if the namespace or another part of
/// the resource cannot be part of a path.
impl<K> TryFrom<ResourceClient<K>> for Api<K>
where
    K: Resource<Scope: KnownScope, DynamicType: KnownType>,
{
    type Error = InvalidRequest;

    fn try_from(resource: ResourceClient<K>) -> Result<Self, InvalidRequest> {
        let path = resource.path()?;
        let everywhere =
            Self::all_with(resource.client().kube(), &K::DynamicType::at(&path, resource.kind()));
        Ok(match path.namespace() {
            Some(namespace) => K::Scope::constrain(everywhere, namespace),
            None => everywhere,
        })
    }
}
