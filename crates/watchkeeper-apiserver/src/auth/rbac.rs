//! Authorization by roles and bindings.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{Decision, aggregation, attributes::Attributes, rule::PolicyRule, user::User};

/// The stored roles and bindings of a policy, in the form the API serves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RbacObjects<'a> {
    /// The stored `ClusterRole`s.
    pub cluster_roles: &'a [Value],
    /// The stored `Role`s.
    pub roles: &'a [Value],
    /// The stored `ClusterRoleBinding`s.
    pub cluster_role_bindings: &'a [Value],
    /// The stored `RoleBinding`s.
    pub role_bindings: &'a [Value],
}

/// The roles and bindings at one moment. Recreated when one of them changes, so that a decision walks short lists only.
#[derive(Debug, Default)]
pub(crate) struct RbacPolicy {
    cluster_wide: Vec<Binding>,
    in_namespace: HashMap<String, Vec<Binding>>,
    cluster_roles: HashMap<String, Arc<[PolicyRule]>>,
    roles: HashMap<(String, String), Arc<[PolicyRule]>>,
}

#[derive(Debug)]
struct Binding {
    /// The binding, as described in reasons.
    description: String,
    subjects: Vec<Subject>,
    /// The rules of the role, or the error for a role that does not exist.
    rules: Result<Arc<[PolicyRule]>, String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

impl RbacPolicy {
    /// Creates the policy of these objects.
    pub(crate) fn new(objects: RbacObjects<'_>) -> Self {
        let mut policy = Self {
            cluster_roles: cluster_roles(objects.cluster_roles),
            roles: objects
                .roles
                .iter()
                .map(|role| {
                    let key = (text(role, "namespace"), text(role, "name"));
                    (key, PolicyRule::all_of(role).into())
                })
                .collect(),
            ..Self::default()
        };
        for binding in objects.cluster_role_bindings {
            let bound = policy.bind(binding, "ClusterRoleBinding", "");
            policy.cluster_wide.push(bound);
        }
        for binding in objects.role_bindings {
            let namespace = text(binding, "namespace");
            let bound = policy.bind(binding, "RoleBinding", &namespace);
            policy.in_namespace.entry(namespace).or_default().push(bound);
        }
        policy
    }

    fn bind(&self, binding: &Value, kind: &str, namespace: &str) -> Binding {
        let role_kind = binding["roleRef"]["kind"].as_str().unwrap_or_default();
        let role_name = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let name = text(binding, "name");
        let name = if namespace.is_empty() { name } else { format!("{name}/{namespace}") };
        let subjects = binding["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        Binding {
            description: format!("{kind} {name:?} of {role_kind} {role_name:?}"),
            subjects: subjects.iter().filter_map(|subject| Subject::from_value(subject, namespace)).collect(),
            rules: self.role(role_kind, namespace, role_name).cloned().ok_or_else(|| {
                format!("{}.rbac.authorization.k8s.io {role_name:?} not found", role_kind.to_lowercase())
            }),
        }
    }

    /// Returns the rules of a role: a `ClusterRole`, or a `Role` of `namespace`. None if the role does not exist.
    pub(crate) fn role(&self, kind: &str, namespace: &str, name: &str) -> Option<&Arc<[PolicyRule]>> {
        match kind {
            "ClusterRole" => self.cluster_roles.get(name),
            "Role" => self.roles.get(&(namespace.to_owned(), name.to_owned())),
            _ => None,
        }
    }

    /// Decides whether a rule bound to `user` allows the request. Rules only grant: the first match decides.
    pub(crate) fn decide(&self, user: &User, attributes: &Attributes) -> Decision {
        let namespace = match attributes {
            Attributes::Resource(attributes) => attributes.namespace.as_str(),
            Attributes::Path { .. } => "",
        };
        let mut missing = Vec::new();
        for (binding, subject) in self.bindings_of(user, namespace) {
            match &binding.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Decision::allowed(format!(
                        "RBAC: allowed by {} to {subject}",
                        binding.description
                    ));
                }
                Ok(_) => {}
                Err(what) => missing.push(what.as_str()),
            }
        }
        match missing.as_slice() {
            [] => Decision::denied(""),
            [one] => Decision::denied(format!("RBAC: {one}")),
            several => Decision::denied(format!("RBAC: [{}]", several.join(", "))),
        }
    }

    /// Returns every rule bound to `user` in `namespace` or cluster-wide, and the errors of roles that could not be
    /// resolved.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (binding, _) in self.bindings_of(user, namespace) {
            match &binding.rules {
                Ok(rules) => found.extend_from_slice(rules),
                Err(what) => missing.push(what.clone()),
            }
        }
        (found, missing)
    }

    /// Returns the bindings of `user`, each with the matching subject, cluster-wide bindings first.
    fn bindings_of<'a>(
        &'a self,
        user: &'a User,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a Binding, String)> {
        let in_namespace = if namespace.is_empty() { None } else { self.in_namespace.get(namespace) };
        self.cluster_wide.iter().chain(in_namespace.into_iter().flatten()).filter_map(|binding| {
            let subject = binding.subjects.iter().find(|subject| subject.is(user))?;
            Some((binding, subject.describe()))
        })
    }
}

impl Subject {
    fn from_value(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let name = subject["name"].as_str()?.to_owned();
        match subject["kind"].as_str()? {
            "User" => Some(Self::User(name)),
            "Group" => Some(Self::Group(name)),
            "ServiceAccount" => {
                let own = subject["namespace"].as_str().filter(|namespace| !namespace.is_empty());
                let namespace = own.unwrap_or(binding_namespace).to_owned();
                (!namespace.is_empty()).then_some(Self::ServiceAccount { namespace, name })
            }
            _ => None,
        }
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Self::User(name) => user.name == *name,
            Self::Group(name) => user.is_in(name),
            Self::ServiceAccount { namespace, name } => {
                user.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
                    == Some((namespace, name))
            }
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::User(name) => format!("User {name:?}"),
            Self::Group(name) => format!("Group {name:?}"),
            Self::ServiceAccount { namespace, name } => format!("ServiceAccount \"{name}/{namespace}\""),
        }
    }
}

