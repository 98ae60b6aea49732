//! What is served: kinds, their names, verbs and rules.
//!
//! `builtin` reads the table of kinds every server has; a [`Registry`] holds those and the custom kinds that come and go.

mod builtin;
mod fields;
mod registry;

use std::sync::Arc;

use serde_json::Value;

use crate::{schema::TypeRef, strategy::Strategy};

pub(crate) use registry::{CustomKind, Group, GroupVersion, Kinds, Registry};

/// A group, a version in it and a kind in that.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

impl GroupVersionKind {
    /// The kind of this name in a group and version.
    pub(crate) fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// A kind in one version, as it is served.
#[expect(clippy::struct_field_names, reason = "the kind of lists is called so upstream")]
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// The name in paths, such as `pods`.
    pub plural: String,
    /// The name of one, such as `pod`.
    pub singular: String,
    /// The kind of lists, such as `PodList`.
    pub list_kind: String,
    /// Lives in namespaces.
    pub is_namespaced: bool,
    /// Names for people in a hurry.
    pub short_names: Vec<String>,
    /// Groups of kinds people ask for together, such as `all`.
    pub categories: Vec<String>,
    /// What can be done with it, such as `get` and `watch`.
    pub verbs: Vec<String>,
    /// What lies below an object of it.
    pub subresources: Vec<Subresource>,
    /// What objects of it are stored as: the same kind for most, another version of it, or (events) another group's.
    /// Watches and lists of a kind that is not what is stored convert.
    pub storage: GroupVersionKind,
    /// Its type.
    pub ty: TypeRef,
    /// What is particular to it when an object is created or changed.
    pub strategy: Arc<dyn Strategy>,
    /// What a custom kind brings with it; none for built-in kinds.
    pub custom: Option<Arc<Custom>>,
}

/// What a version of a `CustomResourceDefinition` says about showing, selecting and describing its objects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Custom {
    /// The columns of tables, without the name that always comes first; empty for name and age.
    pub columns: Vec<PrinterColumn>,
    /// Paths of members that field selectors may name besides name and namespace, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// The schema as it was given (`openAPIV3Schema`), to be published.
    pub schema: Option<Value>,
    /// Where the numbers of the `scale` subresource are, for kinds that have it.
    pub scale: Option<ScalePaths>,
    /// The definition has changed since it was made: objects that were stored before are pruned and defaulted by what it
    /// says now when they are read.
    pub has_changed: bool,
    /// Whether the schema has validation rules in CEL.
    pub has_rules: bool,
}

/// Where a custom object has what `scale` shows, as paths like `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// The number of replicas that is wanted.
    pub spec_replicas: String,
    /// The number of replicas there is.
    pub status_replicas: String,
    /// The selector of the replicas, as text.
    pub label_selector: Option<String>,
}

/// A column a `CustomResourceDefinition` asks for (`additionalPrinterColumns`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: String,
    /// A format, such as `int32`.
    pub format: String,
    /// What the column means.
    pub description: String,
    /// Columns above 0 are shown when more is asked for.
    pub priority: i32,
    /// Where the value is, such as `.spec.replicas`.
    pub json_path: String,
}

impl Kind {
    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        self.gvk.api_version()
    }

    /// The subresource of this name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// `verb` can be done with it.
    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }
}

/// What lies below an object: `status`, `scale`, `eviction`.
#[derive(Debug, Clone)]
pub(crate) struct Subresource {
    /// The last part of the path.
    pub name: String,
    /// The kind it speaks: the object's own for `status`, `autoscaling/v1` `Scale` for `scale`.
    pub gvk: GroupVersionKind,
    /// What can be done with it.
    pub verbs: Vec<String>,
}
