//! The changes of managers with the object.

use std::{
    collections::{BTreeMap, btree_map::Entry as MapEntry},
    sync::LazyLock,
};

use super::{
    BEFORE_FIRST_APPLY, Changes, Conflicts, FieldSet, Managed, Manager, ManagerEntry, ManagerId,
    ManagerOperation, SchemaMismatch, WriteTarget, same,
    walk::{EmptiedMember, compare, merge, owned, remove},
};
use crate::schema::{TypeRef, zero};
use serde_json::{Map, Value};

/// The reason why an apply failed.
pub(super) enum ApplyError {
    Conflicts(Conflicts),
    SchemaMismatch(String),
}

/// The fields that are not managed: they identify the object or belong to the server.
pub(super) static UNMANAGED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "clusterName"],
        &["metadata", "creationTimestamp"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "resourceVersion"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
    ])
});

/// The differences between two objects, in each version in which a manager wrote.
pub(super) struct Comparisons<'a> {
    live: Option<&'a Value>,
    new: &'a Value,
    subject: &'a WriteTarget<'a>,
    by_version: BTreeMap<String, Option<Changes>>,
}

impl<'a> Comparisons<'a> {
    pub(super) fn new(live: Option<&'a Value>, new: &'a Value, subject: &'a WriteTarget<'a>) -> Self {
        Self { live, new, subject, by_version: BTreeMap::new() }
    }

    /// Returns the differences in `api_version`. None if the kind is not served in it.
    pub(super) fn at(&mut self, api_version: &str) -> Result<Option<&Changes>, SchemaMismatch> {
        match self.by_version.entry(api_version.to_owned()) {
            MapEntry::Occupied(entry) => Ok(entry.into_mut().as_ref()),
            MapEntry::Vacant(entry) => {
                let changes = changes_at(self.live, self.new, self.subject, api_version)?;
                Ok(entry.insert(changes).as_ref())
            }
        }
    }

    /// Returns the same as [`Comparisons::at`], consuming the comparisons.
    fn take(mut self, api_version: &str) -> Result<Option<Changes>, SchemaMismatch> {
        self.at(api_version)?;
        Ok(self.by_version.remove(api_version).flatten())
    }
}

fn changes_at(
    live: Option<&Value>,
    new: &Value,
    subject: &WriteTarget<'_>,
    api_version: &str,
) -> Result<Option<Changes>, SchemaMismatch> {
    let changes = if api_version == subject.api_version {
        compare_from(live, new, subject.ty)?
    } else {
        let live = live.map(|live| subject.versions.convert(live, api_version));
        let (Some((new, ty)), live) = (subject.versions.convert(new, api_version), live) else {
            return Ok(None);
        };
        match live {
            None => compare_from(None, &new, &ty)?,
            Some(Some((live, _))) => compare_from(Some(&live), &new, &ty)?,
            Some(None) => return Ok(None),
        }
    };
    let Changes { mut removed, mut modified, mut added } = changes;
    for set in [&mut removed, &mut modified, &mut added] {
        subject.mask.apply(set);
    }
    Ok(Some(Changes { removed, modified, added }))
}

/// Compares two objects. A create starts from the zero value of the type, so that fields which are always present do not
/// count as added.
fn compare_from(live: Option<&Value>, new: &Value, ty: &TypeRef) -> Result<Changes, SchemaMismatch> {
    match live {
        Some(live) => compare(Some(live), Some(new), ty),
        None => compare(Some(&zero(ty)), Some(new), ty),
    }
}

/// Assigns the differences between the objects to the manager.
pub(super) fn update(
    mut comparisons: Comparisons<'_>,
    managed: &mut Managed,
    manager: &Manager<'_>,
) -> Result<(), SchemaMismatch> {
    let Comparisons { live, new, subject, .. } = comparisons;
    follow_schema(live.unwrap_or(new), subject, managed);
    give_up_ownership(managed, &mut comparisons, None)?;

    let Some(Changes { modified, added, .. }) = comparisons.take(&subject.api_version)? else {
        return Ok(());
    };
    let mut fields = modified;
    fields.join(added);
    fields.subtract(&UNMANAGED);
    if !fields.is_empty() {
        let id = subject.manager_id(manager.name, ManagerOperation::Update);
        if let Some(previous) = managed.get(&id) {
            fields.join(previous.fields.clone());
        }
        let api_version = subject.api_version.clone();
        managed.insert(id, ManagerEntry { api_version, fields, time: Some(manager.now) });
    }
    managed.cap_updaters();
    Ok(())
}

