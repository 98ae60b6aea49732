//! JSON patch: a list of operations.

use serde_json::{Map, Value};

use super::{
    pointer::{Pointer, resolve_index},
    unprocessable,
};
use crate::{
    field::{MAX_TEXT_BYTES, cut},
    status::ApiError,
};

/// The maximum number of operations in a patch.
pub(crate) const MAX_OPERATIONS: usize = 10_000;

/// The maximum number of bytes that the copies of one patch add in total, so that a small patch cannot create a huge object.
/// Moves to deeper paths count too, because their depth must be measured.
pub(crate) const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of list items that the operations of one patch shift in total. Inserting or removing an item shifts
/// all items behind it.
pub(crate) const MAX_MOVED_ITEMS: usize = 32 * 1024 * 1024;

/// The maximum depth of a patched object. Leaves some levels for the list or watch event around the object.
pub(crate) const MAX_DEPTH: usize = 120;

/// The maximum number of unknown members of operations that are reported, the same as for a body upstream.
const MAX_UNKNOWN: usize = 100;

/// A parsed JSON patch.
#[derive(Debug, Clone)]
pub(crate) struct JsonPatch {
    operations: Vec<JsonOperation>,
    unknown: Vec<String>,
}

#[derive(Debug, Clone)]
struct JsonOperation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    /// The value; null if absent, as upstream.
    value: Value,
}

impl JsonPatch {
    /// Parses a patch.
    ///
    /// # Errors
    /// 400 if the body is not a list of operations; 413 if it has too many.
    pub(crate) fn read(body: Value) -> Result<Self, ApiError> {
        let items = match body {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            _ => {
                return Err(ApiError::bad_request(
                    "error decoding patch: a JSON patch must be a list of operations",
                ));
            }
        };
        if items.len() > MAX_OPERATIONS {
            return Err(ApiError::new(
                413,
                "RequestEntityTooLarge",
                format!(
                    "Request entity is too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, \
                     got {}",
                    items.len()
                ),
            ));
        }
        let mut patch = Self { operations: Vec::with_capacity(items.len()), unknown: Vec::new() };
        for (number, item) in items.into_iter().enumerate() {
            let mut members = match item {
                Value::Object(members) => members,
                Value::Null => Map::new(),
                _ => return Err(not_an_operation(number, "it is not an object")),
            };
            let mut text = |member: &str| match members.remove(member) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(_) => Err(not_an_operation(number, &format!("{member} is not a string"))),
            };
            let (op, path, from) = (text("op")?, text("path")?, text("from")?);
            let op = op.unwrap_or_else(|| "unknown".to_owned());
            let value = members.remove("value").unwrap_or_default();
            let remaining = MAX_UNKNOWN.saturating_sub(patch.unknown.len());
            patch.unknown.extend(members.keys().take(remaining).map(|member| {
                let member = cut(member.clone(), MAX_TEXT_BYTES);
                format!("json patch unknown field \"[{number}].{member}\"")
            }));
            patch.operations.push(JsonOperation { op, path, from, value });
        }
        Ok(patch)
    }

    /// Returns the unknown members of operations, for strict field validation.
    pub(crate) fn unknown_fields(&self) -> &[String] {
        &self.unknown
    }

    /// Returns the object after all operations.
    ///
    /// # Errors
    /// 422 if an operation cannot be executed, a `test` fails, or the object would become too large or too deep.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value, ApiError> {
        let mut patched = object.clone();
        let mut cost = PatchCost::default();
        for (number, operation) in self.operations.iter().enumerate() {
            operation
                .apply(&mut patched, &mut cost)
                .map_err(|why| unprocessable(&format!("operation {number} ({}) {why}", operation.op)))?;
        }
        Ok(patched)
    }
}

/// The accumulated cost of the operations of a patch.
#[derive(Debug, Default)]
struct PatchCost {
    copied_bytes: usize,
    moved_items: usize,
}

impl PatchCost {
    /// Counts a copy of `value`.
    fn copy(&mut self, value: &Value) -> Result<(), Reason> {
        self.copied_bytes = self.copied_bytes.saturating_add(bytes(value));
        if self.copied_bytes > MAX_COPIED_BYTES { Err("copies more than a patch may") } else { Ok(()) }
    }

    /// Counts items that shift because an item before them is inserted or removed.
    fn shift(&mut self, items: usize) -> Result<(), Reason> {
        self.moved_items = self.moved_items.saturating_add(items);
        if self.moved_items > MAX_MOVED_ITEMS {
            Err("moves more items of lists than a patch may")
        } else {
            Ok(())
        }
    }
}

fn not_an_operation(number: usize, why: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: operation {number}: {why}"))
}

/// The reason why an operation failed.
type Reason = &'static str;

const NO_PLACE: Reason = "refers to a path that does not exist";
const NO_INDEX: Reason = "refers to an index outside the list";

