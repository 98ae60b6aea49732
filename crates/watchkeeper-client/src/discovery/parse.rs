//! Parsing of discovery documents, without requests.

use std::collections::{HashMap, HashSet};

use kube_core::{GroupVersion, GroupVersionKind, discovery::Scope};
use serde::de::DeserializeOwned;

use super::{
    model::{ApiGroup, ApiVersion, FailureReason, GroupVersionFailure, ResourceInfo, SubresourceInfo},
    wire,
};
use crate::error::Unreadable;

/// The media type of the aggregated form, with plain JSON (the legacy form) as a fallback.
pub(super) const ACCEPT_AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The two endpoints of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscoveryEndpoint {
    /// `/api`: the core group.
    Core,
    /// `/apis`: all other groups.
    Groups,
}

impl DiscoveryEndpoint {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Core => "/api",
            Self::Groups => "/apis",
        }
    }

    fn legacy_kind(self) -> &'static str {
        match self {
            Self::Core => "APIVersions",
            Self::Groups => "APIGroupList",
        }
    }
}

/// The response of `/api` or `/apis`.
#[derive(Debug)]
pub(super) enum Root {
    /// The aggregated form, with all resources.
    Aggregated { groups: Vec<ApiGroup>, failures: Vec<GroupVersionFailure> },
    /// The legacy form, with groups and versions only; their resources are in separate documents.
    Legacy(Vec<ApiGroup>),
}

