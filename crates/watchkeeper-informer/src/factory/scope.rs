//! Which objects of a kind.

use std::{collections::BTreeSet, fmt};

/// Which objects of a kind an informer is of: namespaces and selectors. Two informers of one kind and equal
/// scopes are one.
///
/// ```
/// use watchkeeper_informer::factory::Scope;
///
/// let scope = Scope::namespaces(["shop", "mail"]).labels("app=web");
/// assert_eq!(scope.to_string(), "in namespaces mail, shop with labels app=web");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Scope {
    /// None for all of them.
    namespaces: Option<BTreeSet<String>>,
    labels: Option<String>,
    fields: Option<String>,
}

impl Scope {
    /// Every object there is.
    pub fn all() -> Self {
        Self::default()
    }

    /// The objects of one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self::namespaces([namespace.into()])
    }

    /// The objects of some namespaces, each followed by requests of its own: permissions in these namespaces
    /// suffice. Objects that are in no namespace are not concerned: of those it is all.
    pub fn namespaces<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        let namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        Self { namespaces, ..Self::default() }
    }

    /// Only objects with these labels, as in `app=web,tier!=db`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only objects with these fields, as in `spec.nodeName=node-1`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// The same for objects that are in no namespace.
    pub(super) fn cluster_wide(self) -> Self {
        Self { namespaces: None, ..self }
    }

    pub(super) fn each_namespace(&self) -> Option<impl Iterator<Item = &str>> {
        Some(self.namespaces.as_ref()?.iter().map(String::as_str))
    }

    pub(super) fn label_selector(&self) -> Option<&str> {
        self.labels.as_deref()
    }

    pub(super) fn field_selector(&self) -> Option<&str> {
        self.fields.as_deref()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespaces {
            None => f.write_str("everywhere")?,
            Some(namespaces) => {
                let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
                let noun = if names.len() == 1 { "namespace" } else { "namespaces" };
                write!(f, "in {noun} {}", names.join(", "))?;
            }
        }
        if let Some(labels) = &self.labels {
            write!(f, " with labels {labels}")?;
        }
        if let Some(fields) = &self.fields {
            write!(f, " with fields {fields}")?;
        }
        Ok(())
    }
}
