//! Managers of `spec.replicas` in the scale subresource.
//!
//! A scale is a kind with its own version and one field that belongs to the object. A writer of the scale manages that field
//! of the object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    managed::{InvalidManagedFields, Managed, ManagerEntry},
    path::PathElement,
    set::FieldSet,
};

/// The API version of scales.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in each served version of the object; none for a version without scale.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplicasPaths(BTreeMap<String, Option<Vec<PathElement>>>);

impl ReplicasPaths {
    /// Adds a version with the path of its replicas (`["spec", "replicas"]`).
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

/// Returns the `managedFields` of the scale of an object with these `managedFields`.
///
/// # Errors
/// Returns an error if the `managedFields` of the object cannot be parsed.
pub(crate) fn to_scale(
    entries: Option<&Value>,
    paths: &ReplicasPaths,
) -> Result<Option<Value>, InvalidManagedFields> {
    let mut scale = Managed::default();
    for (id, entry) in Managed::decode(entries)?.iter() {
        let path = paths.0.get(&entry.api_version).and_then(Option::as_ref);
        if path.is_some_and(|path| entry.fields.has(path)) {
            let api_version = SCALE_VERSION.to_owned();
            scale.insert(
                id.clone(),
                ManagerEntry { api_version, fields: replicas_of_scale(), time: entry.time },
            );
        }
    }
    Ok(scale.encode())
}

/// Returns the `managedFields` of an object in `api_version` after those of its scale became `scale_entries`.
///
/// # Errors
/// Returns an error if either cannot be parsed.
pub(crate) fn to_parent(
    entries: Option<&Value>,
    scale_entries: Option<&Value>,
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<Option<Value>, InvalidManagedFields> {
    let mut parent = Managed::decode(entries)?;
    let scale = Managed::decode(scale_entries)?;
    let own_path = paths.0.get(api_version).and_then(Option::as_deref).unwrap_or_default();
    // A new manager of the scale has no time, as upstream.
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
        parent
            .insert(id.clone(), ManagerEntry { api_version, fields, time: times.get(id).copied().flatten() });
    }
    Ok(parent.encode())
}
