//! The directives in a strategic merge patch.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{failure, text::describe};
use crate::status::ApiError;

/// The directive for the object or item that contains it: `replace` or `delete`.
pub(super) const PATCH: &str = "$patch";

/// The directive with the members to keep; all others are removed.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";

/// The directive, followed by a slash and the name of a list, with the values to delete from the list.
pub(super) const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// The directive, followed by a slash and the name of a list, with the order of its items.
pub(super) const SET_ORDER: &str = "$setElementOrder";

/// Returns the name of the list in a directive.
pub(super) fn target_of<'k>(key: &'k str, prefix: &str) -> Result<&'k str, ApiError> {
    match key.split_once('/') {
        Some((directive, name)) if directive == prefix => Ok(name),
        _ if prefix == SET_ORDER => {
            Err(ApiError::bad_request("invalid patch format of setElementOrder list"))
        }
        _ => Err(ApiError::bad_request("invalid patch format of primitive list")),
    }
}

/// Returns the error for a `$patch` that is neither `replace` nor `delete`.
pub(super) fn unknown(what: &Value, patch: &Map<String, Value>) -> ApiError {
    let (what, patch) = (describe(what), describe(&Value::Object(patch.clone())));
    failure(format!("unknown patch type: {what} in map: {patch}"))
}

/// Removes the members that `$retainKeys` does not list. Members that the patch sets must be listed.
pub(super) fn retain_keys(
    members: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), ApiError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || ApiError::bad_request("invalid patch format of retainKeys");
    let keys: HashSet<&str> =
        keys.as_array().ok_or_else(malformed)?.iter().filter_map(Value::as_str).collect();
    let is_listed = |name: &String| keys.contains(name.as_str());
    let is_unlisted_change = |(name, value): (&String, &Value)| {
        let is_directive =
            name == RETAIN_KEYS || name.starts_with(DELETE_FROM_LIST) || name.starts_with(SET_ORDER);
        !is_directive && !value.is_null() && !is_listed(name)
    };
    if patch.iter().any(is_unlisted_change) {
        return Err(malformed());
    }
    members.retain(|name, _| is_listed(name));
    Ok(())
}

/// Returns a part of a patch that has no counterpart to merge with, without nulls and without values that contain a
/// `$patch`.
pub(super) fn plain(patch: &Value) -> Option<Value> {
    match patch {
        Value::Object(members) => {
            if members.contains_key(PATCH) {
                return None;
            }
            let members = members.iter().filter(|(_, member)| !member.is_null());
            Some(Value::Object(
                members.filter_map(|(name, member)| Some((name.clone(), plain(member)?))).collect(),
            ))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(plain).collect())),
        _ => Some(patch.clone()),
    }
}
