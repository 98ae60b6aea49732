//! Objects reduced to their metadata.

use std::{borrow::Cow, marker::PhantomData};

use kube_core::{ApiResource, DynamicResourceScope, ObjectMeta, PartialObjectMeta, Resource, TypeMeta};
use serde::{Deserialize, Deserializer, Serialize};

/// An object of any kind, reduced to its type and metadata, as returned by a metadata-only list or watch.
///
/// Clients and informers of this type request metadata only, so the server sends neither spec nor status. The
/// [dynamic type](Resource::DynamicType) is an [`ApiResource`], so the kind can be chosen at run time: see
/// [`Client::resource_with`](crate::Client::resource_with).
///
/// This type is equivalent to kube's [`PartialObjectMeta`] and converts into it and from it. Decoding does not buffer
/// the whole document to find the type fields, as that of kube's type does.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ObjectMetadata {
    /// The `apiVersion` and `kind` of the object. `None` if either is missing, as in items of a list.
    #[serde(flatten)]
    pub types: Option<TypeMeta>,
    /// The metadata of the object.
    pub metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for ObjectMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The wire format, with the type fields by name instead of flattened.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            api_version: Option<String>,
            kind: Option<String>,
            metadata: ObjectMeta,
        }
        let Wire { api_version, kind, metadata } = Wire::deserialize(deserializer)?;
        let types = api_version.zip(kind).map(|(api_version, kind)| TypeMeta { api_version, kind });
        Ok(Self { types, metadata })
    }
}

impl<K> From<ObjectMetadata> for PartialObjectMeta<K> {
    fn from(object: ObjectMetadata) -> Self {
        Self { types: object.types, metadata: object.metadata, _phantom: PhantomData }
    }
}

impl<K> From<PartialObjectMeta<K>> for ObjectMetadata {
    fn from(object: PartialObjectMeta<K>) -> Self {
        Self { types: object.types, metadata: object.metadata }
    }
}

impl Resource for ObjectMetadata {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    /// Makes clients request metadata only.
    fn metadata_api() -> bool {
        true
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
