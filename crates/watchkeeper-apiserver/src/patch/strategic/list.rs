//! Lists that merge item by item.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    directive::{self, PATCH},
    failure, merge_members, no_merge_key,
    text::{describe, kind_of},
};
use crate::{
    schema::{PatchStrategy, Shape, TypeRef},
    status::ApiError,
};

/// A list with its merge strategy.
pub(super) struct MergeList<'t> {
    merge_key: Option<&'t str>,
    merges: bool,
    item: TypeRef,
}

/// The type of the items of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    Objects,
    Plain,
}

static NULL: Value = Value::Null;

impl<'t> MergeList<'t> {
    /// Returns the list of a member of type `ty`.
    pub(super) fn new(strategy: &'t PatchStrategy, ty: &TypeRef) -> Result<Self, ApiError> {
        let (Shape::List { .. }, Some(item)) = (ty.shape(), ty.item()) else {
            return Err(failure("expected slice or array type, but got: struct".to_owned()));
        };
        Ok(Self { merge_key: strategy.merge_key.as_deref(), merges: strategy.merges, item })
    }

    /// Returns `current` with `patch` merged into it. Items of the patch keep its order; new ones come first.
    pub(super) fn merge(&self, current: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, ApiError> {
        let Some(items) = items_of(&[&current, patch])? else { return Ok(current) };
        if items == Items::Plain {
            let mut seen = HashSet::new();
            let merged: Vec<_> =
                current.iter().chain(patch).filter(|item| seen.insert(*item)).cloned().collect();
            return self.in_order(merged, &refs(patch), &current, items);
        }
        let Some(merge_key) = self.merge_key else {
            return Err(failure("cannot merge lists without merge key for struct".to_owned()));
        };
        let (current, patch) = follow_directives(current, patch, merge_key)?;
        let merged = self.merge_objects(current.clone(), &patch, merge_key)?;
        self.in_order(merged, &patch, &current, items)
    }

    /// Returns `current` and `patch` merged, in the given order. None if both are absent.
    pub(super) fn merge_in_order(
        &self,
        current: Option<&[Value]>,
        patch: Option<&[Value]>,
        order: &[Value],
    ) -> Result<Option<Vec<Value>>, ApiError> {
        self.check_order(patch.unwrap_or_default(), order)?;
        let merged = match (current, patch) {
            (None, None) => return Ok(None),
            (Some(current), None) => current.to_vec(),
            (None, Some(patch)) => patch.iter().filter_map(directive::plain).collect(),
            (Some(_), Some(patch)) if !self.merges => patch.to_vec(),
            (Some(current), Some(patch)) => self.merge(current.to_vec(), patch)?,
        };
        let Some(items) = items_of(&[current.unwrap_or_default(), patch.unwrap_or_default()])? else {
            return Err(failure("no elements in any of the given slices".to_owned()));
        };
        self.in_order(merged, &refs(order), current.unwrap_or_default(), items).map(Some)
    }

    /// Returns `current` without the values in `deleted`.
    pub(super) fn without(&self, current: Vec<Value>, deleted: &[Value]) -> Result<Vec<Value>, ApiError> {
        match items_of(&[&current, deleted])? {
            None => Ok(current),
            Some(Items::Objects) => self.merge(current, deleted),
            Some(Items::Plain) => {
                let deleted: HashSet<_> = deleted.iter().collect();
                Ok(current.into_iter().filter(|item| !deleted.contains(item)).collect())
            }
        }
    }

    fn merge_objects(
        &self,
        mut merged: Vec<Value>,
        patch: &[&Value],
        merge_key: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let mut indexes: HashMap<Value, usize> = HashMap::new();
        for (index, item) in merged.iter().enumerate() {
            if let Some(key) = item.get(merge_key) {
                indexes.entry(key.clone()).or_insert(index);
            }
        }
        for patch in patch {
            let key = keyed(patch, Some(merge_key))?;
            let current =
                indexes.get(key).and_then(|index| merged.get_mut(*index)).and_then(Value::as_object_mut);
            if let (Some(current), Some(patch)) = (current, patch.as_object()) {
                *current = merge_members(std::mem::take(current), patch, &self.item)?;
            } else {
                indexes.insert(key.clone(), merged.len());
                merged.push(without_nulls(patch));
            }
        }
        Ok(merged)
    }

    /// Returns the identity of an item: its merge key, or the item itself.
    fn key<'v>(&self, item: &'v Value, items: Items) -> &'v Value {
        match (items, self.merge_key) {
            (Items::Objects, Some(merge_key)) => item.get(merge_key).unwrap_or(&NULL),
            _ => item,
        }
    }

    /// Returns `merged` with the items of `order` in that order, and the other items at their positions in `server_order`.
    fn in_order(
        &self,
        merged: Vec<Value>,
        order: &[&Value],
        server_order: &[Value],
        items: Items,
    ) -> Result<Vec<Value>, ApiError> {
        if items == Items::Objects {
            check_keys(order.iter().copied(), self.merge_key)?;
            check_keys(&merged, self.merge_key)?;
            check_keys(server_order, self.merge_key)?;
        }
        let mut ordered: HashMap<&Value, usize> = HashMap::new();
        for (index, item) in order.iter().enumerate() {
            ordered.entry(self.key(item, items)).or_insert(index);
        }
        let mut on_server: HashMap<&Value, usize> = HashMap::new();
        for (index, item) in server_order.iter().enumerate() {
            on_server.entry(self.key(item, items)).or_insert(index);
        }
        let index_on_server = |item: &Value| on_server.get(self.key(item, items)).copied();

        let (mut given, mut others): (Vec<_>, Vec<_>) =
            merged.into_iter().partition(|item| ordered.contains_key(self.key(item, items)));
        given.sort_by_key(|item| ordered.get(self.key(item, items)).copied());
        others.sort_by_key(index_on_server);

        let mut all = Vec::with_capacity(given.len() + others.len());
        let mut others = others.into_iter().peekable();
        for item in given {
            let index = index_on_server(&item);
            // An item that only the server has is placed before the item that it preceded on the server.
            while let Some(other) = others.next_if(|other| {
                index_on_server(other).zip(index).is_some_and(|(other, index)| other < index)
            }) {
                all.push(other);
            }
            all.push(item);
        }
        all.extend(others);
        Ok(all)
    }

    /// Checks that the items of the patch are in the given order.
    fn check_order(&self, patch: &[Value], order: &[Value]) -> Result<(), ApiError> {
        if patch.is_empty() || order.is_empty() {
            return Ok(());
        }
        let is_deletion =
            |item: &Value| self.merge_key.is_some() && item.get(PATCH).is_some_and(|what| what == "delete");
        let mut items = patch.iter().filter(|item| !is_deletion(item)).peekable();
        let mut order_left = order.iter();
        while let Some(item) = items.peek()
            && !order_left.as_slice().is_empty()
        {
            // Other directives have no position, but must not come after the last item.
            if item.get(PATCH).is_some() {
                items.next();
            } else if let Some(candidate) = order_left.next()
                && keyed(item, self.merge_key)? == keyed(candidate, self.merge_key)?
            {
                items.next();
            }
        }
        if items.peek().is_none() {
            return Ok(());
        }
        let (patch, order) =
            (describe(&Value::Array(patch.to_vec())), describe(&Value::Array(order.to_vec())));
        Err(failure(format!(
            "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
        )))
    }
}

