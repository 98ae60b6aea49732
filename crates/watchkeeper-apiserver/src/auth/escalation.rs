//! Nobody grants what they do not have.
//!
//! Whoever writes a role must hold its rules, or the verb `escalate` on roles; whoever binds a role must hold the rules of the
//! role, or the verb `bind` on it.

use serde_json::Value;

use super::{
    Authorizer,
    attributes::{Attributes, ResourceAttributes},
    rule::PolicyRule,
    user::User,
};
use crate::status::{ApiError, Details};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a write of a role or a binding; other kinds pass. `old` is the object as it was.
///
/// # Errors
/// 403, naming the rules that are not held.
pub(crate) fn check(
    authorizer: &Authorizer,
    user: &User,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let Authorizer::Rbac(policy) = authorizer else { return Ok(()) };
    if user.is_master() {
        return Ok(());
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let resource = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "RoleBinding" => "rolebindings",
        _ => return Ok(()),
    };
    let may = |verb: &str, resource: &str, name: &str| {
        let asked = ResourceAttributes {
            verb: verb.into(),
            group: GROUP.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..ResourceAttributes::default()
        };
        authorizer.decide(user, &Attributes::Resource(asked)).is_allowed
    };
    let granted: Vec<PolicyRule> = if kind.ends_with("Binding") {
        let role_kind = object["roleRef"]["kind"].as_str().unwrap_or_default();
        let role_name = object["roleRef"]["name"].as_str().unwrap_or_default();
        let roles = if role_kind == "Role" { "roles" } else { "clusterroles" };
        let is_same = old
            .is_some_and(|old| old["roleRef"] == object["roleRef"] && old["subjects"] == object["subjects"]);
        if is_same || may("bind", roles, role_name) {
            return Ok(());
        }
        policy
            .role(role_kind, namespace, role_name)
            .ok_or_else(|| no_such_role(role_kind, role_name))?
            .to_vec()
    } else {
        if old.is_some_and(|old| old["rules"] == object["rules"]) || may("escalate", resource, name) {
            return Ok(());
        }
        let rules = object["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        rules.iter().map(PolicyRule::from_value).collect()
    };
    let (held, _) = policy.rules_of(user, namespace);
    let missing: Vec<String> = granted
        .iter()
        .filter(|rule| !rule.is_covered_by(&held))
        .map(|rule| rule.to_value().to_string())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{resource}.{GROUP} {name:?} is forbidden: user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        user.groups,
        missing.join("\n"),
    );
    Err(ApiError::new(403, "Forbidden", message).with_details(Details {
        name: Some(name.to_owned()),
        group: Some(GROUP.to_owned()),
        kind: Some(resource.to_owned()),
        ..Details::default()
    }))
}

fn no_such_role(kind: &str, name: &str) -> ApiError {
    let plural = format!("{}s", kind.to_lowercase());
    ApiError::new(404, "NotFound", format!("{plural}.{GROUP} {name:?} not found")).with_details(Details {
        name: Some(name.to_owned()),
        group: Some(GROUP.to_owned()),
        kind: Some(plural),
        ..Details::default()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::auth::rbac::{RbacObjects, RbacPolicy};
    use serde_json::json;

    fn authorizer(extra: &Value) -> Authorizer {
        let mut rules =
            vec![json!({"verbs": ["get", "create", "update"], "apiGroups": ["*"], "resources": ["*"]})];
        rules.extend(extra.as_array().cloned().unwrap_or_default());
        Authorizer::Rbac(Arc::new(RbacPolicy::new(RbacObjects {
            cluster_roles: &[
                json!({"metadata": {"name": "dev"}, "rules": rules}),
                json!({"metadata": {"name": "reader"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
                json!({"metadata": {"name": "cleaner"}, "rules": [{"verbs": ["delete"], "apiGroups": [""], "resources": ["pods"]}]}),
            ],
            cluster_role_bindings: &[
                json!({"metadata": {"name": "dev"}, "roleRef": {"kind": "ClusterRole", "name": "dev"},
                                            "subjects": [{"kind": "User", "name": "ann"}]}),
            ],
            ..RbacObjects::default()
        })))
    }

    fn binding(role: &str) -> Value {
        json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "n"},
               "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": "bob"}]})
    }

    fn role(verb: &str) -> Value {
        json!({"kind": "ClusterRole", "metadata": {"name": "r"},
               "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]})
    }

    #[test]
    fn what_is_held_can_be_granted_and_nothing_else() {
        let ann = User { name: "ann".into(), ..User::default() };
        let plain = authorizer(&json!([]));
        let cases = [
            (role("get"), true),
            (role("delete"), false),
            (binding("reader"), true),
            (binding("cleaner"), false),
        ];
        for (object, expected) in cases {
            assert_eq!(check(&plain, &ann, &object, None).is_ok(), expected, "{object}");
            assert!(check(&plain, &User::master("root"), &object, None).is_ok(), "masters grant anything");
            assert!(check(&Authorizer::AlwaysAllow, &ann, &object, None).is_ok());
        }
        assert_eq!(check(&plain, &ann, &role("delete"), None).expect_err("not held").code, 403);
        assert_eq!(check(&plain, &ann, &binding("nosuch"), None).expect_err("no such role").code, 404);
    }

    #[test]
    fn escalate_and_bind_lift_the_limit() {
        let ann = User { name: "ann".into(), ..User::default() };
        let extra =
            json!([{"verbs": ["escalate", "bind"], "apiGroups": [GROUP], "resources": ["clusterroles"]}]);
        assert!(check(&authorizer(&extra), &ann, &role("delete"), None).is_ok());
        assert!(check(&authorizer(&extra), &ann, &binding("cleaner"), None).is_ok());
    }

    #[test]
    fn a_write_that_changes_no_rule_needs_none() {
        let ann = User { name: "ann".into(), ..User::default() };
        let plain = authorizer(&json!([]));
        assert!(check(&plain, &ann, &role("delete"), Some(&role("delete"))).is_ok());
        assert!(check(&plain, &ann, &binding("cleaner"), Some(&binding("cleaner"))).is_ok());
    }
}
