//! What a server serves, as values.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube_core::{ApiResource, GroupVersion, GroupVersionKind, discovery::Scope};

use crate::{Error, dynamic::GroupVersionResource};

/// Everything one server said it serves, at one moment.
///
/// Groups are in the server's order of priority, the core group first; versions are in the server's order of
/// preference. What could not be learnt is in [`ServerResources::failures`], never missing in silence: with
/// aggregated API servers (a metrics server that is down, for example) a partial answer is normal.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerResources {
    /// The API groups.
    pub groups: Vec<ApiGroup>,
    /// The group-versions that exist and whose resources are not known, with the reason.
    pub failures: Vec<GroupVersionFailure>,
}

/// An API group and its versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroup {
    /// The name; empty for the core group.
    pub name: String,
    /// The version the server prefers.
    pub preferred_version: String,
    /// The versions, the server's most preferred first.
    pub versions: Vec<ApiVersion>,
}

/// One version of a group, and what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiVersion {
    /// The version, `v1` for example.
    pub version: String,
    /// The resources. Empty as well when they could not be learnt; then there is a
    /// [failure](ServerResources::failures) for this group-version.
    pub resources: Vec<ResourceInfo>,
}

/// What the server tells about one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceInfo {
    /// The plural name, as in URLs.
    pub name: String,
    /// The singular name; the kind in lower case where the server does not give one.
    pub singular_name: String,
    /// The kind of its objects. Empty when the server serves only subresources of it.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// The verbs it can be asked for.
    pub verbs: Vec<String>,
    /// Abbreviations, `po` for example.
    pub short_names: Vec<String>,
    /// The families it belongs to, `all` for example.
    pub categories: Vec<String>,
    /// What hangs below each of its objects.
    pub subresources: Vec<SubresourceInfo>,
}

/// What the server tells about one subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubresourceInfo {
    /// The name, `status` for example.
    pub name: String,
    /// The kind it speaks, often of another group: `pods/eviction` speaks `policy/v1 Eviction`.
    pub kind: GroupVersionKind,
    /// The verbs it can be asked for.
    pub verbs: Vec<String>,
}

/// A group-version that exists and whose resources are not known.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GroupVersionFailure {
    /// Which one.
    pub group_version: GroupVersion,
    /// Why.
    pub reason: FailureReason,
}

/// Why the resources of a group-version are not known.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FailureReason {
    /// The API server could not reach the server behind this group-version and has only an old answer.
    #[error("the API server marks it stale: the server behind it does not answer")]
    Stale,
    /// The request for its document failed.
    #[error("{0}")]
    Request(#[source] Arc<Error>),
    /// Its document could not be read.
    #[error("its discovery document is not readable: {0}")]
    Document(String),
}

impl fmt::Display for GroupVersionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group_version.api_version(), self.reason)
    }
}

/// One line of [`ServerResources::api_resources`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiResourceRow<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The version the server prefers for this resource.
    pub version: &'a str,
    /// Everything else.
    pub resource: &'a ResourceInfo,
}

impl ServerResources {
    /// The group called `name`; the core group has the empty name.
    pub fn group(&self, name: &str) -> Option<&ApiGroup> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The resources of one group-version, if the server has it.
    pub fn resources(&self, group_version: &GroupVersion) -> Option<&[ResourceInfo]> {
        self.group(&group_version.group)?.version(&group_version.version).map(|version| &*version.resources)
    }

    /// What the server tells about one resource.
    pub fn resource(&self, name: &GroupVersionResource) -> Option<&ResourceInfo> {
        self.resources(&name.group_version())?.iter().find(|resource| resource.name == name.resource)
    }

    /// Why the resources of a group-version are not known.
    pub fn failure(&self, group_version: &GroupVersion) -> Option<&FailureReason> {
        let failure = self.failures.iter().find(|failure| failure.group_version == *group_version)?;
        Some(&failure.reason)
    }

    /// Every group-version, sorted: what `kubectl api-versions` prints.
    pub fn api_versions(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .groups
            .iter()
            .flat_map(|group| group.versions.iter().map(|version| group.api_version(&version.version)))
            .collect();
        names.sort_unstable();
        names
    }

    /// Every resource once, in its preferred version, sorted by group and name: what `kubectl api-resources`
    /// prints. A resource that only an older version has is there with that version.
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
    /// One version of the group.
    pub fn version(&self, version: &str) -> Option<&ApiVersion> {
        self.versions.iter().find(|candidate| candidate.version == version)
    }

    /// The versions, the preferred one first, whatever its place in the server's list.
    pub fn versions_by_preference(&self) -> impl Iterator<Item = &ApiVersion> {
        let preferred = self.version(&self.preferred_version);
        let others = self.versions.iter().filter(|version| version.version != self.preferred_version);
        preferred.into_iter().chain(others)
    }

    /// The `apiVersion` objects of `version` carry.
    fn api_version(&self, version: &str) -> String {
        GroupVersion::gv(&self.name, version).api_version()
    }
}

impl ResourceInfo {
    /// Whether the resource can be asked for `verb`.
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|supported| supported == verb)
    }

    /// One of its subresources.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceInfo> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether its objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// What kube's dynamic types want to know, for this resource in `group_version`.
    pub fn to_api_resource(&self, group_version: &GroupVersion) -> ApiResource {
        ApiResource::from_gvk_with_plural(&group_version.clone().with_kind(&self.kind), &self.name)
    }
}

impl ApiResourceRow<'_> {
    /// The `apiVersion` its objects carry.
    pub fn api_version(&self) -> String {
        GroupVersion::gv(self.group, self.version).api_version()
    }
}