/// Returns the merge key of an item, or the item itself in lists without merge key.
fn keyed<'v>(item: &'v Value, merge_key: Option<&str>) -> Result<&'v Value, ApiError> {
    let Some(merge_key) = merge_key else { return Ok(item) };
    let Some(members) = item.as_object() else {
        return Err(failure(format!(
            "expected a map[string]interface {{}}, but received a {}",
            kind_of(item)
        )));
    };
    members.get(merge_key).ok_or_else(|| no_merge_key(members, merge_key))
}

fn check_keys<'v>(
    items: impl IntoIterator<Item = &'v Value>,
    merge_key: Option<&str>,
) -> Result<(), ApiError> {
    items.into_iter().try_for_each(|item| keyed(item, merge_key).map(drop))
}

fn refs(items: &[Value]) -> Vec<&Value> {
    items.iter().collect()
}

/// Executes the directives of items with a `$patch`, and returns the items without.
fn follow_directives<'v>(
    mut current: Vec<Value>,
    patch: &'v [Value],
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<&'v Value>), ApiError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted: HashSet<&Value> = HashSet::new();
    let mut replaces = false;
    for whole in patch {
        let Some((item, what)) = whole.as_object().and_then(|item| Some((item, item.get(PATCH)?))) else {
            plain.push(whole);
            continue;
        };
        match what.as_str() {
            Some("delete") => {
                deleted.insert(item.get(merge_key).ok_or_else(|| no_merge_key(item, merge_key))?);
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(failure("merging lists cannot yet be specified in the patch".to_owned()));
            }
            _ => return Err(directive::unknown(what, item)),
        }
    }
    if replaces {
        return Ok((plain.into_iter().map(without_nulls).collect(), Vec::new()));
    }
    if !deleted.is_empty() {
        current.retain(|item| item.get(merge_key).is_none_or(|key| !deleted.contains(key)));
    }
    Ok((current, plain))
}

/// Returns the common type of all items of some lists. None if there is no item.
fn items_of(lists: &[&[Value]]) -> Result<Option<Items>, ApiError> {
    let mut items = lists.iter().copied().flatten();
    let Some(first) = items.next() else { return Ok(None) };
    if items.any(|item| kind_of(item) != kind_of(first)) {
        let lists = Value::Array(lists.iter().map(|list| Value::Array(list.to_vec())).collect());
        return Err(failure(format!("list element types are not identical: {}", describe(&lists))));
    }
    match first {
        Value::Array(_) => Err(super::super::unprocessable("lists of lists are not supported")),
        Value::Null => Err(failure("a list that merges may not have null items".to_owned())),
        Value::Object(_) => Ok(Some(Items::Objects)),
        _ => Ok(Some(Items::Plain)),
    }
}

/// Returns a new item without nulls, which have nothing to remove.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(members.map(|(name, member)| (name.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        _ => value.clone(),
    }
}
