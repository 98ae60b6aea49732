//! The update that moves no field from one manager to another: whoever wrote changed only what was its own already.
//!
//! Controllers write the same few fields again and again. Then the managers stay as they are, but for the time of one of
//! them, and that can be told from `fieldsV1` as it is stored: without reading the sets of all managers and writing them
//! anew, which is a quarter of what an update costs.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Changes, Manager, Subject, codec,
    managed::{self, Operation},
    set::FieldSet,
    track::UNMANAGED,
};

/// The `managedFields` after such an update; none if fields move, or if that would take a closer look to know.
///
/// `before` is the stored list, which was written by [`managed::Managed::encode`], and `given` what the client sent of it; it is
/// taken if it is the same.
pub(super) fn renewed(
    before: &Value,
    given: &mut Option<Value>,
    changes: &Changes,
    subject: &Subject<'_>,
    manager: &Manager<'_>,
) -> Option<Value> {
    let is_sent = given.as_ref().is_some_and(|given| given == before);
    let is_kept = is_sent || !subject.subresource.is_empty() || given.as_ref().is_none_or(Value::is_null);
    // A type that can change makes managers change with it.
    if !is_kept || !subject.has_fixed_type {
        return None;
    }
    let entries = before.as_array().filter(|entries| !entries.is_empty())?;
    let mut fields = changes.modified.clone();
    fields.join(changes.added.clone());
    let unmanaged = fields.intersection(&UNMANAGED);
    fields.subtract(&UNMANAGED);

    let id = subject.manager_id(manager.name, Operation::Update);
    let mut own = None;
    for (place, entry) in entries.iter().enumerate() {
        if entry.get("apiVersion")?.as_str()? != subject.api_version {
            return None;
        }
        let managed = entry.get("fieldsV1")?;
        let is_own = managed::is_of(entry, &id);
        let is_untouched = holds_none(managed, &changes.removed)
            && holds_none(managed, &unmanaged)
            && (is_own || holds_none(managed, &fields));
        if !is_untouched {
            return None;
        }
        if is_own {
            own = Some((place, managed));
        }
    }
    if !fields.is_empty() && !own.is_some_and(|(_, managed)| holds_all(managed, &fields)) {
        return None;
    }
    let same = if is_sent { given.take() } else { Some(before.clone()) };
    let Some(Value::Array(mut entries)) = same else { return None };
    if !fields.is_empty() {
        let (place, _) = own?;
        let own = entries.get_mut(place)?.as_object_mut()?;
        own.insert("time".to_owned(), managed::written_time(manager.now).into());
        // Managers are listed by time.
        entries.sort_by_cached_key(order);
    }
    Some(Value::Array(entries))
}

/// What [`managed::Managed::encode`] sorts by, of an entry it has written.
fn order(entry: &Value) -> (bool, i64, [String; 2]) {
    let text = |member: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default();
    let time = text("time").parse().map_or(0, Timestamp::as_second);
    (text("operation") != "Apply", time, ["manager", "subresource"].map(|member| text(member).to_owned()))
}

/// Whether all paths of `set` are in `fields`, which is a `fieldsV1`.
fn holds_all(fields: &Value, set: &FieldSet) -> bool {
    set.nodes().all(|(element, node)| {
        fields
            .get(element.encode())
            .is_some_and(|step| (!node.is_member || codec::is_member(step)) && holds_all(step, &node.below))
    })
}

/// Whether no path of `set` is in `fields`, which is a `fieldsV1`.
fn holds_none(fields: &Value, set: &FieldSet) -> bool {
    set.nodes().all(|(element, node)| {
        fields
            .get(element.encode())
            .is_none_or(|step| !(node.is_member && codec::is_member(step)) && holds_none(step, &node.below))
    })
}
