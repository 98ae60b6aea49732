//! The scope of informers: namespaces and selectors.

use std::{collections::BTreeSet, fmt};

/// The namespaces and selectors of an informer. A factory has one informer for each kind and scope.
///
/// ```
/// use watchkeeper_informer::factory::Scope;
///
/// let scope = Scope::namespaces(["shop", "mail"]).labels("app=web");
/// assert_eq!(scope.to_string(), "in namespaces mail, shop with labels app=web");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Scope {
    /// The namespaces, or `None` for all.
    namespaces: Option<BTreeSet<String>>,
    labels: Option<String>,
    fields: Option<String>,
}

impl Scope {
    /// Returns the scope of all objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns the scope of the objects of one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self::namespaces([namespace.into()])
    }

    /// Returns the scope of the objects of several namespaces. Each namespace is listed and watched
    /// separately, so permissions in these namespaces suffice. Cluster-scoped objects are not restricted by
    /// it.
    pub fn namespaces<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        let namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        Self { namespaces, ..Self::default() }
    }

    /// Selects objects by labels, for example `app=web,tier!=db`.
    #[must_use]
    #[doc(alias = "DefaultLabelSelector")]
    #[doc(alias = "LabelSelector")]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Selects objects by fields, for example `spec.nodeName=node-1`.
    #[must_use]
    #[doc(alias = "DefaultFieldSelector")]
    #[doc(alias = "FieldSelector")]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Returns this scope for cluster-scoped objects.
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