/// Removes changed and deleted fields from every manager except `keeper`.
fn give_up_ownership(
    managed: &mut Managed,
    comparisons: &mut Comparisons<'_>,
    keeper: Option<&ManagerId>,
) -> Result<(), SchemaMismatch> {
    let mut mismatch = None;
    managed.retain(|id, entry| {
        if keeper == Some(id) {
            return true;
        }
        match comparisons.at(&entry.api_version) {
            Ok(Some(changes)) => {
                for set in [&changes.modified, &changes.added, &changes.removed] {
                    entry.fields.subtract(set);
                }
                true
            }
            Ok(None) => false,
            Err(error) => {
                mismatch = Some(error);
                true
            }
        }
    });
    mismatch.map_or(Ok(()), Err)
}

/// Adapts managers to types that have become atomic, and removes managers in versions that are no longer served.
fn follow_schema(object: &Value, subject: &WriteTarget<'_>, managed: &mut Managed) {
    let mut types: BTreeMap<String, Option<TypeRef>> =
        BTreeMap::from([(subject.api_version.clone(), Some(subject.ty.clone()))]);
    managed.retain(|_, entry| {
        let ty = types
            .entry(entry.api_version.clone())
            .or_insert_with(|| subject.versions.convert(object, &entry.api_version).map(|(_, ty)| ty));
        if let Some(ty) = ty {
            entry.fields.follow_schema(ty);
        }
        ty.is_some()
    });
}

