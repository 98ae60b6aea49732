//! The verbs of one type.

mod list;
mod pod;
mod subresource;
mod verbs;

use std::{borrow::Cow, fmt, marker::PhantomData};

use kube_core::{
    ClusterResourceScope, DynamicResourceScope, NamespaceResourceScope, Resource,
    params::{ListParams, WatchParams},
};
use serde::de::DeserializeOwned;

pub use verbs::Deletion;

use super::{InvalidRequest, PathError, Request, RequestBuilder, ResourcePath, RestClient, Verb};
use crate::Error;

/// The verbs of one resource type, in one namespace, in all of them, or in the cluster.
///
/// Works with every type that implements kube's [`Resource`]: those of `k8s_openapi`, those made by
/// `#[derive(CustomResource)]`, `DynamicObject`, and `PartialObjectMeta<K>`, for which only metadata is asked. Which
/// constructor fits is decided by the type's scope: asking for the namespaced pods of a cluster-wide type does not
/// compile. Reading and writing single objects needs a namespace for namespaced types; on a client for all
/// namespaces an object's own namespace is used, and verbs that have only a name are refused.
///
/// Everything [`RestClient`] promises holds for each verb. Cheap to clone.
///
/// ```
/// # use watchkeeper_client::{Client, rest::ResourceClient};
/// # use k8s_openapi::api::core::v1::{Node, Pod};
/// # fn example(client: &Client) {
/// let everywhere = ResourceClient::<Pod>::all(client);
/// let here = ResourceClient::<Pod>::namespaced(client, "default");
/// let nodes = ResourceClient::<Node>::cluster(client);
/// # }
/// ```
///
/// ```compile_fail
/// # use watchkeeper_client::{Client, rest::ResourceClient};
/// # use k8s_openapi::api::core::v1::Node;
/// # fn example(client: &Client) {
/// let nodes = ResourceClient::<Node>::namespaced(client, "default"); // nodes are in no namespace
/// # }
/// ```
pub struct ResourceClient<K> {
    rest: RestClient,
    /// Refused when the first request is made, so that constructors do not fail.
    collection: Result<ResourcePath, PathError>,
    reach: Reach,
    resource: PhantomData<fn() -> K>,
}

/// Where the objects of a client are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Cluster,
    OneNamespace,
    AllNamespaces,
}

impl<K: Resource> ResourceClient<K> {
    fn new(
        rest: impl Into<RestClient>,
        dynamic_type: &K::DynamicType,
        reach: Reach,
        namespace: Option<&str>,
    ) -> Self {
        let owned = |part: Cow<'_, str>| part.into_owned();
        let path = ResourcePath::new(
            owned(K::group(dynamic_type)),
            owned(K::version(dynamic_type)),
            owned(K::plural(dynamic_type)),
        );
        let collection = match namespace {
            Some(namespace) => path.and_then(|path| path.in_namespace(namespace)),
            None => path,
        };
        Self { rest: rest.into(), collection, reach, resource: PhantomData }
    }
}

impl<K> ResourceClient<K>
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    /// The objects of all namespaces.
    pub fn all(rest: impl Into<RestClient>) -> Self {
        Self::new(rest, &K::DynamicType::default(), Reach::AllNamespaces, None)
    }

    /// The objects of one namespace.
    pub fn namespaced(rest: impl Into<RestClient>, namespace: &str) -> Self {
        Self::new(rest, &K::DynamicType::default(), Reach::OneNamespace, Some(namespace))
    }

    /// The objects of the namespace the client's configuration names.
    pub fn default_namespaced(rest: impl Into<RestClient>) -> Self {
        let rest = rest.into();
        let namespace = rest.client().kube().default_namespace().to_owned();
        Self::namespaced(rest, &namespace)
    }
}

impl<K> ResourceClient<K>
where
    K: Resource<Scope = ClusterResourceScope>,
    K::DynamicType: Default,
{
    /// The objects of a type that is in no namespace.
    pub fn cluster(rest: impl Into<RestClient>) -> Self {
        Self::new(rest, &K::DynamicType::default(), Reach::Cluster, None)
    }
}

