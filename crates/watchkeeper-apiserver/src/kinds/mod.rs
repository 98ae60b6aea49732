//! The served kinds: names, verbs and rules.
//!
//! `builtin` reads the table of built-in kinds. A [`Registry`] holds the built-in kinds and the custom kinds, which are added
//! and removed at run time.

mod builtin;
mod fields;
mod registry;

use std::sync::Arc;

use serde_json::Value;

use crate::{schema::TypeRef, strategy::Strategy};

pub(crate) use watchkeeper_schema::GroupVersionKind;

pub(crate) use registry::{CustomKind, Group, GroupVersion, Kinds, Registry};

/// A kind in one served version.
#[expect(clippy::struct_field_names, reason = "the kind of lists is called so upstream")]
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// The name in paths, such as `pods`.
    pub plural: String,
    /// The singular name, such as `pod`.
    pub singular: String,
    /// The kind of lists, such as `PodList`.
    pub list_kind: String,
    /// Whether objects of the kind live in namespaces.
    pub is_namespaced: bool,
    /// Abbreviations for the command line, such as `po`.
    pub short_names: Vec<String>,
    /// The categories of the kind, such as `all`.
    pub categories: Vec<String>,
    /// The verbs that the kind supports, such as `get` and `watch`.
    pub verbs: Vec<String>,
    /// The subresources of an object of the kind.
    pub subresources: Vec<Subresource>,
    /// The kind that objects are stored as: the same kind for most, otherwise another version or (for events) a kind of
    /// another group. Reads and watches of any other kind convert.
    pub storage: GroupVersionKind,
    /// The type of the objects.
    pub ty: TypeRef,
    /// The rules for creating and changing objects of the kind.
    pub strategy: Arc<dyn Strategy>,
    /// The settings of a custom kind; none for built-in kinds.
    pub custom: Option<Arc<Custom>>,
}

/// The settings of one version of a `CustomResourceDefinition` for printing, selecting and describing its objects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Custom {
    /// The columns of tables, without the name, which always comes first. If empty, tables show name and age.
    pub columns: Vec<PrinterColumn>,
    /// The paths that field selectors may use besides name and namespace, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// The schema as given in the definition (`openAPIV3Schema`), for publication.
    pub schema: Option<Value>,
    /// The paths of the `scale` subresource, if the kind has one.
    pub scale: Option<ScalePaths>,
    /// Whether the definition has changed since its creation. If so, objects are pruned and defaulted by the current schema
    /// when they are read.
    pub has_changed: bool,
    /// Whether the schema has validation rules in CEL.
    pub has_rules: bool,
}

/// The paths in a custom object that `scale` maps to, such as `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// The path of the desired number of replicas.
    pub spec_replicas: String,
    /// The path of the actual number of replicas.
    pub status_replicas: String,
    /// The path of the selector of the replicas, a string.
    pub label_selector: Option<String>,
}

/// A table column of a `CustomResourceDefinition` (`additionalPrinterColumns`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PrinterColumn {
    /// The heading of the column.
    pub name: String,
    /// The type: `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: String,
    /// The format, such as `int32`.
    pub format: String,
    /// The description of the column.
    pub description: String,
    /// The priority. Columns above 0 are shown in wide output only.
    pub priority: i32,
    /// The path of the value, such as `.spec.replicas`.
    pub json_path: String,
}

impl Kind {
    /// Returns the `apiVersion`: `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        self.gvk.api_version()
    }

    /// Returns the subresource `name`.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Returns whether the kind supports `verb`.
    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }
}

/// A subresource of an object: `status`, `scale`, `eviction`.
#[derive(Debug, Clone)]
pub(crate) struct Subresource {
    /// The last segment of the path.
    pub name: String,
    /// The kind of the bodies: the object's own kind for `status`, `autoscaling/v1` `Scale` for `scale`.
    pub gvk: GroupVersionKind,
    /// The verbs that the subresource supports.
    pub verbs: Vec<String>,
}
