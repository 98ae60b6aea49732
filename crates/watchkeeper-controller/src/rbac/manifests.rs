//! Roles, their bindings and the account they are bound to.

use super::{Access, Rules, YamlError, rules, yaml::document};
use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

/// What to install so that a controller may do what it declares: its service account, roles, and the bindings between them.
///
/// There is a cluster role if something is declared for the whole cluster, and a role for each namespace something is declared for;
/// nothing else.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Manifests {
    /// The account the controller runs as.
    pub service_account: ServiceAccount,
    /// What it may do everywhere, if anything.
    pub cluster: Option<(ClusterRole, ClusterRoleBinding)>,
    /// What it may do in single namespaces.
    pub namespaces: Vec<(Role, RoleBinding)>,
}

impl Manifests {
    /// For a controller `name` that runs in `namespace`.
    pub fn new(name: &str, namespace: &str, declared: &[Access]) -> Self {
        let Rules { cluster, namespaces } = rules(declared);
        let subjects = Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]);
        let role_ref = |kind: &str| RoleRef {
            // A string in some versions of Kubernetes, an option in others.
            api_group: "rbac.authorization.k8s.io".to_owned().into(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let cluster = (!cluster.is_empty()).then(|| {
            let metadata = metadata(name, None);
            let role =
                ClusterRole { metadata: metadata.clone(), rules: Some(cluster), ..ClusterRole::default() };
            let role_ref = role_ref("ClusterRole");
            (role, ClusterRoleBinding { metadata, role_ref, subjects: subjects.clone() })
        });
        let namespaces = namespaces
            .into_iter()
            .map(|(namespace, rules)| {
                let metadata = metadata(name, Some(&namespace));
                let role = Role { metadata: metadata.clone(), rules: Some(rules) };
                (role, RoleBinding { metadata, role_ref: role_ref("Role"), subjects: subjects.clone() })
            })
            .collect();
        let service_account =
            ServiceAccount { metadata: metadata(name, Some(namespace)), ..ServiceAccount::default() };
        Self { service_account, cluster, namespaces }
    }

    /// All of it as YAML, to be piped into `kubectl apply -f -`.
    ///
    /// # Errors
    /// If an object cannot be written, which those made here always can.
    pub fn to_yaml(&self) -> Result<String, YamlError> {
        let mut stream = document(&self.service_account)?;
        if let Some((role, binding)) = &self.cluster {
            stream.push_str(&document(role)?);
            stream.push_str(&document(binding)?);
        }
        for (role, binding) in &self.namespaces {
            stream.push_str(&document(role)?);
            stream.push_str(&document(binding)?);
        }
        Ok(stream)
    }
}

fn metadata(name: &str, namespace: Option<&str>) -> ObjectMeta {
    let namespace = namespace.map(str::to_owned);
    ObjectMeta { name: Some(name.to_owned()), namespace, ..ObjectMeta::default() }
}
