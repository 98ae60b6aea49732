//! Discovery documents in their wire format.
//!
//! Every field may be absent or `null`: aggregated API servers have many implementations, and an omitted list
//! must not invalidate the rest of the document.

use serde::{Deserialize, Deserializer};

/// The type fields of any document.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TypeOnly {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) api_version: String,
}

/// `/api` and `/apis` in the aggregated form, `apidiscovery.k8s.io/v2 APIGroupDiscoveryList`.
#[derive(Debug, Deserialize)]
pub(super) struct AggregatedList {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) items: Vec<AggregatedGroup>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AggregatedGroup {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) metadata: Named,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) versions: Vec<AggregatedVersion>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Named {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct AggregatedVersion {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) freshness: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) resources: Vec<AggregatedResource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregatedResource {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) resource: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) response_kind: WireKind,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) scope: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) singular_resource: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) verbs: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) short_names: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) categories: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) subresources: Vec<AggregatedSubresource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AggregatedSubresource {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) subresource: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) response_kind: WireKind,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) verbs: Vec<String>,
}

/// A kind; an empty group and version stand for those of the enclosing document.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WireKind {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) group: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) kind: String,
}

/// The document of `/api` in the legacy form.
#[derive(Debug, Deserialize)]
pub(super) struct LegacyVersions {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) versions: Vec<String>,
}

/// The document of `/apis` in the legacy form.
#[derive(Debug, Deserialize)]
pub(super) struct LegacyGroups {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) groups: Vec<LegacyGroup>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LegacyGroup {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) versions: Vec<LegacyVersion>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) preferred_version: LegacyVersion,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct LegacyVersion {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) version: String,
}

/// The document of `/api/v1` or `/apis/group/version` in the legacy form.
#[derive(Debug, Deserialize)]
pub(super) struct LegacyResources {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) resources: Vec<LegacyResource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LegacyResource {
    /// The name of the resource: `pods`, or `pods/status` for a subresource.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) singular_name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) namespaced: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) group: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) verbs: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) short_names: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) categories: Vec<String>,
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
