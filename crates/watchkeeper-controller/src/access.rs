//! What a controller does to the API, declared.

use std::collections::BTreeSet;

/// What is done to a resource, by the names RBAC has for it.
pub use watchkeeper_client::rest::Verb;

/// One resource a controller touches, where, and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name, with a subresource behind a slash: `deployments`, `foos/status`.
    pub resource: String,
    /// Where: one namespace, or all of them and what belongs to none.
    pub namespace: Option<String>,
    /// What is done to it.
    pub verbs: BTreeSet<Verb>,
}

impl Access {
    /// These verbs on a resource, in every namespace and in none.
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

    /// The same in one namespace only.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}
