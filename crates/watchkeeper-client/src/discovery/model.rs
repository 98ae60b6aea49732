//! The result of discovery, as values.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube_core::{ApiResource, GroupVersion, GroupVersionKind, discovery::Scope};

use crate::{Error, dynamic::GroupVersionResource};

/// The resources of one server at one point in time.
///
/// Groups are in the server's order of priority, the core group first; versions are in the server's order of
/// preference. Parts that could not be fetched are listed in [`ServerResources::failures`] and never omitted
/// silently: with aggregated API servers (such as a metrics server that is down), partial results are normal.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[doc(alias = "APIGroupDiscoveryList")]
#[doc(alias = "APIGroupDiscovery")]
pub struct ServerResources {
    /// The API groups.
    pub groups: Vec<ApiGroup>,
    /// The group-versions that exist but whose resources are unknown, with the reason.
    pub failures: Vec<GroupVersionFailure>,
}

/// An API group and its versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroup {
    /// The name of the group; empty for the core group.
    pub name: String,
    /// The version that the server prefers.
    pub preferred_version: String,
    /// The versions, in the server's order of preference.
    pub versions: Vec<ApiVersion>,
}

/// A version of a group, with its resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiVersion {
    /// The name of the version, such as `v1`.
    pub version: String,
    /// The resources. Also empty if they could not be fetched, in which case this group-version has a
    /// [failure](ServerResources::failures).
    pub resources: Vec<ResourceInfo>,
}

/// A resource as described by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "ResourceSingularizer")]
#[doc(alias = "CategoryExpander")]
#[doc(alias = "ApiCapabilities")]
pub struct ResourceInfo {
    /// The plural name, as in URLs.
    pub name: String,
    /// The singular name. Defaults to the kind in lower case if the server omits it.
    pub singular_name: String,
    /// The kind of the objects. Empty if the server serves only subresources.
    pub kind: String,
    /// Whether the objects are namespaced.
    pub scope: Scope,
    /// The supported verbs.
    pub verbs: Vec<String>,
    /// The short names, such as `po`.
    pub short_names: Vec<String>,
    /// The categories, such as `all`.
    pub categories: Vec<String>,
    /// The subresources of each object.
    pub subresources: Vec<SubresourceInfo>,
}

/// A subresource as described by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubresourceInfo {
    /// The name of the subresource, such as `status`.
    pub name: String,
    /// The kind of its requests and responses, often of another group: `pods/eviction` uses
    /// `policy/v1 Eviction`.
    pub kind: GroupVersionKind,
    /// The supported verbs.
    pub verbs: Vec<String>,
}

/// A group-version that exists but whose resources are unknown.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(alias = "ErrGroupDiscoveryFailed")]
#[doc(alias = "ErrResourceDiscoveryFailed")]
pub struct GroupVersionFailure {
    /// The affected group-version.
    pub group_version: GroupVersion,
    /// The reason of the failure.
    pub reason: FailureReason,
}

/// The reason that the resources of a group-version are unknown.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FailureReason {
    /// The API server marks the group-version as stale, because the aggregated API server that serves it does not
    /// respond. The outdated resources are not used.
    #[error("the API server marks it stale: the server behind it does not respond")]
    Stale,
    /// The request for the discovery document of the group-version failed.
    #[error("{0}")]
    Request(#[source] Arc<Error>),
    /// The discovery document could not be parsed. Contains the message of the parser.
    #[error("its discovery document cannot be parsed: {0}")]
    Document(String),
}

impl fmt::Display for GroupVersionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group_version.api_version(), self.reason)
    }
}

/// A resource and its preferred version, as a row of [`ServerResources::api_resources`] and `kubectl api-resources`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiResourceRow<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The version that the server prefers for this resource.
    pub version: &'a str,
    /// The resource itself.
    pub resource: &'a ResourceInfo,
}

impl ServerResources {
    /// Returns the group named `name`; the core group has the empty name.
    pub fn group(&self, name: &str) -> Option<&ApiGroup> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Returns the resources of one group-version, if the server has it.
    #[doc(alias = "ServerResourcesForGroupVersion")]
    pub fn resources(&self, group_version: &GroupVersion) -> Option<&[ResourceInfo]> {
        self.group(&group_version.group)?.version(&group_version.version).map(|version| &*version.resources)
    }

    /// Returns one resource, if the server has it.
    pub fn resource(&self, name: &GroupVersionResource) -> Option<&ResourceInfo> {
        self.resources(&name.group_version())?.iter().find(|resource| resource.name == name.resource)
    }

    /// Returns the reason that the resources of a group-version are unknown.
    pub fn failure(&self, group_version: &GroupVersion) -> Option<&FailureReason> {
        let failure = self.failures.iter().find(|failure| failure.group_version == *group_version)?;
        Some(&failure.reason)
    }

    /// Returns every group-version, sorted, as `kubectl api-versions` prints them.
    pub fn api_versions(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .groups
            .iter()
            .flat_map(|group| group.versions.iter().map(|version| group.api_version(&version.version)))
            .collect();
        names.sort_unstable();
        names
    }

    /// Returns every resource once, in its preferred version, sorted by group and name, as `kubectl
    /// api-resources` prints them. A resource that only an older version has is listed with that version.
    #[doc(alias = "ServerPreferredResources")]
    pub fn api_resources(&self) -> Vec<ApiResourceRow<'_>> {
        let mut rows = BTreeMap::new();
        for group in &self.groups {
            for version in group.versions_by_preference() {
                for resource in version.resources.iter().filter(|resource| !resource.verbs.is_empty()) {
                    rows.entry((group.name.as_str(), resource.name.as_str())).or_insert(ApiResourceRow {
                        group: &group.name,
                        version: &version.version,
                        resource,
                    });
                }
            }
        }
        rows.into_values().collect()
    }
}

impl ApiGroup {
    /// Returns one version of the group.
    pub fn version(&self, version: &str) -> Option<&ApiVersion> {
        self.versions.iter().find(|candidate| candidate.version == version)
    }

    /// Returns the versions, the preferred one first regardless of its position in the server's list.
    pub fn versions_by_preference(&self) -> impl Iterator<Item = &ApiVersion> {
        let preferred = self.version(&self.preferred_version);
        let others = self.versions.iter().filter(|version| version.version != self.preferred_version);
        preferred.into_iter().chain(others)
    }

    /// Returns the `apiVersion` of objects of `version`.
    fn api_version(&self, version: &str) -> String {
        GroupVersion::gv(&self.name, version).api_version()
    }
}

impl ResourceInfo {
    /// Returns whether the resource supports `verb`.
    #[doc(alias = "ResourcePredicate")]
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|supported| supported == verb)
    }

    /// Returns one subresource.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceInfo> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Returns whether the objects are namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Converts to kube's type for dynamic objects, for this resource in `group_version`.
    pub fn to_api_resource(&self, group_version: &GroupVersion) -> ApiResource {
        ApiResource::from_gvk_with_plural(&group_version.clone().with_kind(&self.kind), &self.name)
    }
}

impl ApiResourceRow<'_> {
    /// Returns the `apiVersion` of the objects.
    pub fn api_version(&self) -> String {
        GroupVersion::gv(self.group, self.version).api_version()
    }
}
