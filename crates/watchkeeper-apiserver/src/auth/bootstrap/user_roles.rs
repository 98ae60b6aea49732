//! The user-facing roles: `admin` includes `edit`, which includes `view`.
//!
//! The three roles aggregate rules by label, so that an operator can add rules for its own kinds to them.

use serde_json::{Value, json};

use super::{READ, READ_WRITE, WRITE, cluster_role, rule};

/// Returns the three roles and those that hold their rules.
pub(super) fn roles() -> Vec<Value> {
    vec![
        aggregating_role("admin", None),
        aggregating_role("edit", Some("admin")),
        aggregating_role("view", Some("edit")),
        aggregated_role("admin", &admin_rules()),
        aggregated_role("edit", &edit_rules()),
        aggregated_role("view", &view_rules()),
    ]
}

fn label(name: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{name}")
}

/// Returns the role `name`, whose rules are also those of the role `included_in`.
fn aggregating_role(name: &str, included_in: Option<&str>) -> Value {
    let mut role = cluster_role(name, &[]);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label(name): "true"}}]});
    if let Some(other) = included_in {
        role["metadata"]["labels"][label(other)] = "true".into();
    }
    role
}

/// Returns the role that holds the rules of the role `name`.
fn aggregated_role(name: &str, rules: &[Value]) -> Value {
    let mut role = cluster_role(&format!("system:aggregate-to-{name}"), rules);
    role["metadata"]["labels"][label(name)] = "true".into();
    role
}

fn admin_rules() -> Vec<Value> {
    vec![
        rule(&["create"], &["authorization.k8s.io"], &["localsubjectaccessreviews"]),
        rule(READ_WRITE, &["rbac.authorization.k8s.io"], &["rolebindings", "roles"]),
    ]
}

fn edit_rules() -> Vec<Value> {
    vec![
        // Reading these resources gives the permissions of other identities, so `view` does not include them.
        rule(
            READ,
            &[""],
            &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"],
        ),
        rule(&["impersonate"], &[""], &["serviceaccounts"]),
        rule(WRITE, &[""], &["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"]),
        rule(&["create"], &[""], &["pods/eviction"]),
        rule(
            WRITE,
            &[""],
            &[
                "configmaps",
                "persistentvolumeclaims",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "secrets",
                "serviceaccounts",
                "services",
                "services/proxy",
            ],
        ),
        rule(&["create"], &[""], &["serviceaccounts/token"]),
        rule(WRITE, &["", "events.k8s.io"], &["events"]),
        rule(
            WRITE,
            &["apps"],
            &[
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "replicasets",
                "replicasets/scale",
                "statefulsets",
                "statefulsets/scale",
            ],
        ),
        rule(WRITE, &["autoscaling"], &["horizontalpodautoscalers"]),
        rule(WRITE, &["batch"], &["cronjobs", "jobs"]),
        rule(
            WRITE,
            &["extensions"],
            &[
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "ingresses",
                "networkpolicies",
                "replicasets",
                "replicasets/scale",
                "replicationcontrollers/scale",
            ],
        ),
        rule(WRITE, &["policy"], &["poddisruptionbudgets"]),
        rule(WRITE, &["networking.k8s.io"], &["ingresses", "networkpolicies"]),
        rule(READ_WRITE, &["coordination.k8s.io"], &["leases"]),
        rule(WRITE, &["resource.k8s.io"], &["resourceclaims", "resourceclaimtemplates"]),
    ]
}

fn view_rules() -> Vec<Value> {
    vec![
        rule(
            READ,
            &[""],
            &[
                "configmaps",
                "endpoints",
                "persistentvolumeclaims",
                "persistentvolumeclaims/status",
                "pods",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "serviceaccounts",
                "services",
                "services/status",
            ],
        ),
        rule(
            READ,
            &[""],
            &[
                "bindings",
                "limitranges",
                "namespaces/status",
                "pods/log",
                "pods/status",
                "replicationcontrollers/status",
                "resourcequotas",
                "resourcequotas/status",
            ],
        ),
        rule(READ, &[""], &["namespaces"]),
        rule(READ, &["", "events.k8s.io"], &["events"]),
        rule(READ, &["discovery.k8s.io"], &["endpointslices"]),
        rule(
            READ,
            &["apps"],
            &[
                "controllerrevisions",
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/scale",
                "deployments/status",
                "replicasets",
                "replicasets/scale",
                "replicasets/status",
                "statefulsets",
                "statefulsets/scale",
                "statefulsets/status",
            ],
        ),
        rule(READ, &["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
        rule(READ, &["batch"], &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
        rule(
            READ,
            &["extensions"],
            &[
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/scale",
                "deployments/status",
                "ingresses",
                "ingresses/status",
                "networkpolicies",
                "replicasets",
                "replicasets/scale",
                "replicasets/status",
                "replicationcontrollers/scale",
            ],
        ),
        rule(READ, &["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
        rule(READ, &["networking.k8s.io"], &["ingresses", "ingresses/status", "networkpolicies"]),
        rule(
            READ,
            &["resource.k8s.io"],
            &["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"],
        ),
    ]
}
