//! Declared API access of a controller.

use std::collections::BTreeSet;

/// A verb on a resource, named as in RBAC.
pub use watchkeeper_client::rest::Verb;

/// API access that a component needs: verbs on one resource, in one namespace or in all.
///
/// Controllers derive their access from what they watch and from
/// [`Controller::uses`](crate::Controller::uses). A manager checks at the start whether the access is granted, and
/// RBAC manifests are generated from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource, or resource and subresource separated by a slash, as in RBAC rules:
    /// `deployments`, `foos/status`.
    pub resource: String,
    /// The namespace, or `None` for all namespaces and cluster-scoped objects.
    pub namespace: Option<String>,
    /// The verbs that the component uses.
    pub verbs: BTreeSet<Verb>,
}

impl Access {
    /// Creates access to a resource with these verbs, in all namespaces and for cluster-scoped objects. `group` is
    /// empty for the core group. The names are not validated.
    pub fn new(
        group: impl Into<String>,
        resource: impl Into<String>,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        let (group, resource) = (group.into(), resource.into());
        Self { group, resource, namespace: None, verbs: verbs.into_iter().collect() }
    }

    /// Returns the access that leader election needs: get, create and update of `leases.coordination.k8s.io` in the
    /// `namespace` of its lease.
    pub fn leader_election(namespace: impl Into<String>) -> Self {
        Self::new("coordination.k8s.io", "leases", [Verb::Get, Verb::Create, Verb::Update])
            .in_namespace(namespace)
    }

    /// Returns the access that [recording events](crate::events) needs: create and patch of
    /// `events.events.k8s.io` in all namespaces.
    pub fn events() -> Self {
        Self::new("events.k8s.io", "events", [Verb::Create, Verb::Patch])
    }

    /// Restricts the access to one namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}