/// Merges `config` into `live` and moves fields between managers accordingly.
pub(super) fn apply(
    live: Option<&Value>,
    config: &Value,
    subject: &WriteTarget<'_>,
    mut managed: Managed,
    manager: &Manager<'_>,
    force: bool,
) -> Result<(Value, Managed), ApplyError> {
    let mismatch = |doing: &str| {
        let doing = doing.to_owned();
        move |mismatch: SchemaMismatch| ApplyError::SchemaMismatch(format!("{doing}: {mismatch}"))
    };
    if managed.is_empty()
        && let Some(live) = live
    {
        let first = Manager { name: BEFORE_FIRST_APPLY, now: manager.now };
        update(Comparisons::new(None, live, subject), &mut managed, &first)
            .map_err(mismatch("failed to create manager for existing fields"))?;
    }
    let empty = Value::Object(Map::new());
    let base = live.unwrap_or(&empty);
    follow_schema(base, subject, &mut managed);

    let merged = merge(base, config, subject.ty).map_err(mismatch("failed to merge config"))?;
    let mut fields = owned(config, subject.ty).map_err(mismatch("failed to get field set"))?;
    subject.mask.apply(&mut fields);
    let id = subject.manager_id(manager.name, ManagerOperation::Apply);
    let last = managed.get(&id).cloned();
    let time = last.as_ref().and_then(|last| last.time);
    managed.insert(id.clone(), ManagerEntry { api_version: subject.api_version.clone(), fields, time });

    let Pruned { object, compared } = match &last {
        Some(last) if !last.fields.is_empty() => {
            prune(merged, subject, &managed, last).map_err(mismatch("failed to prune fields"))?
        }
        _ => Pruned { object: merged, compared: None },
    };

    let mut comparisons = Comparisons::new(live, compared.as_ref().unwrap_or(&object), subject);
    if !force {
        let conflicts =
            conflicts(&managed, &id, &mut comparisons).map_err(mismatch("failed to compare objects"))?;
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    give_up_ownership(&mut managed, &mut comparisons, Some(&id))
        .map_err(mismatch("failed to compare objects"))?;

    let is_changed = live.is_none_or(|live| !same(live, &object));
    managed.retain(|other, entry| {
        if *other == id {
            entry.fields.subtract(&UNMANAGED);
            if is_changed {
                entry.time = Some(manager.now);
            }
        }
        true
    });
    Ok((object, managed))
}

fn conflicts(
    managed: &Managed,
    applier: &ManagerId,
    comparisons: &mut Comparisons<'_>,
) -> Result<Conflicts, SchemaMismatch> {
    let mut conflicts = Conflicts::default();
    for (id, entry) in managed.iter().filter(|(id, _)| *id != applier) {
        if let Some(changes) = comparisons.at(&entry.api_version)? {
            let mut fields = entry.fields.intersection(&changes.modified);
            fields.join(entry.fields.intersection(&changes.added));
            conflicts.add(id, fields);
        }
    }
    Ok(conflicts)
}

/// An object after the removal of fields that are no longer applied.
struct Pruned {
    object: Value,
    /// The same object with nulls in place of emptied values, where this makes a difference: a null is still managed by its
    /// managers.
    compared: Option<Value>,
}

/// Removes from `merged` the fields that the applier applied last time and not this time, unless another manager has them.
fn prune(
    merged: Value,
    subject: &WriteTarget<'_>,
    managed: &Managed,
    last: &ManagerEntry,
) -> Result<Pruned, SchemaMismatch> {
    let in_version = |object: Value, from: &str, ty: &TypeRef, to: &str| {
        if from == to { Some((object, ty.clone())) } else { subject.versions.convert(&object, to) }
    };
    let unchanged = |object| Ok(Pruned { object, compared: None });
    let version = last.api_version.as_str();
    let Some((before, ty)) = in_version(merged.clone(), &subject.api_version, subject.ty, version) else {
        return unchanged(merged);
    };
    let last_fields = last.fields.with_structs(Some(&ty));
    let mut pruned = without(&before, &last_fields, &ty, EmptiedMember::Null);

    // Fields of any manager are restored: first in the current version, so that later conversions are complete.
    let mut by_version: BTreeMap<(bool, &str), FieldSet> = BTreeMap::new();
    for (_, entry) in managed.iter() {
        let fields = by_version.entry((entry.api_version != version, &entry.api_version)).or_default();
        fields.join(entry.fields.clone());
    }
    let mut current = (version, ty.clone());
    let mut whole = before.clone();
    for ((_, other), fields) in by_version {
        let (Some((whole_there, ty_there)), Some((pruned_there, _))) = (
            in_version(whole.clone(), current.0, &current.1, other),
            in_version(pruned.clone(), current.0, &current.1, other),
        ) else {
            continue;
        };
        let mut removed = owned(&whole_there, &ty_there)?.with_structs(Some(&ty_there));
        removed.subtract(&owned(&pruned_there, &ty_there)?.with_structs(Some(&ty_there)));
        removed.subtract(&fields.with_structs(Some(&ty_there)));
        pruned = without(&whole_there, &removed, &ty_there, EmptiedMember::Null);
        whole = whole_there;
        current = (other, ty_there);
    }

    // Fields that the applier did not apply itself stay.
    let Some((pruned, _)) = in_version(pruned, current.0, &current.1, version) else {
        return unchanged(merged);
    };
    let mut removed = owned(&before, &ty)?.with_structs(Some(&ty));
    removed.subtract(&owned(&pruned, &ty)?.with_structs(Some(&ty)));
    let removed = removed.intersection(&last_fields);
    let finish = |emptied| {
        let object = without(&before, &removed, &ty, emptied);
        in_version(object, version, &ty, &subject.api_version).map(|(object, _)| object)
    };
    match finish(EmptiedMember::Removed) {
        Some(object) => {
            Ok(Pruned { compared: finish(EmptiedMember::Null).filter(|nulls| *nulls != object), object })
        }
        None => unchanged(merged),
    }
}

fn without(object: &Value, fields: &FieldSet, ty: &TypeRef, emptied: EmptiedMember) -> Value {
    remove(object, fields, ty, emptied).unwrap_or_else(|| Value::Object(Map::new()))
}
