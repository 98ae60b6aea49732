//! The fast path for updates that move no field between managers: the writer changed only fields that it already managed.
//!
//! Controllers write the same few fields repeatedly. The managers then stay the same except for the time of one of them,
//! which can be determined from the stored `fieldsV1` without parsing and encoding the sets of all managers. That work would
//! be a quarter of the cost of an update.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Changes, Manager, WriteTarget, codec,
    managed::{self, ManagerOperation},
    set::FieldSet,
    track::UNMANAGED,
};

/// Returns the `managedFields` after such an update. None if fields move, or if that cannot be determined cheaply.
///
/// `before` is the stored list, which [`managed::Managed::encode`] wrote; `given` is the list that the client sent, which
/// must be equal.
pub(super) fn fast_update(
    before: &Value,
    given: &mut Option<Value>,
    changes: &Changes,
    subject: &WriteTarget<'_>,
    manager: &Manager<'_>,
) -> Option<Value> {
    let is_sent = given.as_ref().is_some_and(|given| given == before);
    let is_kept = is_sent || !subject.subresource.is_empty() || given.as_ref().is_none_or(Value::is_null);
    // If the type can change, the managers can change with it.
    if !is_kept || !subject.has_fixed_type {
        return None;
    }
    let entries = before.as_array().filter(|entries| !entries.is_empty())?;
    let mut fields = changes.modified.clone();
    fields.join(changes.added.clone());
    let unmanaged = fields.intersection(&UNMANAGED);
    fields.subtract(&UNMANAGED);

    let id = subject.manager_id(manager.name, ManagerOperation::Update);
    let mut own = None;
    for (index, entry) in entries.iter().enumerate() {
        if entry.get("apiVersion")?.as_str()? != subject.api_version {
            return None;
        }
        let managed = entry.get("fieldsV1")?;
        let is_own = managed::is_of(entry, &id);
        let is_untouched = contains_none(managed, &changes.removed)
            && contains_none(managed, &unmanaged)
            && (is_own || contains_none(managed, &fields));
        if !is_untouched {
            return None;
        }
        if is_own {
            own = Some((index, managed));
        }
    }
    if !fields.is_empty() && !own.is_some_and(|(_, managed)| contains_all(managed, &fields)) {
        return None;
    }
    let same = if is_sent { given.take() } else { Some(before.clone()) };
    let Some(Value::Array(mut entries)) = same else { return None };
    if !fields.is_empty() {
        let (index, _) = own?;
        let own = entries.get_mut(index)?.as_object_mut()?;
        own.insert("time".to_owned(), managed::written_time(manager.now).into());
        // Managers are sorted by time.
        entries.sort_by_cached_key(order);
    }
    Some(Value::Array(entries))
}

/// Returns the sort key of [`managed::Managed::encode`] for an encoded entry.
fn order(entry: &Value) -> (bool, i64, [String; 2]) {
    let text = |member: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default();
    let time = text("time").parse().map_or(0, Timestamp::as_second);
    (text("operation") != "Apply", time, ["manager", "subresource"].map(|member| text(member).to_owned()))
}

/// Returns whether all paths of `set` are in `fields`, a `fieldsV1`.
fn contains_all(fields: &Value, set: &FieldSet) -> bool {
    set.nodes().all(|(element, node)| {
        fields.get(element.encode()).is_some_and(|step| {
            (!node.is_member || codec::is_member(step)) && contains_all(step, &node.below)
        })
    })
}

/// Returns whether no path of `set` is in `fields`, a `fieldsV1`.
fn contains_none(fields: &Value, set: &FieldSet) -> bool {
    set.nodes().all(|(element, node)| {
        fields.get(element.encode()).is_none_or(|step| {
            !(node.is_member && codec::is_member(step)) && contains_none(step, &node.below)
        })
    })
}
