//! Definitions of custom resources as YAML.

use kube_core::CustomResourceExt;

use super::{YamlError, to_yaml};

/// The definition of a custom resource made with `#[derive(CustomResource)]`, as YAML to be piped into `kubectl apply -f -`.
///
/// # Errors
/// If it cannot be written.
pub fn definition_yaml<K: CustomResourceExt>() -> Result<String, YamlError> {
    to_yaml(&[K::crd()])
}
