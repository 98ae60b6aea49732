//! Merge patch: the members of the patch replace those of the object; null removes a member.

use serde_json::{Map, Value};

/// Returns `object` with `patch` merged into it (RFC 7386). A patch that is not an object replaces the whole object.
pub(crate) fn merge(object: &Value, patch: Value) -> Value {
    let mut merged = object.clone();
    merge_into(&mut merged, patch);
    merged
}

fn merge_into(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(members), Value::Object(patch)) => merge_members(members, patch),
        // Upstream keeps nulls in a value that replaces an object, and removes them from a value that replaces anything
        // else.
        (target @ Value::Object(_), patch) => *target = patch,
        (target, mut patch) => {
            prune_nulls(&mut patch);
            *target = patch;
        }
    }
}

fn merge_members(members: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, patch) in patch {
        if patch.is_null() {
            members.remove(&name);
        } else {
            merge_into(members.entry(name).or_insert(Value::Null), patch);
        }
    }
}

/// Removes null members from all objects in a value. Null items of lists stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}
