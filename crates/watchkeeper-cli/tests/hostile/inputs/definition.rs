//! The definition and the objects of a custom kind.

use serde_json::{Value, json};

use crate::http::{Input, post};

/// The collection of definitions.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The collection of the objects of [`definition`].
pub(crate) const OBJECTS: &str = "/apis/example.com/v1/namespaces/default/things";

/// Returns the definition of `things` with a schema for their `spec`.
pub(crate) fn definition(spec: &Value) -> Input {
    named_definition("things", spec)
}

/// Returns a definition of this name in the group `example.com`.
pub(crate) fn named_definition(plural: &str, spec: &Value) -> Input {
    let kind = format!("Kind{plural}");
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    post(
        DEFINITIONS,
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}],
            },
        }),
    )
}

/// Returns an object of [`definition`] with a `spec`.
pub(crate) fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Kindthings", "metadata": {"generateName": "t-"}, "spec": spec})
}
