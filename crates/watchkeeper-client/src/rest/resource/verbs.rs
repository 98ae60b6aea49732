//! Verbs of single objects.

use std::borrow::Cow;

use kube_core::{
    ObjectList, Resource, Status,
    params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{ResourceClient, list::Page};
use crate::{
    Error,
    rest::{ApiRequest, InvalidRequest, Verb},
};

/// The response to a deletion.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Deletion<T> {
    /// The deleted object, in its last state. An object with a `deletionTimestamp` still exists, until its finalizers
    /// are removed and its grace period has ended.
    Object(Box<T>),
    /// The status of a deletion that has completed.
    Status(Box<Status>),
}

impl<T> Deletion<T> {
    pub(super) fn map<U>(self, f: impl FnOnce(T) -> U) -> Deletion<U> {
        match self {
            Self::Object(object) => Deletion::Object(Box::new(f(*object))),
            Self::Status(status) => Deletion::Status(status),
        }
    }
}

impl<K: Resource + DeserializeOwned> ResourceClient<K> {
    /// Returns the object called `name` in its newest state.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. An object that does not exist is [not
    /// found](Error::is_object_not_found).
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        self.get_with(name, &GetParams::default()).await
    }

    /// Returns the object called `name`; `params` may allow an older state, from the cache of the server.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_with(&self, name: &str, params: &GetParams) -> Result<K, Error> {
        self.send(Verb::Get, self.get_request(name, params)).await
    }

    /// Returns the object called `name`, or `None` if the server reports that it does not exist.
    ///
    /// Any other 404 (the type is not served, a proxy responded) is an error; see [`Error::is_object_not_found`].
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails, except for an object that does not exist.
    #[doc(alias = "IgnoreNotFound")]
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        let request = self.get_request(name, &GetParams::default());
        self.sending(Verb::Get, request)?.send_optional().await
    }

    fn get_request(&self, name: &str, params: &GetParams) -> Result<ApiRequest, InvalidRequest> {
        ApiRequest::get(self.object_path(name)?, params).map(Self::in_form)
    }

    /// Deletes the object called `name`.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. An object that does not exist is [not found](Error::is_object_not_found); a
    /// precondition in `params` that does not hold is a [conflict](Error::is_conflict).
    #[doc(alias = "delete_and_finalize")]
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Deletion<K>, Error> {
        let request =
            self.object_path(name).and_then(|path| ApiRequest::delete(path, params)).map(Self::in_form);
        self.sending(Verb::Delete, request)?.send_deletion().await
    }

    /// Deletes the objects that `list` selects, one by one: objects created meanwhile may stay.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. Some objects may be deleted then.
    #[doc(alias = "DeleteAllOf")]
    pub async fn delete_collection(
        &self,
        params: &DeleteParams,
        list: &ListParams,
    ) -> Result<Deletion<ObjectList<K>>, Error>
    where
        K: Clone + 'static,
    {
        let request = self.path().and_then(|path| ApiRequest::delete_collection(path, params, list));
        let deleted = self.sending(Verb::DeleteCollection, request)?.send_deletion::<Page<K>>().await?;
        Ok(deleted.map(Page::into_list))
    }

    /// Patches the object called `name` and returns the result.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A `resourceVersion` in the patch that is not the current one
    /// is a [conflict](Error::is_conflict).
    pub async fn patch<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let request = self.object_path(name).and_then(|path| ApiRequest::patch(path, params, patch));
        self.send(Verb::Patch, request.map(Self::in_form)).await
    }
}

impl<K: Resource + DeserializeOwned + Serialize> ResourceClient<K> {
    /// Creates an object and returns it as stored.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A name that is in use [already
    /// exists](Error::is_already_exists).
    #[doc(alias = "WithObjects")]
    #[doc(alias = "CRDs")]
    pub async fn create(&self, params: &PostParams, object: &K) -> Result<K, Error> {
        let request = self.collection_of(object).and_then(|path| ApiRequest::create(path, params, object));
        self.send(Verb::Create, request.and_then(typed)).await
    }

    /// Replaces the object that has the name of `object`, and returns the result.
    ///
    /// With the `resourceVersion` that the object was read at, a write of another client in between is a conflict. Without
    /// it, such a write is lost.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A write of another client since the object was read is a
    /// [conflict](Error::is_conflict).
    #[doc(alias = "replace")]
    pub async fn update(&self, params: &PostParams, object: &K) -> Result<K, Error> {
        let request = self.path_of(object).and_then(|path| ApiRequest::update(path, params, object));
        self.send(Verb::Update, request.and_then(typed)).await
    }

    /// Replaces the status of an object and returns the result. The server ignores the rest of `object`.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    #[doc(alias = "replace_status")]
    pub async fn update_status(&self, params: &PostParams, object: &K) -> Result<K, Error> {
        let request = self
            .path_of(object)
            .and_then(|path| Ok(path.subresource("status")?))
            .and_then(|path| ApiRequest::update(path, params, object));
        self.send(Verb::Update, request.and_then(typed)).await
    }

    /// Applies `object` (server-side apply) and returns the result: its fields get the values in `object` and are owned by
    /// `params.field_manager`. Creates the object if it does not exist.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A field that another manager owns is a [conflict](Error::is_conflict), unless
    /// `params.force` is set. An object with `managedFields` is [invalid](Error::Invalid) and not sent.
    pub async fn apply(&self, params: &PatchParams, object: &K) -> Result<K, Error> {
        self.send(Verb::Patch, self.apply_request(None, params, object)).await
    }

    /// Applies the status of `object` (server-side apply) and returns the result.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_status(&self, params: &PatchParams, object: &K) -> Result<K, Error> {
        self.send(Verb::Patch, self.apply_request(Some("status"), params, object)).await
    }

    fn apply_request(
        &self,
        subresource: Option<&str>,
        params: &PatchParams,
        object: &K,
    ) -> Result<ApiRequest, InvalidRequest> {
        if object.meta().managed_fields.is_some() {
            return Err(InvalidRequest::Object(
                "an object that is applied has no metadata.managedFields; apply the fields you mean, not what was read",
            ));
        }
        let mut path = self.path_of(object)?;
        if let Some(subresource) = subresource {
            path = path.subresource(subresource)?;
        }
        ApiRequest::patch(path, params, &Patch::Apply(object)).and_then(typed).map(Self::in_form)
    }
}

/// Rejects an object without `apiVersion` and `kind`, which the server would do less clearly.
fn typed(request: ApiRequest) -> Result<ApiRequest, InvalidRequest> {
    let types = serde_json::from_slice::<Types>(request.body());
    if types.is_ok_and(|types| !types.api_version.is_empty() && !types.kind.is_empty()) {
        return Ok(request);
    }
    Err(InvalidRequest::Object("the object carries no apiVersion and kind; set both in its types"))
}

/// The part of an object that names its type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Types<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}