/// For types known when the program runs. Whether they are namespaced is known then too, and said by the choice
/// of constructor.
impl<K: Resource<Scope = DynamicResourceScope>> ResourceClient<K> {
    /// The objects of all namespaces.
    pub fn all_with(rest: impl Into<RestClient>, dynamic_type: &K::DynamicType) -> Self {
        Self::new(rest, dynamic_type, Reach::AllNamespaces, None)
    }

    /// The objects of one namespace.
    pub fn namespaced_with(
        rest: impl Into<RestClient>,
        namespace: &str,
        dynamic_type: &K::DynamicType,
    ) -> Self {
        Self::new(rest, dynamic_type, Reach::OneNamespace, Some(namespace))
    }

    /// The objects of a type that is in no namespace.
    pub fn cluster_with(rest: impl Into<RestClient>, dynamic_type: &K::DynamicType) -> Self {
        Self::new(rest, dynamic_type, Reach::Cluster, None)
    }
}

impl<K: Resource> ResourceClient<K> {
    /// The client requests go through.
    pub fn rest(&self) -> &RestClient {
        &self.rest
    }

    /// The path of the collection.
    pub fn path(&self) -> Result<ResourcePath, InvalidRequest> {
        Ok(self.collection.clone()?)
    }

    /// The request of a list, for those who read the answer themselves.
    pub fn list_request(&self, params: &ListParams) -> Result<Request, InvalidRequest> {
        Request::list(self.path()?, params).map(Self::in_form)
    }

    /// The request of a watch, for those who read the answer themselves.
    pub fn watch_request(
        &self,
        params: &WatchParams,
        resource_version: &str,
    ) -> Result<Request, InvalidRequest> {
        Request::watch(self.path()?, params, resource_version).map(Self::in_form)
    }

    /// The path of an object known by its name alone.
    fn object_path(&self, name: &str) -> Result<ResourcePath, InvalidRequest> {
        if self.reach == Reach::AllNamespaces {
            return Err(InvalidRequest::Scope(
                "a name alone says no object of a namespaced type; choose its namespace with ResourceClient::namespaced",
            ));
        }
        Ok(self.path()?.named(name)?)
    }

    /// The collection an object belongs to, by its own word where the client is for all namespaces.
    fn collection_of(&self, object: &K) -> Result<ResourcePath, InvalidRequest> {
        let path = self.path()?;
        match (self.reach, object.meta().namespace.as_deref()) {
            (Reach::AllNamespaces, Some(namespace)) => Ok(path.in_namespace(namespace)?),
            (Reach::AllNamespaces, None) => Err(InvalidRequest::Scope(
                "the object names no namespace, and the client is for all of them; set metadata.namespace",
            )),
            (Reach::OneNamespace, Some(namespace)) if path.namespace() != Some(namespace) => {
                Err(InvalidRequest::Scope("the object's metadata.namespace is not the client's namespace"))
            }
            _ => Ok(path),
        }
    }

    /// The path of an object in hand.
    fn path_of(&self, object: &K) -> Result<ResourcePath, InvalidRequest> {
        let name = object.meta().name.as_deref();
        let name = name.ok_or(InvalidRequest::Object("the object has no metadata.name"))?;
        Ok(self.collection_of(object)?.named(name)?)
    }

    fn in_form(request: Request) -> Request {
        if K::metadata_api() { request.metadata_only() } else { request }
    }

    /// Prepares to send, or says what was being tried.
    fn sending(&self, verb: Verb, request: Result<Request, InvalidRequest>) -> Result<RequestBuilder, Error> {
        let request = request.map_err(|reason| {
            let resource = self.collection.as_ref().map_or("objects", ResourcePath::resource);
            Error::Invalid { attempted: format!("{verb} {resource}"), reason }
        })?;
        Ok(self.rest.request(request))
    }

    async fn send<T: DeserializeOwned>(
        &self,
        verb: Verb,
        request: Result<Request, InvalidRequest>,
    ) -> Result<T, Error> {
        self.sending(verb, request)?.send().await
    }
}

impl<K> Clone for ResourceClient<K> {
    fn clone(&self) -> Self {
        Self {
            rest: self.rest.clone(),
            collection: self.collection.clone(),
            reach: self.reach,
            resource: PhantomData,
        }
    }
}

impl<K> fmt::Debug for ResourceClient<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceClient")
            .field("collection", &self.collection)
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}
