//! Errors of discovery and REST mapping.

use std::sync::Arc;

use kube_core::GroupVersion;

use super::mapping::RestMapping;
use crate::Error;

/// The reason that discovery failed completely.
///
/// A partial failure is not an error: it is listed in
/// [`ServerResources::failures`](super::ServerResources::failures). The error is cheap to clone, because
/// callers that waited for the same fetch receive the same error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// A discovery request failed.
    #[error("discovery: {0}")]
    Request(#[source] Arc<Error>),
    /// The server returned something other than a discovery document.
    #[error(
        "discovery: the response of {path} is not a discovery document: {reason}; is this a Kubernetes API server?"
    )]
    Document {
        /// The requested path.
        path: String,
        /// The problem with the response, without quoting it.
        reason: String,
    },
    /// The server has neither `/api` nor `/apis`.
    #[error("discovery: neither /api nor /apis exists; is this a Kubernetes API server?")]
    NothingServed,
}

/// The reason that a name could not be mapped to a resource.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The server has no resource of that name.
    #[error("the server serves no {name:?}{}", unknown_hint(unknown))]
    NoMatch {
        /// The requested name.
        name: String,
        /// Group-versions for which discovery failed, so that they may contain the name.
        unknown: Vec<GroupVersion>,
    },
    /// Several resources match, and no rule prefers one.
    #[error("{name:?} may be any of: {}; name the resource, version and group", list(candidates))]
    Ambiguous {
        /// The requested name.
        name: String,
        /// The matching resources.
        candidates: Vec<RestMapping>,
    },
    /// The object has no `apiVersion` or `kind`.
    #[error("the object has no apiVersion and kind to map; set both")]
    Untyped,
    /// Discovery failed completely.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

fn unknown_hint(unknown: &[GroupVersion]) -> String {
    if unknown.is_empty() {
        return String::new();
    }
    let names: Vec<String> = unknown.iter().map(GroupVersion::api_version).collect();
    format!("; discovery failed for these groups, which may serve it: {}", names.join(", "))
}

fn list(candidates: &[RestMapping]) -> String {
    let names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    names.join(", ")
}
