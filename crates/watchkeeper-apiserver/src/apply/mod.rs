//! Server-side apply and field management.
//!
//! Every write goes through this module: [`apply()`] computes the new object of an apply, [`track_update`] records the
//! managers of any other write. Both maintain `metadata.managedFields` by the rules of Kubernetes:
//!
//! - An applier manages the fields of its last configuration. A field that it applied before and no longer applies is
//!   removed, unless another manager has it. A field that another manager has with another value is a conflict, unless the
//!   apply is forced.
//! - An updater manages the fields that it changed; other managers lose them.
//! - Objects without managers (after a reset) are tracked again from their first apply on.
//!
//! | module | content |
//! |---|---|
//! | [`path`], [`set`], [`codec`] | paths into objects, sets of paths, and their `fieldsV1` encoding |
//! | [`walk`] | walks over objects along their type: compare, merge, remove |
//! | [`managed`] | managers and their fields |
//! | [`track`] | changes of managers with the object |
//! | [`fast_path`] | the fast path for updates that change no manager |
//! | [`mask`] | fields that a subresource cannot change |
//! | [`options`] | names of managers, and the options of a patch |
//! | [`scale`] | managers of `spec.replicas` in the scale subresource |
//!
//! The steps of a write are: decode, set defaults, [`track_update`] (or [`apply()`], then set defaults), reset the fields
//! that the part cannot change, validate, [`keep_times`], store if anything changed.

pub(crate) mod codec;
mod conflict;
mod fast_path;
mod last_applied;
pub(crate) mod managed;
pub(crate) mod mask;
pub(crate) mod options;
pub(crate) mod path;
pub(crate) mod scale;
pub(crate) mod set;
mod track;
pub(crate) mod walk;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};

use self::{
    conflict::Conflicts,
    managed::{Managed, ManagerEntry, ManagerId, ManagerOperation},
    mask::Mask,
    path::same,
    set::FieldSet,
    track::Comparisons,
    walk::{Changes, SchemaMismatch},
};
use crate::{
    kinds::{GroupVersionKind, Kind},
    schema::TypeRef,
    status::ApiError,
    strategy::Part,
};

/// The manager of the fields that an object had before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The target of a write: objects of a kind in one version, whole or through a subresource.
#[derive(Debug, Clone)]
pub(crate) struct WriteTarget<'a> {
    gvk: &'a GroupVersionKind,
    api_version: String,
    ty: &'a TypeRef,
    subresource: &'a str,
    mask: Mask,
    versions: &'a dyn Versions,
    /// Whether the type never changes while the server runs, as for built-in kinds.
    has_fixed_type: bool,
}

/// The writer and the time of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manager<'a> {
    /// The name of the manager; see [`options::manager_name`].
    pub name: &'a str,
    /// The time of the write.
    pub now: Timestamp,
}

/// The other served versions of a kind, for managers that wrote in one of them.
pub(crate) trait Versions: fmt::Debug {
    /// Returns `object` in `api_version` with its type there. None if the kind is not served in that version; managers in
    /// such a version are removed.
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, TypeRef)>;
}

/// The versions of a kind that has only one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneVersion;

impl Versions for OneVersion {
    fn convert(&self, _object: &Value, _api_version: &str) -> Option<(Value, TypeRef)> {
        None
    }
}

impl<'a> WriteTarget<'a> {
    /// Returns the target for objects of `kind`, written through `part`.
    pub(crate) fn of(kind: &'a Kind, part: Part<'a>, versions: &'a dyn Versions) -> Self {
        let has_status = kind.subresources.iter().any(|subresource| subresource.name == "status");
        let mask = Mask::of(&kind.gvk, kind.custom.is_some(), has_status, part);
        let subresource = if let Part::Subresource(name) = part { name } else { "" };
        let has_fixed_type = kind.custom.is_none();
        Self { has_fixed_type, ..Self::new(&kind.gvk, &kind.ty, versions).through(subresource, mask) }
    }

    /// Returns the target for whole objects of a kind, without a mask.
    pub(crate) fn new(gvk: &'a GroupVersionKind, ty: &'a TypeRef, versions: &'a dyn Versions) -> Self {
        let api_version =
            if gvk.group.is_empty() { gvk.version.clone() } else { format!("{}/{}", gvk.group, gvk.version) };
        Self { gvk, api_version, ty, subresource: "", mask: Mask::All, versions, has_fixed_type: false }
    }

    /// Returns the same target, written through a subresource (empty for the object itself) that changes the fields of
    /// `mask`.
    #[must_use]
    pub(crate) fn through(self, subresource: &'a str, mask: Mask) -> Self {
        Self { subresource, mask, ..self }
    }

    fn manager_id(&self, name: &str, operation: ManagerOperation) -> ManagerId {
        ManagerId {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            operation,
            api_version: if operation == ManagerOperation::Apply {
                String::new()
            } else {
                self.api_version.clone()
            },
            subresource: self.subresource.to_owned(),
        }
    }

    /// Returns the description of an object in errors.
    fn describe(&self, object: &Value) -> String {
        let metadata = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
        let GroupVersionKind { group, version, kind } = self.gvk;
        format!("{}/{}; {group}/{version}, Kind={kind}", metadata("namespace"), metadata("name"))
    }
}

