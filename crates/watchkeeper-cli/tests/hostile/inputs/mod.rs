//! The inputs, by class.

pub(crate) mod bodies;
pub(crate) mod connections;
pub(crate) mod custom;
pub(crate) mod definition;
pub(crate) mod objects;
pub(crate) mod patches;
pub(crate) mod reads;
pub(crate) mod rules;
pub(crate) mod watches;

/// The collection of the `ConfigMaps` that inputs create.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The collection of the pods that inputs create.
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// Returns distinct names of the same length.
pub(crate) fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("k{number:06}"))
}
