//! Manifests of a service account, its roles and their bindings.

use super::{Access, Rules, YamlError, rules, yaml::document};
use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

/// The manifests that grant a controller its declared access: a service account, roles and bindings.
///
/// A cluster role is included only if access is declared for the whole cluster, and a role only for each
/// namespace that access is declared for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Manifests {
    /// The service account that the controller runs as.
    pub service_account: ServiceAccount,
    /// The cluster-wide permissions, if any.
    pub cluster: Option<(ClusterRole, ClusterRoleBinding)>,
    /// The permissions in single namespaces.
    pub namespaces: Vec<(Role, RoleBinding)>,
}

impl Manifests {
    /// Creates the manifests of the controller `name` that runs in `namespace`.
    pub fn new(name: &str, namespace: &str, declared: &[Access]) -> Self {
        let Rules { cluster, namespaces } = rules(declared);
        let subjects = Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]);
        let role_ref = |kind: &str| RoleRef {
            // The type of this field is a string in some versions of Kubernetes and an option in others.
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

    /// Returns all manifests as YAML, ready for `kubectl apply -f -`.
    ///
    /// # Errors
    /// Returns a [`YamlError`] if an object cannot be serialized, which does not happen for manifests made by
    /// [`new`](Self::new).
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
