//! Custom resource definitions as YAML.

use kube_core::CustomResourceExt;

use super::{YamlError, to_yaml};

/// Returns the definition of a custom resource made with `#[derive(CustomResource)]` as YAML, ready for
/// `kubectl apply -f -`.
///
/// # Errors
/// Returns a [`YamlError`] if the definition cannot be serialized.
pub fn definition_yaml<K: CustomResourceExt>() -> Result<String, YamlError> {
    to_yaml(&[K::crd()])
}
