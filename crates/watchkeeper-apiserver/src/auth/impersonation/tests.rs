//! Impersonation under stored roles.

use std::sync::Arc;

use http::HeaderValue;
use serde_json::{Value, json};

use super::*;
use crate::auth::{
    attributes::ResourceAttributes,
    rbac::{RbacObjects, RbacPolicy},
};

fn authorizer(rules: &Value) -> Authorizer {
    Authorizer::Rbac(Arc::new(RbacPolicy::new(RbacObjects {
        cluster_roles: &[json!({"metadata": {"name": "r"}, "rules": rules})],
        cluster_role_bindings: &[
            json!({"metadata": {"name": "r"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "ann"}, {"kind": "Group", "name": "system:serviceaccounts"}]}),
        ],
        ..RbacObjects::default()
    })))
}

fn ann() -> User {
    User { name: "ann".into(), groups: vec!["system:authenticated".into()], ..User::default() }
}

/// Sends headers `name: value` with a request to list pods in the namespace `n`.
fn act(rules: &Value, requestor: User, lines: &[&'static str]) -> Result<User, ApiError> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a header");
        headers.append(name, HeaderValue::from_static(value));
    }
    let listing = Attributes::Resource(ResourceAttributes {
        verb: "list".into(),
        resource: "pods".into(),
        namespace: "n".into(),
        ..ResourceAttributes::default()
    });
    impersonate(&authorizer(rules), requestor, &headers, &listing)
}

fn rule(verb: &str, group: &str, resource: &str) -> Value {
    json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]})
}

#[test]
fn each_part_of_the_impersonated_user_needs_the_verb_impersonate_on_its_resource() {
    let users = rule("impersonate", "", "users");
    let groups = rule("impersonate", "", "groups");
    let accounts = rule("impersonate", "", "serviceaccounts");
    let uids = rule("impersonate", "authentication.k8s.io", "uids");
    let scopes = rule("impersonate", "authentication.k8s.io", "userextras/scopes");
    let one_user = json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]});
    let cases: [(Value, &[&'static str], bool); 13] = [
        (json!([]), &[], true),
        (json!([]), &["impersonate-user: bob"], false),
        (json!([users]), &["impersonate-user: bob"], true),
        (json!([one_user]), &["impersonate-user: bob"], true),
        (json!([one_user]), &["impersonate-user: eve"], false),
        (json!([users]), &["impersonate-user: bob", "impersonate-group: dev"], false),
        (json!([users, groups]), &["impersonate-user: bob", "impersonate-group: dev"], true),
        (json!([users]), &["impersonate-user: bob", "impersonate-uid: 7"], false),
        (json!([users, uids]), &["impersonate-user: bob", "impersonate-uid: 7"], true),
        (json!([users, scopes]), &["impersonate-user: bob", "impersonate-extra-scopes: a"], true),
        (json!([users, scopes]), &["impersonate-user: bob", "impersonate-extra-other: a"], false),
        (json!([users]), &["impersonate-user: system:serviceaccount:n:robot"], false),
        (json!([accounts]), &["impersonate-user: system:serviceaccount:n:robot"], true),
    ];
    for (rules, lines, expected) in cases {
        let acted = act(&rules, ann(), lines);
        assert_eq!(acted.is_ok(), expected, "{rules} {lines:?}");
        if let Err(error) = acted {
            assert_eq!((error.code, error.reason), (403, "Forbidden"), "{rules} {lines:?}");
        }
    }
}

#[test]
fn the_impersonated_user_has_the_groups_that_follow_from_its_name() {
    let all = json!([rule("*", "*", "*")]);
    let cases: [(&[&'static str], &[&str]); 6] = [
        (&["impersonate-user: bob"], &["system:authenticated"]),
        (&["impersonate-user: bob", "impersonate-group: dev"], &["dev", "system:authenticated"]),
        (
            &["impersonate-user: bob", "impersonate-group: system:unauthenticated"],
            &["system:unauthenticated"],
        ),
        (&["impersonate-user: system:anonymous"], &["system:unauthenticated"]),
        (
            &["impersonate-user: system:serviceaccount:n:robot"],
            &["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"],
        ),
        (&["impersonate-user: system:node:a"], &["system:nodes", "system:authenticated"]),
    ];
    for (lines, groups) in cases {
        let user = act(&all, ann(), lines).expect("everything is permitted");
        assert_eq!(user.groups, groups, "{lines:?}");
        assert_eq!(user.extra.len() + user.uid.len(), 0, "nothing of the requestor is kept");
    }
}

#[test]
fn a_constrained_mode_grants_a_user_for_some_requests_only() {
    let user_rule = rule("impersonate:user-info", "authentication.k8s.io", "users");
    let listing = rule("impersonate-on:user-info:list", "", "pods");
    let deleting = rule("impersonate-on:user-info:delete", "", "pods");
    let as_bob: &[&'static str] = &["impersonate-user: bob"];
    assert_eq!(act(&json!([user_rule, listing]), ann(), as_bob).expect("permitted").name, "bob");
    assert!(act(&json!([user_rule, deleting]), ann(), as_bob).is_err(), "another request");
    assert!(act(&json!([user_rule]), ann(), as_bob).is_err(), "no request at all");
    assert!(act(&json!([listing]), ann(), as_bob).is_err(), "no user");
    let groups = rule("impersonate:user-info", "authentication.k8s.io", "groups");
    let as_master: &[&'static str] = &["impersonate-user: bob", "impersonate-group: system:masters"];
    assert!(act(&json!([user_rule, groups, listing]), ann(), as_master).is_err(), "never a master");
    let refused = act(&json!([]), ann(), as_bob).expect_err("nothing is permitted");
    assert_eq!(
        refused.message,
        "pods is forbidden: User \"ann\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" \
         in the namespace \"n\""
    );
}

#[test]
fn a_service_account_impersonates_its_own_node_in_associated_node_mode() {
    let rules = json!([
        {"verbs": ["impersonate:associated-node"], "apiGroups": ["authentication.k8s.io"], "resources": ["nodes"]},
        rule("impersonate-on:associated-node:list", "", "pods"),
    ]);
    let agent = |node: &str| User {
        name: "system:serviceaccount:n:agent".into(),
        groups: vec!["system:serviceaccounts".into()],
        extra: [("authentication.kubernetes.io/node-name".to_owned(), vec![node.to_owned()])].into(),
        ..User::default()
    };
    let as_node: &[&'static str] = &["impersonate-user: system:node:a"];
    assert_eq!(act(&rules, agent("a"), as_node).expect("its node").name, "system:node:a");
    assert!(act(&rules, agent("b"), as_node).is_err(), "another node");
}