impl JsonOperation {
    fn apply(&self, root: &mut Value, cost: &mut PatchCost) -> Result<(), Reason> {
        match self.op.as_str() {
            "add" => {
                let to = self.to()?;
                check_depth(to.depth(), &self.value)?;
                add(root, &to, self.value.clone(), cost)
            }
            "remove" => take(root, &self.to()?, cost).map(drop),
            "replace" => self.replace(root),
            "move" => {
                let (from, to) = (self.from()?, self.to()?);
                let value = take(root, &from, cost)?;
                if to.depth() > from.depth() {
                    cost.copy(&value)?;
                    check_depth(to.depth(), &value)?;
                }
                add(root, &to, value, cost)
            }
            "copy" => {
                let (from, to) = (self.from()?, self.to()?);
                // A missing member is copied as null.
                let value = get_at(root, &from)?.cloned().unwrap_or_default();
                cost.copy(&value)?;
                check_depth(to.depth(), &value)?;
                add(root, &to, value, cost)
            }
            "test" => self.test(root),
            _ => Err("is of no known kind"),
        }
    }

    fn to(&self) -> Result<Pointer, Reason> {
        Pointer::parse(self.path.as_deref().ok_or("has no path")?).ok_or(NO_PLACE)
    }

    fn from(&self) -> Result<Pointer, Reason> {
        Pointer::parse(self.from.as_deref().ok_or("has no from")?).ok_or(NO_PLACE)
    }

    fn replace(&self, root: &mut Value) -> Result<(), Reason> {
        if self.path.as_deref() == Some("") {
            if !self.value.is_object() && !self.value.is_array() {
                return Err("replaces everything with a value that is neither an object nor a list");
            }
            *root = self.value.clone();
            return Ok(());
        }
        let to = self.to()?;
        check_depth(to.depth(), &self.value)?;
        match to.parent(root).ok_or(NO_PLACE)? {
            // A missing member is added: upstream does not check that it exists.
            (Value::Object(members), last) => {
                members.insert(last.to_owned(), self.value.clone());
            }
            (Value::Array(items), last) => {
                let index = resolve_index(last, items.len()).ok_or(NO_INDEX)?;
                *items.get_mut(index).ok_or(NO_INDEX)? = self.value.clone();
            }
            _ => return Err(NO_PLACE),
        }
        Ok(())
    }

    fn test(&self, root: &mut Value) -> Result<(), Reason> {
        let found = if self.path.as_deref() == Some("") { Some(&*root) } else { get_at(root, &self.to()?)? };
        // Numbers are compared as written: 1 is not 1.0.
        let is_as_expected = found.map_or(self.value.is_null(), |found| *found == self.value);
        if is_as_expected { Ok(()) } else { Err("found another value") }
    }
}

fn add(root: &mut Value, to: &Pointer, value: Value, cost: &mut PatchCost) -> Result<(), Reason> {
    match to.parent(root).ok_or(NO_PLACE)? {
        (Value::Object(members), last) => {
            members.insert(last.to_owned(), value);
        }
        (Value::Array(items), "-") => items.push(value),
        (Value::Array(items), last) => {
            // The index may equal the length: the new item is then appended.
            let index = resolve_index(last, items.len() + 1).ok_or(NO_INDEX)?;
            cost.shift(items.len() - index)?;
            items.insert(index, value);
        }
        _ => return Err(NO_PLACE),
    }
    Ok(())
}

fn take(root: &mut Value, from: &Pointer, cost: &mut PatchCost) -> Result<Value, Reason> {
    match from.parent(root).ok_or(NO_PLACE)? {
        (Value::Object(members), last) => members.remove(last).ok_or(NO_PLACE),
        (Value::Array(items), last) => {
            let index = resolve_index(last, items.len()).ok_or(NO_INDEX)?;
            cost.shift(items.len() - index)?;
            Ok(items.remove(index))
        }
        _ => Err(NO_PLACE),
    }
}

/// Returns the value at a pointer. None for a missing member.
fn get_at<'v>(root: &'v mut Value, at: &Pointer) -> Result<Option<&'v Value>, Reason> {
    match at.parent(root).ok_or(NO_PLACE)? {
        (Value::Object(members), last) => Ok(members.get(last)),
        (Value::Array(items), last) => {
            let index = resolve_index(last, items.len()).ok_or(NO_INDEX)?;
            Ok(items.get(index))
        }
        _ => Err(NO_PLACE),
    }
}

/// Returns the approximate length of the JSON of a value.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, member)| name.len() + bytes(member) + 4).sum::<usize>() + 2
        }
    }
}

fn check_depth(above: usize, value: &Value) -> Result<(), Reason> {
    if above + depth(value) > MAX_DEPTH { Err("makes the object too deep") } else { Ok(()) }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
