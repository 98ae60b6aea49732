//! Reading collections.

use std::collections::BTreeSet;

use kube_core::{ListMeta, ObjectList, Resource, TypeMeta, params::ListParams};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use super::ResourceClient;
use crate::{
    Error,
    rest::{RequestInfo, Target, Verb},
};

/// How many objects a page has where the caller does not say, as in client-go.
const PAGE_OBJECTS: u32 = 500;

/// A page of a list. kube's own list type is filled through a buffer of everything in it; this one is not.
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

/// A Go server writes a list it never appended to as `null`.
fn null_as_empty<'de, D: Deserializer<'de>, K: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<K>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl<K: Clone> Page<K> {
    pub(super) fn into_list(self) -> ObjectList<K> {
        ObjectList {
            types: TypeMeta { api_version: self.api_version, kind: self.kind },
            metadata: self.metadata,
            items: self.items,
        }
    }
}

impl<K: Resource + DeserializeOwned + Clone> ResourceClient<K> {
    /// Reads a collection, or the one page of it that `params` asks for.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        let page: Page<K> = self.send(Verb::List, self.list_request(params)).await?;
        Ok(page.into_list())
    }

    /// Reads a collection to its end, page by page, as one consistent list.
    ///
    /// Pages have `params.limit` objects, or 500. When the server no longer keeps the version the pages are read
    /// at, the rest of them cannot be had; then the collection is read again whole, in one page, once.
    /// The list holds the `resourceVersion` that is true for all of it: a watch may go on from there.
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
                let request = Box::new(RequestInfo::new(Verb::List, Target::Resource(path)));
                Error::Protocol { request, broken }
            }
            Err(reason) => reason.into(),
        }
    }
}
