//! The roles and bindings every cluster has, so that users' bindings to `admin`, `edit` and `view` mean what they mean elsewhere.

use serde_json::{Value, json};

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// Which roles a rule belongs to: `edit` has all of `view`, `admin` all of `edit`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    View,
    Edit,
    Admin,
}

/// A group, resources of it, and from which level on they may be read and written.
type Row = (&'static str, &'static [&'static str], Option<Level>, Option<Level>);

/// What people work with in namespaces.
const RESOURCES: &[Row] = {
    use Level::{Admin, Edit, View};
    &[
        (
            "",
            &[
                "configmaps",
                "endpoints",
                "persistentvolumeclaims",
                "pods",
                "replicationcontrollers",
                "serviceaccounts",
                "services",
            ],
            Some(View),
            Some(Edit),
        ),
        ("", &["replicationcontrollers/scale"], Some(View), Some(Edit)),
        ("", &["secrets"], Some(Edit), Some(Edit)),
        (
            "",
            &[
                "bindings",
                "events",
                "limitranges",
                "namespaces",
                "namespaces/status",
                "persistentvolumeclaims/status",
                "pods/log",
                "pods/status",
                "replicationcontrollers/status",
                "resourcequotas",
                "resourcequotas/status",
                "services/status",
            ],
            Some(View),
            None,
        ),
        (
            "",
            &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"],
            Some(Edit),
            Some(Edit),
        ),
        ("discovery.k8s.io", &["endpointslices"], Some(View), None),
        (
            "apps",
            &[
                "daemonsets",
                "deployments",
                "deployments/scale",
                "replicasets",
                "replicasets/scale",
                "statefulsets",
                "statefulsets/scale",
            ],
            Some(View),
            Some(Edit),
        ),
        (
            "apps",
            &[
                "controllerrevisions",
                "daemonsets/status",
                "deployments/status",
                "replicasets/status",
                "statefulsets/status",
            ],
            Some(View),
            None,
        ),
        ("autoscaling", &["horizontalpodautoscalers"], Some(View), Some(Edit)),
        ("autoscaling", &["horizontalpodautoscalers/status"], Some(View), None),
        ("batch", &["cronjobs", "jobs"], Some(View), Some(Edit)),
        ("batch", &["cronjobs/status", "jobs/status"], Some(View), None),
        ("policy", &["poddisruptionbudgets"], Some(View), Some(Edit)),
        ("policy", &["poddisruptionbudgets/status"], Some(View), None),
        ("networking.k8s.io", &["ingresses", "networkpolicies"], Some(View), Some(Edit)),
        ("networking.k8s.io", &["ingresses/status"], Some(View), None),
        ("coordination.k8s.io", &["leases"], Some(Edit), Some(Edit)),
        ("rbac.authorization.k8s.io", &["rolebindings", "roles"], Some(Admin), Some(Admin)),
    ]
};

/// All of them, as objects to store when a server starts.
pub(crate) fn objects() -> Vec<Value> {
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    let create = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["create"]});
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    let public = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let mut objects = vec![
        cluster_role("cluster-admin", &everything),
        cluster_role("system:discovery", &json!([{"nonResourceURLs": discovery, "verbs": ["get"]}])),
        cluster_role("system:public-info-viewer", &json!([{"nonResourceURLs": public, "verbs": ["get"]}])),
        cluster_role(
            "system:basic-user",
            &json!([
                create("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
                create("authentication.k8s.io", &["selfsubjectreviews"]),
            ]),
        ),
        cluster_role(
            "system:auth-delegator",
            &json!([
                create("authentication.k8s.io", &["tokenreviews"]),
                create("authorization.k8s.io", &["subjectaccessreviews"]),
            ]),
        ),
        binding("cluster-admin", &["system:masters"]),
        binding("system:discovery", &["system:authenticated"]),
        binding("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
        binding("system:basic-user", &["system:authenticated"]),
    ];
    for (name, level) in [("admin", Level::Admin), ("edit", Level::Edit), ("view", Level::View)] {
        objects.extend(people(name, level));
    }
    objects
}

/// A role for people, and the role its rules stand in: the first gathers by label, so that an operator can add the rules
/// for its own kinds to what `view` means.
fn people(name: &str, level: Level) -> [Value; 2] {
    let includes = |other: Option<Level>| match (level, other) {
        (_, None) => false,
        (Level::Admin, Some(_)) => true,
        (Level::Edit, Some(other)) => other != Level::Admin,
        (Level::View, Some(other)) => other == Level::View,
    };
    let mut rules = Vec::new();
    for (group, resources, reads, writes) in RESOURCES {
        let verbs: Vec<&str> = [(includes(*reads), &READ[..]), (includes(*writes), &WRITE[..])]
            .into_iter()
            .filter(|(is_included, _)| *is_included)
            .flat_map(|(_, verbs)| verbs.iter().copied())
            .collect();
        if !verbs.is_empty() {
            rules.push(json!({"apiGroups": [group], "resources": resources, "verbs": verbs}));
        }
    }
    if level == Level::Admin {
        let reviews = ["localsubjectaccessreviews"];
        rules.push(json!({"apiGroups": ["authorization.k8s.io"], "resources": reviews, "verbs": ["create"]}));
    }
    if level != Level::View {
        rules.push(json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}));
        rules.push(json!({"apiGroups": [""], "resources": ["pods/eviction", "serviceaccounts/token"], "verbs": ["create"]}));
    }
    let label = |name: &str| format!("rbac.authorization.k8s.io/aggregate-to-{name}");
    let mut gathering = cluster_role(name, &json!([]));
    gathering["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label(name): "true"}}]});
    let mut gathered = cluster_role(&format!("system:aggregate-to-{name}"), &Value::Array(rules));
    gathered["metadata"]["labels"][label(name)] = "true".into();
    [gathering, gathered]
}

fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({"kind": "ClusterRole", "apiVersion": API_VERSION, "metadata": metadata(name), "rules": rules})
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let api_group = "rbac.authorization.k8s.io";
    let subjects: Vec<Value> =
        groups.iter().map(|group| json!({"kind": "Group", "apiGroup": api_group, "name": group})).collect();
    json!({
        "kind": "ClusterRoleBinding",
        "apiVersion": API_VERSION,
        "metadata": metadata(role),
        "roleRef": {"kind": "ClusterRole", "apiGroup": api_group, "name": role},
        "subjects": subjects,
    })
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{
        attributes::{Attributes, ResourceAttributes},
        rbac::{RbacObjects, RbacPolicy},
        user::User,
    };

    fn policy(role: &str) -> RbacPolicy {
        let all = objects();
        let of = |kind: &str| -> Vec<Value> {
            all.iter().filter(|object| object["kind"] == kind).cloned().collect()
        };
        let own = json!({"metadata": {"name": "own", "namespace": "n"}, "roleRef": {"kind": "ClusterRole", "name": role},
                         "subjects": [{"kind": "User", "name": "ann"}]});
        RbacPolicy::new(RbacObjects {
            cluster_roles: &of("ClusterRole"),
            cluster_role_bindings: &of("ClusterRoleBinding"),
            role_bindings: &[own],
            ..RbacObjects::default()
        })
    }

    fn may(role: &str, verb: &str, group: &str, resource: &str) -> bool {
        let ann = User { name: "ann".into(), groups: vec!["system:authenticated".into()], ..User::default() };
        let asked = ResourceAttributes {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            namespace: "n".into(),
            ..ResourceAttributes::default()
        };
        policy(role).decide(&ann, &Attributes::Resource(asked)).is_allowed
    }

    #[test]
    fn view_reads_edit_writes_admin_gives_roles() {
        let cases = [
            ("list", "", "pods", [true, true, true]),
            ("list", "", "secrets", [false, true, true]),
            ("create", "apps", "deployments", [false, true, true]),
            ("create", "rbac.authorization.k8s.io", "roles", [false, false, true]),
            ("create", "", "nodes", [false, false, false]),
        ];
        for (verb, group, resource, expected) in cases {
            let found = ["view", "edit", "admin"].map(|role| may(role, verb, group, resource));
            assert_eq!(found, expected, "{verb} {resource}");
        }
    }

    #[test]
    fn everybody_sees_health_and_only_the_authenticated_discover() {
        let decide = |user: &User, path: &str| {
            policy("view")
                .decide(user, &Attributes::Path { verb: "get".into(), path: path.into() })
                .is_allowed
        };
        let known =
            User { name: "bob".into(), groups: vec!["system:authenticated".into()], ..User::default() };
        for (path, anonymous, authenticated) in [
            ("/healthz", true, true),
            ("/version", true, true),
            ("/apis", false, true),
            ("/apis/apps/v1", false, true),
            ("/metrics", false, false),
        ] {
            assert_eq!(decide(&User::anonymous(), path), anonymous, "{path}");
            assert_eq!(decide(&known, path), authenticated, "{path}");
        }
    }

    #[test]
    fn masters_are_bound_to_everything() {
        assert!(!may("view", "delete", "", "pods"));
        let master = User { groups: vec!["system:masters".into()], ..User::default() };
        let asked = Attributes::Resource(ResourceAttributes {
            verb: "delete".into(),
            resource: "nodes".into(),
            ..Default::default()
        });
        assert!(policy("view").decide(&master, &asked).is_allowed);
    }
}
