//! Reading and writing single objects.

use kube_core::{
    ObjectList, Resource, Status,
    params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{ResourceClient, list::Page};
use crate::{
    Error,
    rest::{InvalidRequest, Request, Verb},
};

/// What a server answers to a deletion.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Deletion<T> {
    /// What was asked to be deleted, as it was last. An object with a `deletionTimestamp` still exists, until its
    /// finalizers are done and its grace period is over.
    Object(Box<T>),
    /// It is gone.
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
    /// Reads an object as it is now.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        self.get_with(name, &GetParams::default()).await
    }

    /// Reads an object, from a cache that is at least as new as `params` says if it says so.
    pub async fn get_with(&self, name: &str, params: &GetParams) -> Result<K, Error> {
        self.send(Verb::Get, self.get_request(name, params)).await
    }

    /// As [`get`](Self::get), with `None` for an object that does not exist.
    ///
    /// A 404 that is about anything else (the type is not served, a proxy lost its way) stays an error; see
    /// [`Error::is_object_not_found`].
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        let request = self.get_request(name, &GetParams::default());
        self.sending(Verb::Get, request)?.send_optional().await
    }

    fn get_request(&self, name: &str, params: &GetParams) -> Result<Request, InvalidRequest> {
        Request::get(self.object_path(name)?, params).map(Self::in_form)
    }

    /// Deletes an object.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Deletion<K>, Error> {
        let request =
            self.object_path(name).and_then(|path| Request::delete(path, params)).map(Self::in_form);
        self.sending(Verb::Delete, request)?.send_deletion().await
    }

    /// Deletes what `list` selects. Not in one step: objects may appear and disappear while it goes on.
    pub async fn delete_collection(
        &self,
        params: &DeleteParams,
        list: &ListParams,
    ) -> Result<Deletion<ObjectList<K>>, Error>
    where
        K: Clone,
    {
        let request = self.path().and_then(|path| Request::delete_collection(path, params, list));
        let deleted = self.sending(Verb::DeleteCollection, request)?.send_deletion::<Page<K>>().await?;
        Ok(deleted.map(Page::into_list))
    }

    /// Changes an object in part and returns it as it is then.
    pub async fn patch<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let request = self.object_path(name).and_then(|path| Request::patch(path, params, patch));
        self.send(Verb::Patch, request.map(Self::in_form)).await
    }
}

impl<K: Resource + DeserializeOwned + Serialize> ResourceClient<K> {
    /// Creates an object and returns it as it was stored.
    pub async fn create(&self, params: &PostParams, object: &K) -> Result<K, Error> {
        let request = self.collection_of(object).and_then(|path| Request::create(path, params, object));
        self.send(Verb::Create, request).await
    }

    /// Replaces an object with `object`, which carries the name and should carry the `resourceVersion` it was read at:
    /// then a write in between is a conflict and not undone.
    pub async fn update(&self, params: &PostParams, object: &K) -> Result<K, Error> {
        let request = self.path_of(object).and_then(|path| Request::update(path, params, object));
        self.send(Verb::Update, request).await
    }

    /// Replaces the status of an object; the rest of `object` is ignored by the server.
    pub async fn update_status(&self, params: &PostParams, object: &K) -> Result<K, Error> {
        let request = self
            .path_of(object)
            .and_then(|path| Ok(path.subresource("status")?))
            .and_then(|path| Request::update(path, params, object));
        self.send(Verb::Update, request).await
    }

    /// Declares the fields in `object` to be as they are there, owned by `params.field_manager`; creates the object if
    /// it does not exist.
    pub async fn apply(&self, params: &PatchParams, object: &K) -> Result<K, Error> {
        self.send(Verb::Patch, self.apply_request(None, params, object)).await
    }

    /// The same for the status.
    pub async fn apply_status(&self, params: &PatchParams, object: &K) -> Result<K, Error> {
        self.send(Verb::Patch, self.apply_request(Some("status"), params, object)).await
    }

    fn apply_request(
        &self,
        subresource: Option<&str>,
        params: &PatchParams,
        object: &K,
    ) -> Result<Request, InvalidRequest> {
        if object.meta().managed_fields.is_some() {
            return Err(InvalidRequest::Object(
                "an object that is applied has no metadata.managedFields; apply the fields you mean, not what was read",
            ));
        }
        let mut path = self.path_of(object)?;
        if let Some(subresource) = subresource {
            path = path.subresource(subresource)?;
        }
        Request::patch(path, params, &Patch::Apply(object)).map(Self::in_form)
    }
}
