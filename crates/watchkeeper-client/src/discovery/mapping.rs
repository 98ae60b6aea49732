//! Mapping between names, kinds and resources in one snapshot of discovery, without requests.

use std::fmt;

use kube_core::{ApiResource, GroupVersion, GroupVersionKind, discovery::Scope};

use super::{
    error::MappingError,
    model::{ResourceInfo, ServerResources},
};
use crate::dynamic::GroupVersionResource;

/// A kind and the resource that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestMapping {
    /// The resource that requests address.
    pub resource: GroupVersionResource,
    /// The kind of the objects.
    pub kind: GroupVersionKind,
    /// Whether the objects are namespaced.
    pub scope: Scope,
}

impl RestMapping {
    /// Returns whether the objects are namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Converts to kube's type for dynamic objects.
    pub fn to_api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&self.kind, &self.resource.resource)
    }
}

impl fmt::Display for RestMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.resource, self.kind.kind)
    }
}

/// The group part of a lookup.
#[derive(Debug, Clone, Copy)]
enum Group<'a> {
    Any,
    Exactly(&'a str),
    /// A group as in kubectl: `networking` matches `networking.k8s.io` if no group has that exact name.
    Abbreviated(&'a str),
}

/// A match, with the ranks that decide between several.
struct Candidate {
    group_rank: usize,
    version_rank: usize,
    mapping: RestMapping,
}

impl ServerResources {
    /// Returns the mapping of exactly this resource.
    ///
    /// # Errors
    /// Returns [`MappingError::NoMatch`] if the server does not serve it.
    pub fn mapping_of_resource(&self, name: &GroupVersionResource) -> Result<RestMapping, MappingError> {
        let matches = self.candidates(Group::Exactly(&name.group), Some(&name.version), |resource| {
            resource.name == name.resource
        });
        self.best(&name.to_string(), matches)
    }

    /// Returns the mapping of exactly this kind.
    ///
    /// # Errors
    /// Returns [`MappingError::NoMatch`] if the server does not serve the kind, and
    /// [`MappingError::Ambiguous`] if it serves the kind under several names.
    pub fn mapping_of_kind(&self, kind: &GroupVersionKind) -> Result<RestMapping, MappingError> {
        let matches = self.candidates(Group::Exactly(&kind.group), Some(&kind.version), |resource| {
            resource.kind == kind.kind
        });
        self.best(&format!("{} {}", kind.api_version(), kind.kind), matches)
    }

    /// Finds a resource by a name as typed by a user: plural, singular or short name, in any case, alone or
    /// with a group (`deployments.apps`) or a version and a group (`deployments.v1.apps`, `pods.v1.` for the
    /// core group). A group may be abbreviated to its beginning if that is not the name of another.
    ///
    /// Of several matches, the first group in the server's order of priority wins, and within it the
    /// preferred version, as in kubectl: `events` is that of the core group. A short name matches only if no
    /// resource has that name.
    ///
    /// # Errors
    /// Returns [`MappingError::NoMatch`] if nothing matches, and [`MappingError::Ambiguous`] if these rules
    /// leave several resources.
    pub fn find_resource(&self, name: &str) -> Result<RestMapping, MappingError> {
        let lower = name.to_lowercase();
        for parsed in interpretations(&lower) {
            let by_name = |resource: &ResourceInfo| {
                resource.name == parsed.name || resource.singular_name == parsed.name
            };
            let by_short_name =
                |resource: &ResourceInfo| resource.short_names.iter().any(|short| short == parsed.name);
            let mut matches = self.candidates(parsed.group, parsed.version, by_name);
            if matches.is_empty() {
                matches = self.candidates(parsed.group, parsed.version, by_short_name);
            }
            if !matches.is_empty() {
                return self.best(name, matches);
            }
        }
        self.best(name, Vec::new())
    }

    /// Finds a resource by the name of its kind as typed by a user: `Deployment`, `Deployment.apps` or
    /// `Deployment.v1.apps`. The kind is case-sensitive; the other rules are those of
    /// [`find_resource`](Self::find_resource).
    ///
    /// # Errors
    /// Returns [`MappingError::NoMatch`] if nothing matches, and [`MappingError::Ambiguous`] if the rules
    /// leave several resources.
    #[doc(alias = "recommended_kind")]
    pub fn find_kind(&self, name: &str) -> Result<RestMapping, MappingError> {
        for parsed in interpretations(name) {
            let matches =
                self.candidates(parsed.group, parsed.version, |resource| resource.kind == parsed.name);
            if !matches.is_empty() {
                return self.best(name, matches);
            }
        }
        self.best(name, Vec::new())
    }

    fn candidates(
        &self,
        group: Group<'_>,
        version: Option<&str>,
        matches: impl Fn(&ResourceInfo) -> bool,
    ) -> Vec<Candidate> {
        let search = |accepts: &dyn Fn(&str) -> bool| {
            let mut found = Vec::new();
            for (group_rank, group) in
                self.groups.iter().enumerate().filter(|(_, group)| accepts(&group.name))
            {
                for (version_rank, candidate) in group.versions_by_preference().enumerate() {
                    if version.is_some_and(|version| version != candidate.version) {
                        continue;
                    }
                    let group_version = GroupVersion::gv(&group.name, &candidate.version);
                    // A resource without a kind has only subresources and cannot be mapped.
                    let resources = candidate.resources.iter().filter(|resource| !resource.kind.is_empty());
                    found.extend(resources.filter(|resource| matches(resource)).map(|resource| Candidate {
                        group_rank,
                        version_rank,
                        mapping: mapping(&group_version, resource),
                    }));
                }
            }
            found
        };
        match group {
            Group::Any => search(&|_| true),
            Group::Exactly(wanted) => search(&|name| name == wanted),
            Group::Abbreviated(wanted) => {
                let exact = search(&|name| name == wanted);
                if exact.is_empty() { search(&|name| name.starts_with(wanted)) } else { exact }
            }
        }
    }

    fn best(&self, name: &str, matches: Vec<Candidate>) -> Result<RestMapping, MappingError> {
        let rank = |candidate: &Candidate| (candidate.group_rank, candidate.version_rank);
        let Some(top) = matches.iter().map(rank).min() else {
            return Err(MappingError::NoMatch {
                name: name.to_owned(),
                unknown: self.failures.iter().map(|failure| failure.group_version.clone()).collect(),
            });
        };
        let mut best: Vec<RestMapping> =
            matches.into_iter().filter(|candidate| rank(candidate) == top).map(|c| c.mapping).collect();
        match best.pop() {
            Some(only) if best.is_empty() => Ok(only),
            last => {
                best.extend(last);
                Err(MappingError::Ambiguous { name: name.to_owned(), candidates: best })
            }
        }
    }
}

fn mapping(group_version: &GroupVersion, resource: &ResourceInfo) -> RestMapping {
    RestMapping {
        resource: GroupVersionResource::new(&group_version.group, &group_version.version, &resource.name),
        kind: group_version.clone().with_kind(&resource.kind),
        scope: resource.scope.clone(),
    }
}

struct ParsedName<'a> {
    name: &'a str,
    version: Option<&'a str>,
    group: Group<'a>,
}

/// Returns the possible interpretations of a name, the most specific first: `a.b.c` is a resource, version
/// and group, or a resource and a group that contains a dot.
fn interpretations(text: &str) -> Vec<ParsedName<'_>> {
    let (name, rest) = text.split_once('.').map_or((text, None), |(name, rest)| (name, Some(rest)));
    // An empty name matches nothing, although a server may leave a singular name empty.
    if name.is_empty() {
        return Vec::new();
    }
    let Some(rest) = rest else {
        return vec![ParsedName { name, version: None, group: Group::Any }];
    };
    let versioned = rest.split_once('.').map(|(version, group)| ParsedName {
        name,
        version: Some(version),
        group: Group::written(group),
    });
    let plain = ParsedName { name, version: None, group: Group::written(rest) };
    versioned.into_iter().chain([plain]).collect()
}

impl<'a> Group<'a> {
    /// Parses a group as typed by a user. Every name begins with the empty string, so an empty group is
    /// exact.
    fn written(text: &'a str) -> Self {
        if text.is_empty() { Self::Exactly(text) } else { Self::Abbreviated(text) }
    }
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