/// Parses the response of `/api` or `/apis`. The content type determines the form; if a proxy removed its
/// parameters, the kind of the document does.
pub(super) fn root(
    endpoint: DiscoveryEndpoint,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<Root, String> {
    let document: wire::TypeOnly = json(body)?;
    let announced = content_type.is_some_and(is_aggregated);
    match document.kind.as_str() {
        "APIGroupDiscoveryList" if document.api_version != "apidiscovery.k8s.io/v2" => {
            Err(format!("aggregated discovery version {} is not supported", printable(&document.api_version)))
        }
        "APIGroupDiscoveryList" => json(body).map(aggregated),
        "" if announced => json(body).map(aggregated),
        kind if kind.is_empty() || kind == endpoint.legacy_kind() => match endpoint {
            DiscoveryEndpoint::Core => json(body).map(|document| Root::Legacy(core_versions(document))),
            DiscoveryEndpoint::Groups => json(body).map(|document| Root::Legacy(named_groups(document))),
        },
        kind => Err(format!("expected {}, got {}", endpoint.legacy_kind(), printable(kind))),
    }
}

/// Parses the resources of one group-version, in the legacy form.
pub(super) fn resource_list(group_version: &GroupVersion, body: &[u8]) -> Result<Vec<ResourceInfo>, String> {
    let document: wire::TypeOnly = json(body)?;
    if !matches!(document.kind.as_str(), "" | "APIResourceList") {
        return Err(format!("expected APIResourceList, got {}", printable(&document.kind)));
    }
    let document: wire::LegacyResources = json(body)?;
    let (children, parents): (Vec<_>, Vec<_>) =
        document.resources.into_iter().partition(|resource| resource.name.contains('/'));
    let mut resources = distinct(parents.into_iter().map(legacy_resource), |resource| &resource.name);
    let mut places: HashMap<String, usize> =
        resources.iter().enumerate().map(|(at, resource)| (resource.name.clone(), at)).collect();
    for child in children {
        let Some((parent, name)) = child.name.split_once('/') else {
            continue;
        };
        let subresource = SubresourceInfo {
            name: name.to_owned(),
            kind: kind_in(group_version, &child.group, &child.version, &child.kind),
            verbs: child.verbs,
        };
        let at = *places.entry(parent.to_owned()).or_insert_with(|| {
            // Some servers serve only subresources of a resource.
            resources.push(without_kind(parent, scope(child.namespaced)));
            resources.len() - 1
        });
        resources[at].subresources.push(subresource);
    }
    Ok(resources)
}

/// Returns whether a content type announces the requested aggregated form.
fn is_aggregated(content_type: &str) -> bool {
    let parameters: Vec<&str> = content_type.split(';').skip(1).map(str::trim).collect();
    ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"]
        .iter()
        .all(|wanted| parameters.contains(wanted))
}

fn aggregated(document: wire::AggregatedList) -> Root {
    let mut failures = Vec::new();
    let mut groups = Vec::with_capacity(document.items.len());
    for item in document.items {
        let name = item.metadata.name;
        let mut versions = Vec::with_capacity(item.versions.len());
        for version in item.versions {
            let group_version = GroupVersion::gv(&name, &version.version);
            if version.freshness == "Stale" {
                failures.push(GroupVersionFailure { group_version, reason: FailureReason::Stale });
                continue;
            }
            let resources =
                version.resources.into_iter().map(|resource| aggregated_resource(&group_version, resource));
            let resources = distinct(resources, |resource| &resource.name);
            versions.push(ApiVersion { version: version.version, resources });
        }
        groups.extend(group(name, String::new(), versions));
    }
    Root::Aggregated { groups: first_of_each_name(groups), failures }
}

fn aggregated_resource(group_version: &GroupVersion, wire: wire::AggregatedResource) -> ResourceInfo {
    let subresources =
        wire.subresources.into_iter().filter(|subresource| !subresource.subresource.is_empty());
    ResourceInfo {
        name: wire.resource,
        singular_name: singular(wire.singular_resource, &wire.response_kind.kind),
        kind: wire.response_kind.kind,
        scope: scope(wire.scope == "Namespaced"),
        verbs: wire.verbs,
        short_names: wire.short_names,
        categories: wire.categories,
        subresources: subresources
            .map(|subresource| {
                let kind = subresource.response_kind;
                SubresourceInfo {
                    name: subresource.subresource,
                    kind: kind_in(group_version, &kind.group, &kind.version, &kind.kind),
                    verbs: subresource.verbs,
                }
            })
            .collect(),
    }
}

fn legacy_resource(wire: wire::LegacyResource) -> ResourceInfo {
    ResourceInfo {
        name: wire.name,
        singular_name: singular(wire.singular_name, &wire.kind),
        kind: wire.kind,
        scope: scope(wire.namespaced),
        verbs: wire.verbs,
        short_names: wire.short_names,
        categories: wire.categories,
        subresources: Vec::new(),
    }
}

fn without_kind(name: &str, scope: Scope) -> ResourceInfo {
    ResourceInfo {
        name: name.to_owned(),
        singular_name: String::new(),
        kind: String::new(),
        scope,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
    }
}

fn core_versions(document: wire::LegacyVersions) -> Vec<ApiGroup> {
    group(String::new(), String::new(), document.versions.into_iter().map(unknown_yet)).into_iter().collect()
}

fn named_groups(document: wire::LegacyGroups) -> Vec<ApiGroup> {
    let groups = document.groups.into_iter().filter_map(|wire| {
        let versions = wire.versions.into_iter().map(|version| unknown_yet(version.version));
        group(wire.name, wire.preferred_version.version, versions)
    });
    first_of_each_name(groups)
}

/// Creates a version whose resources are not fetched yet.
fn unknown_yet(version: String) -> ApiVersion {
    ApiVersion { version, resources: Vec::new() }
}

/// Creates a group; `None` if it has no version and therefore no resources.
fn group(
    name: String,
    preferred_version: String,
    versions: impl IntoIterator<Item = ApiVersion>,
) -> Option<ApiGroup> {
    let versions = distinct(versions, |version| &version.version);
    let first = &versions.first()?.version;
    let preferred_version = if preferred_version.is_empty() { first.clone() } else { preferred_version };
    Some(ApiGroup { name, preferred_version, versions })
}

/// Keeps items that can be addressed: those with a name, and of each name the first.
fn distinct<T>(items: impl IntoIterator<Item = T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    let mut seen = HashSet::new();
    let mut is_new = |item: &T| !name(item).is_empty() && seen.insert(name(item).to_owned());
    items.into_iter().filter(|item| is_new(item)).collect()
}

/// Keeps the first group of each name. Here the empty name is valid: it is the core group.
fn first_of_each_name(groups: impl IntoIterator<Item = ApiGroup>) -> Vec<ApiGroup> {
    let mut seen = HashSet::new();
    groups.into_iter().filter(|group| seen.insert(group.name.clone())).collect()
}

fn kind_in(around: &GroupVersion, group: &str, version: &str, kind: &str) -> GroupVersionKind {
    // A version without a group is a kind of the core group (`v1 Pod` inside another group's document); if
    // both are empty, the group-version of the document applies.
    if group.is_empty() && version.is_empty() {
        around.clone().with_kind(kind)
    } else {
        GroupVersionKind::gvk(group, version, kind)
    }
}

fn singular(given: String, kind: &str) -> String {
    if given.is_empty() { kind.to_lowercase() } else { given }
}

fn scope(namespaced: bool) -> Scope {
    if namespaced { Scope::Namespaced } else { Scope::Cluster }
}

/// Parses JSON. The error contains the position and no part of the document.
fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| Unreadable::from(&error).to_string())
}

/// Makes a received name safe to print.
fn printable(name: &str) -> String {
    let short: String = name.chars().take(64).collect();
    format!("{short:?}")
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
