//! Lists of collections.

use std::{any::Any, collections::BTreeSet};

use kube_core::{DynamicObject, ListMeta, ObjectList, Resource, TypeMeta, params::ListParams};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use super::ResourceClient;
use crate::{
    Error,
    rest::{RequestInfo, RequestTarget, Verb},
};

/// The default number of objects in a page, as in client-go.
const PAGE_OBJECTS: u32 = 500;

/// A page of a list. Unlike kube's list type, this type decodes without buffering the whole document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "K: DeserializeOwned"))]
pub(super) struct Page<K> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: ListMeta,
    #[serde(deserialize_with = "null_as_empty")]
    items: Vec<K>,
}

/// Decodes a list, or `null`, which Go servers send for an empty list.
fn null_as_empty<'de, D: Deserializer<'de>, K: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<K>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl<K: Clone + 'static> Page<K> {
    pub(super) fn into_list(mut self) -> ObjectList<K> {
        self.complete_types();
        ObjectList {
            types: TypeMeta { api_version: self.api_version, kind: self.kind },
            metadata: self.metadata,
            items: self.items,
        }
    }

    /// Sets `apiVersion` and `kind` of dynamic objects from those of the list: servers omit both in items, and a `PodList`
    /// contains `Pod`s.
    fn complete_types(&mut self) {
        let Some(kind) = self.kind.strip_suffix("List").filter(|kind| !kind.is_empty()) else { return };
        for item in &mut self.items {
            let Some(item) = (item as &mut dyn Any).downcast_mut::<DynamicObject>() else { return };
            item.types.get_or_insert_with(|| TypeMeta {
                api_version: self.api_version.clone(),
                kind: kind.to_owned(),
            });
        }
    }
}

impl<K: Resource + DeserializeOwned + Clone + 'static> ResourceClient<K> {
    /// Returns the objects that `params` selects, or the page of them that `params` describes.
    ///
    /// # Errors
    /// Returns [`Error`] if the request fails. A continue token that the server no longer has is
    /// [expired](Error::is_expired).
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        let page: Page<K> = self.send(Verb::List, self.list_request(params)).await?;
        Ok(page.into_list())
    }

    /// Returns all objects that `params` selects as one consistent list, read page by page.
    ///
    /// Pages have `params.limit` objects, or 500. If the server drops the version of the pages before the last of them is
    /// read, the collection is read again once, in a single page. The list carries the `resourceVersion` that is valid for
    /// all of it, so a watch can start there.
    ///
    /// # Errors
    /// Returns [`Error`] if a request fails, or [`Error::Protocol`] when the server repeats a continue token.
    #[doc(alias = "ListPager")]
    pub async fn list_all(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        let mut page_params = params.clone();
        page_params.limit.get_or_insert(PAGE_OBJECTS);
        let mut whole = self.list(&page_params).await?;
        let mut seen = BTreeSet::new();
        while let Some(token) = whole.metadata.continue_.take().filter(|token| !token.is_empty()) {
            page_params.continue_token = Some(token.clone());
            if !seen.insert(token) {
                return Err(self.broken("the server gave the same continue token twice"));
            }
            let page = match self.list(&page_params).await {
                Ok(page) => page,
                Err(error) if error.is_expired() => return self.list_unpaged(params).await,
                Err(error) => return Err(error),
            };
            whole.items.extend(page.items);
            whole.metadata.continue_ = page.metadata.continue_;
        }
        whole.metadata.remaining_item_count = None;
        Ok(whole)
    }

    async fn list_unpaged(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        let mut params = params.clone();
        params.limit = None;
        params.continue_token = None;
        self.list(&params).await
    }

    fn broken(&self, broken: &'static str) -> Error {
        match self.path() {
            Ok(path) => {
                let request = Box::new(RequestInfo::new(Verb::List, RequestTarget::Resource(path)));
                Error::Protocol { request, broken }
            }
            Err(reason) => reason.into(),
        }
    }
}
