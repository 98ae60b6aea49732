//! The default roles: decisions for users bound to them.

use super::*;
use crate::auth::{
    attributes::{Attributes, ResourceAttributes},
    rbac::{RbacObjects, RbacPolicy},
    user::User,
};

fn policy(role: &str) -> RbacPolicy {
    let all = objects();
    let of =
        |kind: &str| -> Vec<Value> { all.iter().filter(|object| object["kind"] == kind).cloned().collect() };
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
    let attributes = ResourceAttributes {
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        namespace: "n".into(),
        ..ResourceAttributes::default()
    };
    policy(role).decide(&ann, &Attributes::Resource(attributes)).is_allowed
}

#[test]
fn view_reads_edit_writes_and_admin_grants_roles() {
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
fn anonymous_users_read_health_and_only_authenticated_users_read_discovery() {
    let decide = |user: &User, path: &str| {
        policy("view").decide(user, &Attributes::Path { verb: "get".into(), path: path.into() }).is_allowed
    };
    let known = User { name: "bob".into(), groups: vec!["system:authenticated".into()], ..User::default() };
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
fn system_masters_has_every_permission() {
    assert!(!may("view", "delete", "", "pods"));
    let master = User { groups: vec!["system:masters".into()], ..User::default() };
    let attributes = Attributes::Resource(ResourceAttributes {
        verb: "delete".into(),
        resource: "nodes".into(),
        ..Default::default()
    });
    assert!(policy("view").decide(&master, &attributes).is_allowed);
}

#[test]
fn monitors_read_metrics_and_service_accounts_read_the_keys_of_their_tokens() {
    let in_group = |group: &str| User { name: "x".into(), groups: vec![group.into()], ..User::default() };
    for (group, path, expected) in [
        ("system:monitoring", "/metrics", true),
        ("system:monitoring", "/readyz/ping", true),
        ("system:monitoring", "/apis", false),
        ("system:serviceaccounts", "/openid/v1/jwks", true),
        ("system:serviceaccounts", "/.well-known/openid-configuration", true),
        ("system:authenticated", "/openid/v1/jwks", false),
    ] {
        let attributes = Attributes::Path { verb: "get".into(), path: path.into() };
        assert_eq!(
            policy("view").decide(&in_group(group), &attributes).is_allowed,
            expected,
            "{group} {path}"
        );
    }
}

#[test]
fn editors_but_not_viewers_issue_tokens_and_evict_pods() {
    for resource in ["pods/eviction", "serviceaccounts/token"] {
        let (resource, subresource) = resource.split_once('/').expect("a subresource");
        for (role, expected) in [("view", false), ("edit", true), ("admin", true)] {
            let ann = User { name: "ann".into(), ..User::default() };
            let attributes = ResourceAttributes {
                verb: "create".into(),
                resource: resource.into(),
                subresource: subresource.into(),
                namespace: "n".into(),
                ..ResourceAttributes::default()
            };
            let decision = policy(role).decide(&ann, &Attributes::Resource(attributes));
            assert_eq!(decision.is_allowed, expected, "{role} {resource}/{subresource}");
        }
    }
}
