//! Strategic merge patch: a merge patch that depends on the types of Kubernetes.
//!
//! Lists merge item by item if the type has a merge strategy. Directives express what a merge alone cannot: `$patch:
//! replace` and `$patch: delete` in an object or an item, `$retainKeys`, `$deleteFromPrimitiveList/…` and
//! `$setElementOrder/…` beside a list.

mod directive;
mod list;
mod text;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::{
    directive::{DELETE_FROM_LIST, PATCH, RETAIN_KEYS, SET_ORDER, target_of},
    list::MergeList,
    text::{describe, kind_of},
};
use crate::{
    schema::{PatchStrategy, Shape, TypeRef},
    status::ApiError,
};

/// Returns `object`, of type `ty`, with a strategic merge patch merged into it.
///
/// # Errors
/// 400 for malformed directives; 500 for unknown directives and items without their merge key, as upstream.
pub(crate) fn strategic(object: &Value, patch: &Value, ty: &TypeRef) -> Result<Value, ApiError> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(ApiError::bad_request("invalid JSON document"));
    };
    merge_members(object.clone(), patch, ty).map(Value::Object)
}

/// Returns an error that upstream does not classify.
fn failure(message: String) -> ApiError {
    ApiError::new(500, "", message)
}

fn merge_members(
    mut members: Map<String, Value>,
    patch: &Map<String, Value>,
    ty: &TypeRef,
) -> Result<Map<String, Value>, ApiError> {
    if let Some(what) = patch.get(PATCH) {
        return match what.as_str() {
            Some("replace") => {
                let mut replacement = patch.clone();
                replacement.remove(PATCH);
                Ok(replacement)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(directive::unknown(what, patch)),
        };
    }
    directive::retain_keys(&mut members, patch)?;

    // Lists with a given order are merged together with it.
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (key, order) in patch.iter().filter(|(key, _)| key.starts_with(SET_ORDER)) {
        let name = target_of(key, SET_ORDER)?;
        let Some(order) = order.as_array() else {
            return Err(failure(format!("expected a []interface {{}}, but received a {}", kind_of(order))));
        };
        let (strategy, member) = lookup(ty, name)?;
        let list = MergeList::new(strategy, &member)?;
        let merged = list.merge_in_order(as_items(members.get(name))?, as_items(patch.get(name))?, order)?;
        if let Some(merged) = merged {
            members.insert(name.to_owned(), Value::Array(merged));
            done.insert(name);
        }
    }

    for (key, value) in patch {
        if key == RETAIN_KEYS || key.starts_with(SET_ORDER) || done.contains(key.as_str()) {
            continue;
        }
        if key.starts_with(DELETE_FROM_LIST) {
            delete_from_list(&mut members, target_of(key, DELETE_FROM_LIST)?, value, ty)?;
        } else {
            merge_member(&mut members, key, value, ty)?;
        }
    }
    Ok(members)
}

fn merge_member(
    members: &mut Map<String, Value>,
    name: &str,
    patch: &Value,
    ty: &TypeRef,
) -> Result<(), ApiError> {
    // A member is removed by null, or by a directive without other members.
    let merged = match (members.remove(name), patch) {
        (_, Value::Null) => None,
        (Some(Value::Object(current)), Value::Object(patch)) => {
            let (strategy, member) = lookup(ty, name)?;
            let merged =
                if strategy.replaces { patch.clone() } else { merge_members(current, patch, &member)? };
            Some(Value::Object(merged))
        }
        (Some(Value::Array(current)), Value::Array(patch)) => {
            let (strategy, member) = lookup(ty, name)?;
            let items = if strategy.merges {
                MergeList::new(strategy, &member)?.merge(current, patch)?
            } else {
                patch.clone()
            };
            Some(Value::Array(items))
        }
        (_, patch) => directive::plain(patch),
    };
    if let Some(merged) = merged {
        members.insert(name.to_owned(), merged);
    }
    Ok(())
}

fn delete_from_list(
    members: &mut Map<String, Value>,
    name: &str,
    deleted: &Value,
    ty: &TypeRef,
) -> Result<(), ApiError> {
    let Some(Value::Array(deleted)) = Some(deleted) else { return Ok(()) };
    let Some(Value::Array(current)) = members.get_mut(name) else { return Ok(()) };
    let (strategy, member) = lookup(ty, name)?;
    let left = MergeList::new(strategy, &member)?.without(std::mem::take(current), deleted)?;
    *current = left;
    Ok(())
}

/// Returns the merge strategy of a member, and its type.
fn lookup<'t>(ty: &'t TypeRef, name: &str) -> Result<(&'t PatchStrategy, TypeRef), ApiError> {
    let kind = match ty.shape() {
        Shape::Struct(_) => {
            return ty.field(name).map(|field| (&field.patch, ty.at(field.ty))).ok_or_else(|| {
                let short = ty.name().and_then(|name| name.rsplit('.').next()).unwrap_or("struct");
                failure(format!("unable to find api field in struct {short} for the json field {name:?}"))
            });
        }
        Shape::Map { .. } | Shape::Any => "map",
        Shape::List { .. } => "slice",
        Shape::Scalar(_) => "string",
    };
    Err(failure(format!("merging an object in json but data type is not struct, instead is: {kind}")))
}

fn as_items(value: Option<&Value>) -> Result<Option<&[Value]>, ApiError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => {
            Err(failure(format!("expected a []interface {{}}, but received a {}", kind_of(other))))
        }
    }
}

fn no_merge_key(item: &Map<String, Value>, merge_key: &str) -> ApiError {
    let item = describe(&Value::Object(item.clone()));
    failure(format!("map: {item} does not contain declared merge key: {merge_key}"))
}