/// Records the managers of a write that is not an apply. The manager takes ownership of the fields that differ between
/// `live` (none for a create) and `new`.
///
/// Managers in `new` replace those of `live` if they can be parsed. A list that is empty or contains one empty entry removes
/// all managers. Through a subresource, the managers are always those of `live`. An object that cannot be compared keeps its
/// managers.
pub(crate) fn track_update(
    live: Option<&Value>,
    new: &mut Value,
    subject: &WriteTarget<'_>,
    manager: &Manager<'_>,
) {
    let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let mut given = metadata.remove("managedFields");
    let of_live =
        live.and_then(|live| live.get("metadata")).and_then(|metadata| metadata.get("managedFields"));

    let mut comparisons = Comparisons::new(live, new, subject);
    let entries = if let Some(of_live) = of_live
        && let Ok(Some(changes)) = comparisons.at(&subject.api_version)
        && let Some(entries) = fast_path::fast_update(of_live, &mut given, changes, subject, manager)
    {
        Some(entries)
    } else {
        let mut managed = managed_for_update(of_live, given.as_ref(), subject);
        let is_followed = !managed.is_empty() || live.is_none();
        if is_followed && track::update(comparisons, &mut managed, manager).is_err() {
            of_live.cloned()
        } else {
            managed.encode()
        }
    };
    set_managed_fields(new, entries);
}

fn managed_for_update(of_live: Option<&Value>, given: Option<&Value>, subject: &WriteTarget<'_>) -> Managed {
    if subject.subresource.is_empty() {
        if Managed::is_reset(given) {
            return Managed::default();
        }
        // Clients without support for managed fields send none; this must not remove the managers.
        if let Some(managed) = Managed::decode(given).ok().filter(|managed| !managed.is_empty()) {
            return managed;
        }
    }
    Managed::decode(of_live).unwrap_or_default()
}

fn set_managed_fields(object: &mut Value, entries: Option<Value>) {
    let Some(members) = object.as_object_mut() else { return };
    let metadata = members.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        match entries {
            Some(entries) => metadata.insert("managedFields".to_owned(), entries),
            None => metadata.remove("managedFields"),
        };
    }
}

/// Returns the object after `config` was applied to `live` (none for a create), including managers. The caller sets defaults
/// on it.
///
/// # Errors
/// - 400 if `config` is of another kind or version, or contains managers.
/// - 409 with a cause for each field that other managers have with another value, unless `force`.
/// - 500 if `config` does not match its type, as upstream.
pub(crate) fn apply(
    live: Option<&Value>,
    config: &Value,
    subject: &WriteTarget<'_>,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, ApiError> {
    let managed = Managed::decode(live.and_then(|live| live.get("metadata")?.get("managedFields")))
        .map_err(|error| failure(format!("failed to decode managed fields: {error}")))?;
    check_config(config, subject)?;

    let applied = match track::apply(live, config, subject, managed.clone(), manager, force) {
        Err(track::ApplyError::Conflicts(conflicts)) if manager.name == last_applied::MANAGER => {
            // The last-applied annotation records which fields already belong to the client.
            let allowed = live.and_then(|live| last_applied::fields(live, subject)).unwrap_or_default();
            let mut remaining = conflicts;
            remaining.allow(&allowed);
            if !remaining.is_empty() {
                return Err(remaining.into_error());
            }
            track::apply(live, config, subject, managed, manager, true)
        }
        applied => applied,
    };
    let (mut object, managed) = applied.map_err(|refused| match refused {
        track::ApplyError::Conflicts(conflicts) => conflicts.into_error(),
        track::ApplyError::SchemaMismatch(message) => failure(message),
    })?;
    if manager.name == last_applied::MANAGER {
        last_applied::renew(&mut object, config);
    }
    set_managed_fields(&mut object, managed.encode());
    Ok(object)
}

/// Checks the parts of a configuration that depend neither on the live object nor on its managers.
fn check_config(config: &Value, subject: &WriteTarget<'_>) -> Result<(), ApiError> {
    if !config.is_object() {
        return Err(ApiError::bad_request(
            "error decoding patch: an applied configuration must be an object",
        ));
    }
    let text = |member: &str| config[member].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != subject.api_version || kind != subject.gvk.kind {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        return Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
    }
    if config["metadata"]["managedFields"].is_array() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let mismatches = walk::check(config, subject.ty);
    let message = match &*mismatches {
        [] => return Ok(()),
        [mismatch] => mismatch.to_string(),
        mismatches => mismatches
            .iter()
            .fold("errors:".to_owned(), |message, mismatch| format!("{message}\n  {mismatch}")),
    };
    Err(failure(format!("failed to create typed patch object ({}): {message}", subject.describe(config))))
}

/// Returns an apply error, which has no reason upstream.
fn failure(message: String) -> ApiError {
    ApiError::new(500, "", message)
}

/// Restores the times of managers if nothing else changed between `live` and `new`, so that a write without effect is a
/// no-op.
pub(crate) fn keep_times(live: &Value, new: &mut Value) {
    fn entries(object: &Value) -> Option<&Vec<Value>> {
        object.get("metadata")?.get("managedFields")?.as_array()
    }
    fn without_times(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
        entry.as_object().into_iter().flatten().filter(|(member, _)| *member != "time")
    }
    let (Some(before), Some(after)) = (entries(live), entries(new)) else { return };
    let has_times_changed = before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| without_times(before).eq(without_times(after)))
        && before != after;
    if !has_times_changed {
        return;
    }
    if same_but_for_managers(live, new) {
        set_managed_fields(new, Some(Value::Array(before.clone())));
    }
}

fn same_but_for_managers(left: &Value, right: &Value) -> bool {
    same_members(Some(left), Some(right), "metadata")
        && same_members(left.get("metadata"), right.get("metadata"), "managedFields")
}

/// Returns whether two objects have the same members, except for one.
fn same_members(left: Option<&Value>, right: Option<&Value>, but: &str) -> bool {
    let (Some(Value::Object(left)), Some(Value::Object(right))) = (left, right) else { return false };
    let are_found = |(name, value): (&String, &Value)| {
        name == but || right.get(name).is_some_and(|other| same(value, other))
    };
    left.iter().all(are_found) && right.keys().all(|name| name == but || left.contains_key(name))
}
