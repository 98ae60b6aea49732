//! Fields behind feature gates that are off by default in Kubernetes 1.37.
//!
//! A write drops such fields, as if the client had not sent them. A field that the stored object already uses is kept, so
//! that an object written while the gate was on survives updates.
//!
//! A path with `?` after a name, such as `lifecycle?.stopSignal`, also removes the object of that name if it is empty
//! without the field.

use serde_json::Value;

use super::{edit, path};

/// A gated field: its path (as in [`super::path`]), and the name of the gate.
pub(crate) type Gated = (&'static str, &'static str);

/// The gated fields of the types of a kind: the path of the type in the object, and its fields.
pub(crate) type GatedTypes = &'static [(&'static str, &'static [Gated])];

/// Removes the gated fields that `old` does not use.
pub(crate) fn drop_disabled(object: &mut Value, old: Option<&Value>, types: GatedTypes) {
    for (owner_path, fields) in types {
        for (field, _gate) in *fields {
            if is_used(object, owner_path, field) && !old.is_some_and(|old| is_used(old, owner_path, field)) {
                remove(object, owner_path, field);
            }
        }
    }
}

/// Removes `field` at every `owner_path`.
fn remove(object: &mut Value, owner_path: &str, field: &str) {
    let marked = if owner_path.is_empty() { field.to_owned() } else { format!("{owner_path}.{field}") };
    let path = marked.replace('?', "");
    let (parent, member) = path.rsplit_once('.').unwrap_or(("", &path));
    edit::each(object, parent, &mut |members| {
        members.remove(member);
    });
    if let Some((owner, _)) = marked.split_once('?') {
        remove_empty(object, owner);
    }
}

/// Removes the objects at `path` that have no members.
fn remove_empty(object: &mut Value, path: &str) {
    let (parent, member) = path.rsplit_once('.').unwrap_or(("", path));
    edit::each(object, parent, &mut |members| {
        if members.get(member).and_then(Value::as_object).is_some_and(edit::Members::is_empty) {
            members.remove(member);
        }
    });
}

/// Returns whether the object has a value at `field` of any `owner_path`. Called for every gated field on every write, so
/// the paths are not joined.
fn is_used(object: &Value, owner_path: &str, field: &str) -> bool {
    path::any(object, owner_path, &|owner| path::any(owner, field, &|value| !value.is_null()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{GatedTypes, drop_disabled};

    #[test]
    fn a_parent_emptied_by_a_dropped_field_is_removed() {
        let types: GatedTypes = &[("spec", &[("items[].life?.signal", "Signals")])];
        let mut object =
            json!({"spec": {"items": [{"life": {"signal": 1}}, {"life": {"signal": 1, "a": 2}}]}});
        drop_disabled(&mut object, None, types);
        assert_eq!(object, json!({"spec": {"items": [{}, {"life": {"a": 2}}]}}));
    }

    const TYPES: GatedTypes = &[("spec.template", &[("items[].new", "NewField"), ("other", "Other")])];

    #[test]
    fn a_field_of_a_disabled_gate_is_dropped_unless_the_stored_object_uses_it() {
        let sent = json!({"spec": {"template": {"items": [{"a": 1, "new": 2}, {"new": 3}], "other": {}}}});
        let mut object = sent.clone();
        drop_disabled(&mut object, None, TYPES);
        assert_eq!(object, json!({"spec": {"template": {"items": [{"a": 1}, {}]}}}));
        let mut object = sent.clone();
        let old = json!({"spec": {"template": {"items": [{"new": 1}]}}});
        drop_disabled(&mut object, Some(&old), TYPES);
        assert_eq!(object, json!({"spec": {"template": {"items": [{"a": 1, "new": 2}, {"new": 3}]}}}));
    }
}
