//! The default roles and bindings of every cluster, so that bindings to `admin`, `edit` and `view` have the same effect
//! here.
//!
//! | module | content |
//! |---|---|
//! | [`user_roles`] | `admin`, `edit`, `view` and the roles they aggregate |
//! | [`system_roles`] | roles of components and of every user |

mod system_roles;
#[cfg(test)]
mod tests;
mod user_roles;

use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Returns all default objects, in an order in which they can be created.
pub(crate) fn objects() -> Vec<Value> {
    let mut objects = user_roles::roles();
    objects.extend(system_roles::objects());
    objects
}

/// Returns a rule about resources.
fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": groups, "resources": resources})
}

/// Returns a rule about some objects of a resource, by name.
fn named_rule(verbs: &[&str], group: &str, resource: &str, names: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": [resource], "resourceNames": names})
}

/// Returns the permission to GET paths.
fn paths(paths: &[&str]) -> Value {
    json!({"nonResourceURLs": paths, "verbs": ["get"]})
}

fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({"kind": "ClusterRole", "apiVersion": API_VERSION, "metadata": metadata(name), "rules": rules})
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}
