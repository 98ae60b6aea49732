//! The policy of the currently stored roles and bindings.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    Authorizer,
    rbac::{RbacObjects, RbacPolicy},
};
use crate::storage::{Query, Storage};

/// The tables of a policy, in the order of [`RbacObjects`].
const TABLES: [&str; 4] = [
    "clusterroles.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
];

/// The source of authorizers: allow all, or a policy of the stored objects. A policy is recreated when one of its tables has
/// changed.
#[derive(Debug, Default)]
pub(crate) struct Authorization {
    is_rbac: bool,
    newest: Mutex<Option<([u64; 4], Arc<RbacPolicy>)>>,
}

impl Authorization {
    /// Creates an authorization that allows every request or, with `is_rbac`, one that follows the stored roles and
    /// bindings.
    pub(crate) fn new(is_rbac: bool) -> Self {
        Self { is_rbac, newest: Mutex::default() }
    }

    /// Returns whether RBAC is enabled.
    pub(crate) fn is_rbac(&self) -> bool {
        self.is_rbac
    }

    /// Returns the authorizer for the objects stored now.
    pub(crate) fn authorizer(&self, store: &dyn Storage) -> Authorizer {
        if !self.is_rbac {
            return Authorizer::AlwaysAllow;
        }
        // Read before the objects: a change in between makes the next request recreate the policy.
        let versions = TABLES.map(|table| *store.log(table).subscribe().borrow());
        let mut newest = self.newest.lock();
        if let Some((cached_versions, policy)) = &*newest
            && *cached_versions == versions
        {
            return Authorizer::Rbac(Arc::clone(policy));
        }
        let [cluster_roles, roles, cluster_role_bindings, role_bindings] =
            TABLES.map(|table| objects(store, table));
        let policy = Arc::new(RbacPolicy::new(RbacObjects {
            cluster_roles: &cluster_roles,
            roles: &roles,
            cluster_role_bindings: &cluster_role_bindings,
            role_bindings: &role_bindings,
        }));
        *newest = Some((versions, Arc::clone(&policy)));
        Authorizer::Rbac(policy)
    }
}

fn objects(store: &dyn Storage, table: &str) -> Vec<Value> {
    let all = Query { prefix: "", start: "", at: None, limit: None, filter: None };
    // A list at the current version cannot be expired.
    let page = store.list(table, all, std::time::UNIX_EPOCH);
    let objects = page.map(|page| page.objects).unwrap_or_default();
    objects.iter().map(|object| object.content.to_value("", "", object.version)).collect()
}