/// Returns the rules of each cluster role. The rules of aggregated roles are computed here as well as by the controller that
/// stores them, so that a decision does not depend on the progress of that controller.
fn cluster_roles(roles: &[Value]) -> HashMap<String, Arc<[PolicyRule]>> {
    let mut aggregated = aggregation::aggregate(roles);
    roles
        .iter()
        .map(|role| {
            let name = text(role, "name");
            let mut rules = PolicyRule::all_of(role);
            if let Some(selected) = aggregated.remove(name.as_str()) {
                let stored: HashSet<PolicyRule> = rules.iter().cloned().collect();
                rules.extend(selected.into_iter().filter(|rule| !stored.contains(rule)));
            }
            (name, rules.into())
        })
        .collect()
}

fn text(object: &Value, member: &str) -> String {
    object["metadata"][member].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::attributes::ResourceAttributes;
    use serde_json::json;

    fn attributes(verb: &str, resource: &str, namespace: &str) -> Attributes {
        Attributes::Resource(ResourceAttributes {
            verb: verb.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            ..ResourceAttributes::default()
        })
    }

    fn user(name: &str, groups: &[&str]) -> User {
        User {
            name: name.into(),
            groups: groups.iter().map(ToString::to_string).collect(),
            ..User::default()
        }
    }

    fn policy() -> RbacPolicy {
        let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
        let secrets = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]});
        RbacPolicy::new(RbacObjects {
            cluster_roles: &[
                json!({"metadata": {"name": "pod-reader", "labels": {"to-view": "true"}}, "rules": [pods]}),
                json!({"metadata": {"name": "view"}, "rules": null,
                       "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to-view": "true"}}]}}),
            ],
            roles: &[json!({"metadata": {"name": "secret-reader", "namespace": "a"}, "rules": [secrets]})],
            cluster_role_bindings: &[
                json!({"metadata": {"name": "ops"}, "roleRef": {"kind": "ClusterRole", "name": "view"},
                       "subjects": [{"kind": "Group", "name": "ops"}]}),
                json!({"metadata": {"name": "lost"}, "roleRef": {"kind": "ClusterRole", "name": "gone"},
                       "subjects": [{"kind": "User", "name": "bob"}]}),
            ],
            role_bindings: &[
                json!({"metadata": {"name": "ann", "namespace": "a"}, "roleRef": {"kind": "ClusterRole", "name": "pod-reader"},
                       "subjects": [{"kind": "User", "name": "ann"}]}),
                json!({"metadata": {"name": "sa", "namespace": "a"}, "roleRef": {"kind": "Role", "name": "secret-reader"},
                       "subjects": [{"kind": "ServiceAccount", "name": "robot"}]}),
            ],
        })
    }

    #[test]
    fn a_role_binding_grants_only_in_its_namespace() {
        let ann = user("ann", &[]);
        let allowed = policy().decide(&ann, &attributes("list", "pods", "a"));
        assert!(allowed.is_allowed);
        assert_eq!(
            allowed.reason,
            "RBAC: allowed by RoleBinding \"ann/a\" of ClusterRole \"pod-reader\" to User \"ann\""
        );
        for elsewhere in ["b", ""] {
            assert!(
                !policy().decide(&ann, &attributes("list", "pods", elsewhere)).is_allowed,
                "{elsewhere:?}"
            );
        }
    }

    #[test]
    fn a_cluster_role_binding_of_an_aggregated_role_grants_in_every_namespace() {
        for namespace in ["a", "b", ""] {
            assert!(
                policy().decide(&user("x", &["ops"]), &attributes("get", "pods", namespace)).is_allowed,
                "{namespace:?}"
            );
        }
        assert!(!policy().decide(&user("x", &["ops"]), &attributes("get", "secrets", "a")).is_allowed);
    }

    #[test]
    fn a_service_account_subject_without_namespace_is_in_the_namespace_of_the_binding() {
        assert!(
            policy()
                .decide(&user("system:serviceaccount:a:robot", &[]), &attributes("get", "secrets", "a"))
                .is_allowed
        );
        assert!(
            !policy()
                .decide(&user("system:serviceaccount:b:robot", &[]), &attributes("get", "secrets", "a"))
                .is_allowed
        );
    }

    #[test]
    fn a_forbidden_message_names_a_missing_role() {
        let denied = policy().decide(&user("bob", &[]), &attributes("get", "pods", ""));
        assert!(!denied.is_allowed);
        assert_eq!(denied.reason, "RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found");
        assert_eq!(policy().rules_of(&user("bob", &[]), "a").1.len(), 1);
    }

    #[test]
    fn malformed_rules_and_bindings_grant_nothing() {
        let policy = RbacPolicy::new(RbacObjects {
            cluster_roles: &[
                json!({"metadata": {"name": "odd"}, "rules": [{"verbs": "get", "resources": 7}, null, 3]}),
            ],
            cluster_role_bindings: &[
                json!({"metadata": {"name": "odd"}, "roleRef": {"kind": "ClusterRole", "name": "odd"},
                                            "subjects": [{"kind": "User"}, 5, {"kind": "User", "name": "ann"}]}),
            ],
            ..RbacObjects::default()
        });
        assert!(!policy.decide(&user("ann", &[]), &attributes("get", "pods", "")).is_allowed);
    }
}
