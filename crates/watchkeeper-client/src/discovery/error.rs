//! Why discovery or a mapping failed.

use std::sync::Arc;

use kube_core::GroupVersion;

use super::mapping::RestMapping;
use crate::Error;

/// Why nothing is known of what the server serves.
///
/// A part that failed is no error: it is in [`ServerResources::failures`](super::ServerResources::failures).
/// Cheap to clone, because callers that waited for the same fetch get the same error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// A request failed.
    #[error("discovery: {0}")]
    Request(#[source] Arc<Error>),
    /// The server answered with something that is not a discovery document.
    #[error(
        "discovery: the answer of {path} is no discovery document: {reason}; is this a Kubernetes API server?"
    )]
    Document {
        /// What was asked for.
        path: String,
        /// What is wrong with it; quotes nothing of it.
        reason: String,
    },
    /// Neither `/api` nor `/apis` exists.
    #[error("discovery: neither /api nor /apis exists; is this a Kubernetes API server?")]
    NothingServed,
}

/// Why a name could not be mapped to a resource.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The server serves nothing of that name.
    #[error("the server serves no {asked:?}{}", unknown_hint(unknown))]
    NoMatch {
        /// The name.
        asked: String,
        /// Group-versions whose resources are not known, so that the name may be one of theirs.
        unknown: Vec<GroupVersion>,
    },
    /// Several resources match, and no rule prefers one.
    #[error("{asked:?} may be any of: {}; name the resource, version and group", list(candidates))]
    Ambiguous {
        /// The name.
        asked: String,
        /// What it may be.
        candidates: Vec<RestMapping>,
    },
    /// The object does not say what it is.
    #[error("the object carries no apiVersion and kind to map; set both")]
    Untyped,
    /// What the server serves could not be learnt.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

fn unknown_hint(unknown: &[GroupVersion]) -> String {
    if unknown.is_empty() {
        return String::new();
    }
    let names: Vec<String> = unknown.iter().map(GroupVersion::api_version).collect();
    format!("; not known is what these serve, because discovery failed for them: {}", names.join(", "))
}

fn list(candidates: &[RestMapping]) -> String {
    let names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    names.join(", ")
}
