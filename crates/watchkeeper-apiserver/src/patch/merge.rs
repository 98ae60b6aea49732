//! Merge patch: an object laid over an object, where null takes away.

use serde_json::{Map, Value};

/// `object` with `patch` merged into it (RFC 7386). A patch that is not an object replaces everything.
pub(crate) fn merge(object: &Value, patch: Value) -> Value {
    let mut merged = object.clone();
    merge_into(&mut merged, patch);
    merged
}

fn merge_into(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(members), Value::Object(patch)) => merge_members(members, patch),
        // Upstream leaves nulls in what replaces an object alone, and takes them out of what replaces anything else.
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

/// Takes members that are null out of all objects in a value; items of lists that are null stay.
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
