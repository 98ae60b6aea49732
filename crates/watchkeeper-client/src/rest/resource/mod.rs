//! The verbs of one type.

mod kube_api;
mod list;
mod pod;
mod scope;
mod subresource;
mod verbs;
mod watch;

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use kube_core::{
    NamespaceScope, Resource,
    params::{ListParams, WatchParams},
};
use serde::de::DeserializeOwned;

pub use kube_api::ToResourceClient;
pub use scope::{KnownScope, KnownType};
pub use verbs::Deletion;

use super::{ApiRequest, InvalidRequest, RequestBuilder, ResourcePath, RestClient, Verb};
use crate::{Client, Error};

/// The verbs of one resource type: cluster-wide, in all namespaces, or in one.
///
/// Made by [`Client::resource`] for types known at compile time, and by [`Client::dynamic`] or [`Client::resource_with`] for
/// others. Works with every type that implements kube's [`Resource`]: those of `k8s_openapi`, `#[derive(CustomResource)]`
/// types, `DynamicObject`, and `PartialObjectMeta<K>`, for which the server sends metadata alone.
///
/// Verbs that take an object use the object's namespace if no namespace was selected. Verbs that take only the name of a
/// namespaced object need [`namespace`](Self::namespace). Everything that [`RestClient`] guarantees holds for each verb.
/// Sends no request until a verb is called. Cheap to clone.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_core::params::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
/// use watchkeeper_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = watchkeeper_apiserver::ApiServer::in_process();
/// # let client = Client::from(server.client());
/// let maps = client.resource::<ConfigMap>().namespace("default");
/// let mut settings = ConfigMap::default();
/// settings.metadata.name = Some("settings".into());
///
/// let created = maps.create(&PostParams::default(), &settings).await?;
/// let patch = Patch::Merge(serde_json::json!({"data": {"mode": "fast"}}));
/// maps.patch("settings", &PatchParams::default(), &patch).await?;
///
/// // An update of an outdated object is a conflict.
/// let error = maps.update(&PostParams::default(), &created).await.unwrap_err();
/// assert!(error.is_conflict());
///
/// maps.delete("settings", &DeleteParams::default()).await?;
/// assert!(maps.get_opt("settings").await?.is_none());
///
/// // Without `namespace`, lists and watches cover all namespaces.
/// let everywhere = client.resource::<ConfigMap>().list(&ListParams::default()).await?;
/// # drop(everywhere);
/// # Ok(())
/// # }
/// ```
///
/// Selecting a namespace of a cluster-scoped type does not compile:
///
/// ```compile_fail
/// # use watchkeeper_client::Client;
/// # use k8s_openapi::api::core::v1::Node;
/// # fn example(client: &Client) {
/// let nodes = client.resource::<Node>().namespace("default");
/// # }
/// ```
///
/// kube's [`Api`](kube_client::Api) converts into a `ResourceClient` with `From`, and back with `TryFrom`.
#[doc(alias = "Api")]
#[doc(alias = "ResourceInterface")]
pub struct ResourceClient<K> {
    rest: RestClient,
    /// An error is returned by the first verb, so that selecting a namespace does not fail.
    collection: Result<ResourcePath, InvalidRequest>,
    /// Empty if it is not known.
    kind: Arc<str>,
    reach: Reach,
    resource: PhantomData<fn() -> K>,
}

/// The location of the objects of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Cluster,
    OneNamespace,
    AllNamespaces,
    /// The cluster, or all namespaces: known to the server alone.
    Unknown,
}

impl<K: Resource<Scope: KnownScope>> ResourceClient<K> {
    pub(crate) fn new(client: &Client, dynamic_type: &K::DynamicType) -> Self {
        let owned = |part: Cow<'_, str>| part.into_owned();
        let collection = ResourcePath::new(
            owned(K::group(dynamic_type)),
            owned(K::version(dynamic_type)),
            owned(K::plural(dynamic_type)),
        );
        let kind = K::kind(dynamic_type);
        Self::at(client, collection.map_err(InvalidRequest::from), &kind)
    }

    fn at(client: &Client, collection: Result<ResourcePath, InvalidRequest>, kind: &str) -> Self {
        let has_namespace = collection.as_ref().is_ok_and(|path| path.namespace().is_some());
        let reach = match K::Scope::IS_NAMESPACED {
            _ if has_namespace => Reach::OneNamespace,
            Some(true) => Reach::AllNamespaces,
            Some(false) => Reach::Cluster,
            None => Reach::Unknown,
        };
        Self { rest: client.rest(), collection, kind: kind.into(), reach, resource: PhantomData }
    }
}

