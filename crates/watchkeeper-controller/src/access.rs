//! What a controller does to the API, declared.

use std::{collections::BTreeSet, fmt};

/// What is done to a resource, by the names RBAC has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many.
    List,
    /// Follows many.
    Watch,
    /// Makes one.
    Create,
    /// Replaces one.
    Update,
    /// Changes a part of one; server-side apply too.
    Patch,
    /// Removes one.
    Delete,
    /// Removes many.
    DeleteCollection,
}

impl Verb {
    /// Everything an informer does.
    pub const READ: [Self; 3] = [Self::Get, Self::List, Self::Watch];

    const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// The verb of this name, if it is one of these.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }

    /// Its name in a rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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
