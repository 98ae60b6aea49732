//! What is served: kinds, their names, verbs and rules.

use std::sync::Arc;

use crate::{schema::TypeRef, strategy::Strategy};

/// A group, a version in it and a kind in that.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

/// A kind in one version, as it is served.
#[derive(Debug, Clone)]
pub struct Kind {
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
    /// The version objects of it are stored in; watches and lists of other versions convert.
    pub storage_version: String,
    /// Its type.
    pub ty: TypeRef,
    /// What is particular to it when an object is created or changed.
    pub strategy: Arc<dyn Strategy>,
}

/// What lies below an object: `status`, `scale`, `eviction`.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// The last part of the path.
    pub name: String,
    /// The kind it speaks: the object's own for `status`, `autoscaling/v1` `Scale` for `scale`.
    pub gvk: GroupVersionKind,
    /// What can be done with it.
    pub verbs: Vec<String>,
}