impl<K> ResourceClient<K>
where
    K: Resource<Scope: NamespaceScope>,
{
    /// Returns this client for the objects of one namespace.
    #[must_use]
    #[doc(alias = "namespaced")]
    #[doc(alias = "constrain")]
    #[doc(alias = "NamespaceableResourceInterface")]
    #[doc(alias = "NewNamespacedClient")]
    pub fn namespace(&self, namespace: &str) -> Self {
        let collection = self.path().and_then(|path| Ok(path.in_namespace(namespace)?));
        Self { collection, reach: Reach::OneNamespace, ..self.clone() }
    }

    /// Returns this client for the objects of the [default namespace](Client::default_namespace).
    #[must_use]
    #[doc(alias = "default_namespaced")]
    pub fn default_namespace(&self) -> Self {
        self.namespace(self.client().default_namespace())
    }
}

impl<K: Resource> ResourceClient<K> {
    /// Returns this client for the namespace of `object`. A client of one namespace, or of a cluster-scoped type, stays as it
    /// is; one of another namespace returns an error from each verb.
    #[must_use]
    pub fn namespace_of(&self, object: &K) -> Self {
        let collection = self.collection_of(object);
        let has_namespace = collection.as_ref().is_ok_and(|path| path.namespace().is_some());
        let reach = if has_namespace { Reach::OneNamespace } else { self.reach };
        Self { collection, reach, ..self.clone() }
    }

    /// Returns the client that requests are sent through.
    pub fn client(&self) -> &Client {
        self.rest.client()
    }

    pub(crate) fn rest(&self) -> &RestClient {
        &self.rest
    }

    /// Returns the path of the collection.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the resource or the namespace cannot be part of a path, or the object of
    /// [`namespace_of`](Self::namespace_of) is in another namespace.
    pub fn path(&self) -> Result<ResourcePath, InvalidRequest> {
        self.collection.clone()
    }

    pub(crate) fn kind(&self) -> &Arc<str> {
        &self.kind
    }

    /// Returns the request of a list, for callers that read the response themselves.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path or the parameters are invalid.
    pub fn list_request(&self, params: &ListParams) -> Result<ApiRequest, InvalidRequest> {
        ApiRequest::list(self.path()?, params).map(Self::in_form)
    }

    /// Returns the request of a watch, for callers that read the response themselves.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path or the parameters are invalid.
    pub fn watch_request(
        &self,
        params: &WatchParams,
        resource_version: &str,
    ) -> Result<ApiRequest, InvalidRequest> {
        ApiRequest::watch(self.path()?, params, resource_version).map(Self::in_form)
    }

    /// Returns the path of an object known only by its name.
    pub(crate) fn object_path(&self, name: &str) -> Result<ResourcePath, InvalidRequest> {
        let path = self.path()?;
        if self.reach == Reach::AllNamespaces {
            return Err(InvalidRequest::Scope(
                "an object of a namespaced type needs a namespace besides its name; choose one with ResourceClient::namespace",
            ));
        }
        Ok(path.named(name)?)
    }

    /// Returns the collection that an object belongs to: in its own namespace, if no namespace was selected.
    fn collection_of(&self, object: &K) -> Result<ResourcePath, InvalidRequest> {
        let path = self.path()?;
        match (self.reach, object.meta().namespace.as_deref()) {
            (Reach::AllNamespaces | Reach::Unknown, Some(namespace)) => Ok(path.in_namespace(namespace)?),
            (Reach::AllNamespaces, None) => Err(InvalidRequest::Scope(
                "the object names no namespace, and the client is for all of them; set metadata.namespace",
            )),
            (Reach::OneNamespace, Some(namespace)) if path.namespace() != Some(namespace) => {
                Err(InvalidRequest::Scope("the object's metadata.namespace is not the client's namespace"))
            }
            _ => Ok(path),
        }
    }

    /// Returns the path of an object.
    fn path_of(&self, object: &K) -> Result<ResourcePath, InvalidRequest> {
        let name = object.meta().name.as_deref();
        let name = name.ok_or(InvalidRequest::Object("the object has no metadata.name"))?;
        Ok(self.collection_of(object)?.named(name)?)
    }

    fn in_form(request: ApiRequest) -> ApiRequest {
        if K::metadata_api() { request.metadata_only() } else { request }
    }

    /// Returns the request to send, or an error that names what was tried.
    fn sending(
        &self,
        verb: Verb,
        request: Result<ApiRequest, InvalidRequest>,
    ) -> Result<RequestBuilder, Error> {
        let request = request.map_err(|reason| self.refused(verb, reason))?;
        Ok(self.rest.request(request))
    }

    pub(crate) fn refused(&self, verb: Verb, reason: InvalidRequest) -> Error {
        let resource = self.collection.as_ref().map_or("objects", ResourcePath::resource);
        Error::Invalid { attempted: format!("{verb} {resource}"), reason }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        verb: Verb,
        request: Result<ApiRequest, InvalidRequest>,
    ) -> Result<T, Error> {
        self.sending(verb, request)?.send().await
    }
}

impl<K> Clone for ResourceClient<K> {
    fn clone(&self) -> Self {
        Self {
            rest: self.rest.clone(),
            collection: self.collection.clone(),
            kind: self.kind.clone(),
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
