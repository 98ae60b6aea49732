//! Discovery documents as servers send them.
//!
//! Every field may be absent or `null`: aggregated API servers are written by many hands, and one that leaves
//! a list out must not take the rest of the document with it.

use serde::{Deserialize, Deserializer};

/// What any document says of itself.
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

/// A kind; empty group and version mean those of the document around it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WireKind {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) group: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) kind: String,
}

/// `/api` in the legacy form.
#[derive(Debug, Deserialize)]
pub(super) struct LegacyVersions {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) versions: Vec<String>,
}

/// `/apis` in the legacy form.
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

/// `/api/v1` or `/apis/group/version`.
#[derive(Debug, Deserialize)]
pub(super) struct LegacyResources {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) resources: Vec<LegacyResource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LegacyResource {
    /// `pods`, or `pods/status` for a subresource.
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
