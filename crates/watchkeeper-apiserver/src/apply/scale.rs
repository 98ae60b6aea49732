//! Managers of `spec.replicas` as the scale subresource sees them.
//!
//! A scale is its own kind in its own version, with one field that is the object's. Whoever writes it manages that field of
//! the object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    managed::{Entry, InvalidManagedFields, Managed},
    path::PathElement,
    set::FieldSet,
};

/// The version of scales.
const SCALE_VERSION: &str = "autoscaling/v1";

/// Where the object has its replicas, in each version it is served in; none where a version has no scale.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplicasPaths(BTreeMap<String, Option<Vec<PathElement>>>);

impl ReplicasPaths {
    /// Adds a version, with the members that lead to the replicas in it (`["spec", "replicas"]`).
    #[must_use]
    pub(crate) fn with(mut self, api_version: &str, path: Option<&[&str]>) -> Self {
        let path = path.map(|path| path.iter().map(|name| PathElement::field(name)).collect());
        self.0.insert(api_version.to_owned(), path);
        self
    }
}

fn replicas_of_scale() -> FieldSet {
    FieldSet::of_fields(&[&["spec", "replicas"]])
}

/// The `managedFields` of the scale of an object with these.
///
/// # Errors
/// When those of the object cannot be read.
pub(crate) fn to_scale(
    entries: Option<&Value>,
    paths: &ReplicasPaths,
) -> Result<Option<Value>, InvalidManagedFields> {
    let mut scale = Managed::default();
    for (id, entry) in Managed::decode(entries)?.iter() {
        let path = paths.0.get(&entry.api_version).and_then(Option::as_ref);
        if path.is_some_and(|path| entry.fields.has(path)) {
            let api_version = SCALE_VERSION.to_owned();
            scale.insert(id.clone(), Entry { api_version, fields: replicas_of_scale(), time: entry.time });
        }
    }
    Ok(scale.encode())
}

/// The `managedFields` of an object in `api_version` after those of its scale became `scale_entries`.
///
/// # Errors
/// When either cannot be read.
pub(crate) fn to_parent(
    entries: Option<&Value>,
    scale_entries: Option<&Value>,
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<Option<Value>, InvalidManagedFields> {
    let mut parent = Managed::decode(entries)?;
    let scale = Managed::decode(scale_entries)?;
    let own_path = paths.0.get(api_version).and_then(Option::as_deref).unwrap_or_default();
    // A new manager of the scale has no time, as upstream has it.
    let times: BTreeMap<_, _> = parent.iter().map(|(id, entry)| (id.clone(), entry.time)).collect();
    let mut kept = Vec::new();
    parent.retain(|id, entry| {
        let Some(path) = paths.0.get(&entry.api_version) else { return false };
        let Some(path) = path.as_ref().filter(|path| entry.fields.has(path)) else { return true };
        if scale.get(id).is_some() {
            kept.push(id.clone());
        } else {
            let mut replicas = FieldSet::default();
            replicas.insert(path);
            entry.fields.subtract(&replicas);
        }
        true
    });
    let replicas_path = [PathElement::field("spec"), PathElement::field("replicas")];
    for (id, _) in scale.iter().filter(|(id, entry)| !kept.contains(id) && entry.fields.has(&replicas_path)) {
        let mut fields = FieldSet::default();
        fields.insert(own_path);
        let api_version = api_version.to_owned();
        parent.insert(id.clone(), Entry { api_version, fields, time: times.get(id).copied().flatten() });
    }
    Ok(parent.encode())
}
