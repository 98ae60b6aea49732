//! Declared API access of a controller.

use std::collections::BTreeSet;

/// A verb on a resource, named as in RBAC.
pub use watchkeeper_client::rest::Verb;

/// Declared access to one resource: its scope and verbs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource, followed by a slash and the subresource if there is one:
    /// `deployments`, `foos/status`.
    pub resource: String,
    /// The namespace, or `None` for all namespaces and cluster-scoped objects.
    pub namespace: Option<String>,
    /// The verbs that are used.
    pub verbs: BTreeSet<Verb>,
}

impl Access {
    /// Creates access to a resource with these verbs, in all namespaces and for cluster-scoped objects.
    pub fn new(
        group: impl Into<String>,
        resource: impl Into<String>,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        let (group, resource) = (group.into(), resource.into());
        Self { group, resource, namespace: None, verbs: verbs.into_iter().collect() }
    }

    /// Returns the access that leader election needs, in the `namespace` of its lease.
    pub fn leader_election(namespace: impl Into<String>) -> Self {
        Self::new("coordination.k8s.io", "leases", [Verb::Get, Verb::Create, Verb::Update])
            .in_namespace(namespace)
    }

    /// Returns the access that [recording events](crate::events) needs, in every namespace.
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
