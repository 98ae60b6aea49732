//! The verbs of one resource, over objects without a type.

use kube_core::{
    ApiResource, DynamicObject, GroupVersionKind, ObjectList, TypeMeta,
    params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};

use super::GroupVersionResource;
use crate::{
    Error,
    rest::{Deletion, InvalidRequest, ResourceClient, RestClient, Verb},
};

/// The verbs of one resource, over objects without a type.
///
/// The same as a [`ResourceClient`], with two differences that come from the objects telling what they are: what is
/// sent must carry `apiVersion` and `kind`, which is checked before it is sent; and what comes in lists carries them,
/// though servers leave them out there.
///
/// A client without a namespace is for objects that are in none, or for lists over all namespaces. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DynamicResourceClient {
    resource: GroupVersionResource,
    client: ResourceClient<DynamicObject>,
}

impl DynamicResourceClient {
    pub(super) fn new(rest: RestClient, resource: &GroupVersionResource) -> Self {
        let client = ResourceClient::cluster_with(rest, &api_resource(resource));
        Self { resource: resource.clone(), client }
    }

    /// The objects of one namespace.
    #[must_use]
    pub fn namespace(&self, namespace: &str) -> Self {
        let rest = self.client.rest().clone();
        let client = ResourceClient::namespaced_with(rest, namespace, &api_resource(&self.resource));
        Self { resource: self.resource.clone(), client }
    }

    /// Which resource this is.
    pub fn resource(&self) -> &GroupVersionResource {
        &self.resource
    }

    /// The resource client underneath, for code that is generic over types.
    pub fn resource_client(&self) -> &ResourceClient<DynamicObject> {
        &self.client
    }

    /// Reads an object as it is now.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn get(&self, name: &str) -> Result<DynamicObject, Error> {
        self.client.get(name).await
    }

    /// Reads an object, from a cache that is at least as new as `params` says if it says so.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn get_with(&self, name: &str, params: &GetParams) -> Result<DynamicObject, Error> {
        self.client.get_with(name, params).await
    }

    /// As [`get`](Self::get), with `None` for an object that does not exist.
    ///
    /// # Errors
    /// When the request fails; a resource that is not served is an error too.
    pub async fn get_opt(&self, name: &str) -> Result<Option<DynamicObject>, Error> {
        self.client.get_opt(name).await
    }

    /// Reads a collection, or the one page of it that `params` asks for.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<DynamicObject>, Error> {
        self.client.list(params).await.map(typed_items)
    }

    /// Reads a collection to its end, page by page; see [`ResourceClient::list_all`].
    ///
    /// # Errors
    /// When a request fails.
    pub async fn list_all(&self, params: &ListParams) -> Result<ObjectList<DynamicObject>, Error> {
        self.client.list_all(params).await.map(typed_items)
    }

    /// Creates an object and returns it as it was stored.
    ///
    /// # Errors
    /// When the request fails, or the object does not say what it is.
    pub async fn create(&self, params: &PostParams, object: &DynamicObject) -> Result<DynamicObject, Error> {
        self.check_typed(Verb::Create, object)?;
        self.client.create(params, object).await
    }

    /// Replaces an object; see [`ResourceClient::update`].
    ///
    /// # Errors
    /// When the request fails, or the object does not say what it is.
    pub async fn update(&self, params: &PostParams, object: &DynamicObject) -> Result<DynamicObject, Error> {
        self.check_typed(Verb::Update, object)?;
        self.client.update(params, object).await
    }

    /// Replaces the status of an object; the rest of `object` is ignored by the server.
    ///
    /// # Errors
    /// When the request fails, or the object does not say what it is.
    pub async fn update_status(
        &self,
        params: &PostParams,
        object: &DynamicObject,
    ) -> Result<DynamicObject, Error> {
        self.check_typed(Verb::Update, object)?;
        self.client.update_status(params, object).await
    }

    /// Changes an object in part and returns it as it is then.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn patch<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<DynamicObject, Error> {
        self.client.patch(name, params, patch).await
    }

    /// Declares fields of an object, and creates it if it does not exist; see [`ResourceClient::apply`].
    ///
    /// # Errors
    /// When the request fails, or the object does not say what it is.
    pub async fn apply(&self, params: &PatchParams, object: &DynamicObject) -> Result<DynamicObject, Error> {
        self.check_typed(Verb::Patch, object)?;
        self.client.apply(params, object).await
    }

    /// Declares fields of an object's status.
    ///
    /// # Errors
    /// When the request fails, or the object does not say what it is.
    pub async fn apply_status(
        &self,
        params: &PatchParams,
        object: &DynamicObject,
    ) -> Result<DynamicObject, Error> {
        self.check_typed(Verb::Patch, object)?;
        self.client.apply_status(params, object).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Deletion<DynamicObject>, Error> {
        self.client.delete(name, params).await
    }

    /// Deletes what `list` selects.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn delete_collection(
        &self,
        params: &DeleteParams,
        list: &ListParams,
    ) -> Result<Deletion<ObjectList<DynamicObject>>, Error> {
        self.client.delete_collection(params, list).await
    }

    /// Reads a subresource as `T`.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        name: &str,
        subresource: &str,
    ) -> Result<T, Error> {
        self.client.get_subresource(name, subresource).await
    }

    /// Creates a subresource: an eviction, a binding, a token.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn create_subresource<T: DeserializeOwned>(
        &self,
        name: &str,
        subresource: &str,
        params: &PostParams,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.client.create_subresource(name, subresource, params, body).await
    }

    /// Replaces a subresource.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn update_subresource<T: DeserializeOwned>(
        &self,
        name: &str,
        subresource: &str,
        params: &PostParams,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.client.update_subresource(name, subresource, params, body).await
    }

    /// Changes a subresource in part.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn patch_subresource<T: DeserializeOwned, P: Serialize>(
        &self,
        name: &str,
        subresource: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<T, Error> {
        self.client.patch_subresource(name, subresource, params, patch).await
    }

    /// A server needs to read what an object is, and says so less clearly than we can.
    fn check_typed(&self, verb: Verb, object: &DynamicObject) -> Result<(), Error> {
        let is_typed = |types: &TypeMeta| !types.api_version.is_empty() && !types.kind.is_empty();
        if object.types.as_ref().is_some_and(is_typed) {
            return Ok(());
        }
        Err(Error::Invalid {
            attempted: format!("{verb} {}", self.resource.resource),
            reason: InvalidRequest::Object(
                "the object carries no apiVersion and kind; set both in its types",
            ),
        })
    }
}

/// What kube asks for. Only the path is made of it, and the path has no kind in it.
fn api_resource(resource: &GroupVersionResource) -> ApiResource {
    let kind_unknown = GroupVersionKind::gvk(&resource.group, &resource.version, "");
    ApiResource::from_gvk_with_plural(&kind_unknown, &resource.resource)
}

/// Says in each item what the list says of all of them: a `PodList` is of `Pod`s.
fn typed_items(mut list: ObjectList<DynamicObject>) -> ObjectList<DynamicObject> {
    let Some(kind) = list.types.kind.strip_suffix("List").filter(|kind| !kind.is_empty()) else {
        return list;
    };
    let types = TypeMeta { api_version: list.types.api_version.clone(), kind: kind.to_owned() };
    for item in &mut list.items {
        item.types.get_or_insert_with(|| types.clone());
    }
    list
}
