//! Privilege escalation: users grant only permissions that they have.
//!
//! A user that writes a role must have its rules, or the verb `escalate` on it. A user that binds a role must have the
//! rules of the role, or the verb `bind` on it. A role that aggregates others can later grant any permission, so writing it
//! requires every permission.

use serde_json::Value;

use super::{
    attributes::{Attributes, ResourceAttributes},
    content::ContentWrite,
    rbac::RbacPolicy,
    rule::PolicyRule,
    user::User,
};
use crate::status::{ApiError, Details};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a write of a role or a binding; other kinds pass.
///
/// A change of labels counts like a change of rules: labels decide which roles aggregate the rules.
///
/// # Errors
/// 403 naming the rules that the user does not have, or 404 if a binding refers to a role that does not exist.
pub(super) fn check(policy: &RbacPolicy, user: &User, write: &ContentWrite<'_>) -> Result<(), ApiError> {
    let (namespace, name, object) = (write.metadata("namespace"), write.metadata("name"), write.object);
    let kind = write.kind_in(GROUP).unwrap_or_default();
    let resource = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "RoleBinding" => "rolebindings",
        _ => return Ok(()),
    };
    if write.is_for_garbage_collection() {
        return Ok(());
    }
    let may = |verb: &str, resource: &str, name: &str| {
        let attributes = ResourceAttributes {
            verb: verb.into(),
            group: GROUP.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..ResourceAttributes::default()
        };
        policy.decide(user, &Attributes::Resource(attributes)).is_allowed
    };
    let is_binding = kind.ends_with("Binding");
    let granted: Vec<PolicyRule> = if is_binding {
        let role_kind = object["roleRef"]["kind"].as_str().unwrap_or_default();
        let role_name = object["roleRef"]["name"].as_str().unwrap_or_default();
        let roles = if role_kind == "Role" { "roles" } else { "clusterroles" };
        if may("bind", roles, role_name) {
            return Ok(());
        }
        policy
            .role(role_kind, namespace, role_name)
            .ok_or_else(|| no_such_role(role_kind, role_name))?
            .to_vec()
    } else {
        if may("escalate", resource, name) {
            return Ok(());
        }
        PolicyRule::all_of(object)
    };
    let (held, _) = policy.rules_of(user, namespace);
    let missing: Vec<String> = granted
        .iter()
        .filter(|rule| !rule.is_covered_by(&held))
        .map(|rule| rule.to_value().to_string())
        .collect();
    let aggregates = [Some(object), write.old]
        .into_iter()
        .flatten()
        .any(|role| kind == "ClusterRole" && is_aggregated(role));
    let why = if !missing.is_empty() {
        format!(
            "user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            user.groups,
            missing.join("\n"),
        )
    } else if aggregates && !PolicyRule::everything().iter().all(|rule| rule.is_covered_by(&held)) {
        "must have cluster-admin privileges to use the aggregationRule".to_owned()
    } else {
        return Ok(());
    };
    let message = format!("{resource}.{GROUP} {name:?} is forbidden: {why}");
    Err(ApiError::new(403, "Forbidden", message).with_details(Details {
        name: Some(name.to_owned()),
        group: Some(GROUP.to_owned()),
        kind: Some(resource.to_owned()),
        ..Details::default()
    }))
}

fn is_aggregated(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|selectors| !selectors.is_empty())
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
    use super::*;
    use crate::auth::rbac::RbacObjects;
    use serde_json::json;

    fn check_write(policy: &RbacPolicy, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        let ann = User { name: "ann".into(), ..User::default() };
        check(policy, &ann, &ContentWrite { verb: "update", subresource: "", object, old })
    }

    fn policy(extra: &Value) -> RbacPolicy {
        let mut rules =
            vec![json!({"verbs": ["get", "create", "update"], "apiGroups": ["*"], "resources": ["*"]})];
        rules.extend(extra.as_array().cloned().unwrap_or_default());
        RbacPolicy::new(RbacObjects {
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
        })
    }

    fn binding(role: &str) -> Value {
        json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "b", "namespace": "n"},
               "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": "bob"}]})
    }

    fn role(verb: &str) -> Value {
        json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"},
               "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]})
    }

    #[test]
    fn only_permissions_the_user_has_can_be_granted() {
        let plain = policy(&json!([]));
        let mut custom = role("delete");
        custom["apiVersion"] = "acme.io/v1".into();
        let cases = [
            (role("get"), true),
            (role("delete"), false),
            (custom, true),
            (binding("reader"), true),
            (binding("cleaner"), false),
        ];
        for (object, expected) in cases {
            assert_eq!(check_write(&plain, &object, None).is_ok(), expected, "{object}");
        }
        assert_eq!(check_write(&plain, &role("delete"), None).expect_err("not held").code, 403);
        assert_eq!(check_write(&plain, &binding("nosuch"), None).expect_err("no such role").code, 404);
    }

    #[test]
    fn the_verbs_escalate_and_bind_bypass_the_escalation_check() {
        let extra =
            json!([{"verbs": ["escalate", "bind"], "apiGroups": [GROUP], "resources": ["clusterroles"]}]);
        assert!(check_write(&policy(&extra), &role("delete"), None).is_ok());
        assert!(check_write(&policy(&extra), &binding("cleaner"), None).is_ok());
    }

    #[test]
    fn a_write_of_only_owners_and_finalizers_skips_the_escalation_check() {
        let plain = policy(&json!([]));
        for object in [role("delete"), binding("cleaner")] {
            let mut released = object.clone();
            released["metadata"]["ownerReferences"] = json!([{"name": "o"}]);
            released["metadata"]["finalizers"] = json!(["acme.io/x"]);
            assert!(check_write(&plain, &released, Some(&object)).is_ok(), "{object}");
            let mut labelled = object.clone();
            labelled["metadata"]["labels"] = json!({"to-view": "true"});
            assert!(check_write(&plain, &labelled, Some(&object)).is_err(), "{object}");
        }
    }

    #[test]
    fn an_aggregated_role_takes_every_permission_or_escalate() {
        let mut aggregated = role("get");
        aggregated["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
        let everything = json!([
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]);
        let all_resources = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        let escalate = json!([{"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["clusterroles"]}]);
        // The verb `escalate` is among all verbs on all resources.
        for (extra, expected) in
            [(json!([]), false), (all_resources, true), (everything, true), (escalate, true)]
        {
            let policy = policy(&extra);
            assert_eq!(check_write(&policy, &aggregated, None).is_ok(), expected, "create with {extra}");
            let plain = role("get");
            assert_eq!(
                check_write(&policy, &plain, Some(&aggregated)).is_ok(),
                expected,
                "removal with {extra}"
            );
        }
    }
}
