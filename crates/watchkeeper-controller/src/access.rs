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

    /// The same in one namespace only.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}
