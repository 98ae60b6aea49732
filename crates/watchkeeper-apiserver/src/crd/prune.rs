//! Pruning of unknown fields, and defaulting.

use serde_json::Value;

use super::structural::{Additional, Structural};

/// The members that every object has, whatever its schema.
pub(crate) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes unknown fields of a whole object.
pub(crate) fn prune_object(object: &mut Value, schema: &Structural) {
    prune(object, Some(schema), true);
}

fn prune(value: &mut Value, schema: Option<&Structural>, is_resource: bool) {
    let keeps_unknown = schema.is_some_and(|schema| schema.keeps_unknown);
    let is_resource = is_resource || schema.is_some_and(|schema| schema.is_embedded);
    match value {
        Value::Object(members) => {
            members.retain(|name, member| {
                if is_resource && META.contains(&name.as_str()) {
                    return true;
                }
                let Some(schema) = schema else { return false };
                if let Some(property) = schema.properties.get(name) {
                    prune(member, Some(property), false);
                    return true;
                }
                match &schema.additional {
                    Additional::Of(of) => {
                        prune(member, Some(of), false);
                        true
                    }
                    Additional::Any => {
                        prune(member, None, false);
                        true
                    }
                    Additional::None => keeps_unknown,
                }
            });
        }
        Value::Array(items) => {
            let of = schema.and_then(|schema| schema.items.as_deref());
            // Items of a list that preserves unknown fields preserve them too.
            if of.is_none() && keeps_unknown {
                return;
            }
            for item in items {
                prune(item, of, false);
            }
        }
        _ => {}
    }
}

/// The maximum memory of the defaults of one object, in bytes: a large default of the items of a long list multiplies.
const MAX_DEFAULTS_BYTES: usize = 32 * 1024 * 1024;

/// Sets defaults. A null in a field that is not nullable is replaced by the default, or removed.
///
/// Stops when the defaults take too much memory. [`lacks_defaults`] then returns true.
pub(crate) fn set_defaults(value: &mut Value, schema: &Structural) {
    drop_nulls(value, schema);
    fill_defaults(value, schema);
}

/// Sets defaults without removing anything: a null in a field that is not nullable and has no default stays.
pub(crate) fn fill_defaults(value: &mut Value, schema: &Structural) {
    fill(value, schema, &mut Budget(MAX_DEFAULTS_BYTES));
}

/// Returns whether defaults are missing because they would take too much memory.
pub(crate) fn lacks_defaults(value: &Value, schema: &Structural) -> bool {
    let is_left_out = |value: Option<&Value>, of: &Structural| {
        of.default.is_some() && value.is_none_or(|value| is_misplaced_null(value, of))
    };
    match value {
        Value::Object(members) => {
            schema.defaulted().any(|(name, property)| is_left_out(members.get(name), property))
                || members
                    .iter()
                    .any(|(name, member)| schema.member(name).is_some_and(|of| lacks_defaults(member, of)))
        }
        Value::Array(items) => schema.items.as_ref().is_some_and(|of| {
            items.iter().any(|item| is_left_out(Some(item), of) || lacks_defaults(item, of))
        }),
        _ => false,
    }
}

/// The remaining memory for defaults.
struct Budget(usize);

impl Budget {
    /// Returns a copy of a default, if the memory suffices.
    fn copy(&mut self, default: &Value) -> Option<Value> {
        self.0 = self.0.checked_sub(memory_estimate(default))?;
        Some(default.clone())
    }
}

/// Returns the approximate memory of a value, including its entry in an object.
fn memory_estimate(value: &Value) -> usize {
    let own = 128;
    own + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory_estimate).sum(),
        Value::Object(members) => {
            512 + members.iter().map(|(name, member)| name.len() + memory_estimate(member)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn is_misplaced_null(value: &Value, schema: &Structural) -> bool {
    value.is_null() && !schema.is_nullable
}

fn drop_nulls(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| {
                let Some(of) = schema.member(name) else { return true };
                if is_misplaced_null(member, of) && of.default.is_none() {
                    return false;
                }
                drop_nulls(member, of);
                true
            });
        }
        Value::Array(items) => {
            if let Some(of) = &schema.items {
                for item in items {
                    drop_nulls(item, of);
                }
            }
        }
        _ => {}
    }
}

fn fill(value: &mut Value, schema: &Structural, budget: &mut Budget) {
    match value {
        Value::Object(members) => {
            for (name, property) in schema.defaulted() {
                let Some(default) = &property.default else { continue };
                let is_left_out = members.get(name).is_none_or(|member| is_misplaced_null(member, property));
                if is_left_out && let Some(default) = budget.copy(default) {
                    members.insert(name.to_owned(), default);
                }
            }
            for (name, member) in members {
                let Some(of) = schema.member(name) else { continue };
                fill_one(member, of, budget);
            }
        }
        Value::Array(items) => {
            let Some(of) = &schema.items else { return };
            for item in items {
                fill_one(item, of, budget);
            }
        }
        _ => {}
    }
}

fn fill_one(value: &mut Value, schema: &Structural, budget: &mut Budget) {
    if is_misplaced_null(value, schema)
        && let Some(default) = schema.default.as_ref().and_then(|default| budget.copy(default))
    {
        *value = default;
    }
    fill(value, schema, budget);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Structural, prune_object, set_defaults};

    fn pruned(schema: &Value, object: &Value) -> Value {
        let schema = Structural::read(schema);
        let mut object = object.clone();
        prune_object(&mut object, &schema);
        set_defaults(&mut object, &schema);
        object
    }

    #[test]
    fn unknown_fields_are_pruned_unless_the_schema_preserves_them() {
        let text = json!({"type": "string"});
        let table = [
            (json!({"a": text}), json!({"a": "x", "b": "y"}), json!({"a": "x"})),
            (
                json!({"o": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"p": {"type": "object", "properties": {}}}}}),
                json!({"o": {"any": 1, "p": {"gone": 1}}}),
                json!({"o": {"any": 1, "p": {}}}),
            ),
            (
                json!({"m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": text}}}}),
                json!({"m": {"k": {"a": "x", "b": 1}}}),
                json!({"m": {"k": {"a": "x"}}}),
            ),
            (
                json!({"l": {"type": "array", "items": {"type": "object", "properties": {"a": text}}}}),
                json!({"l": [{"a": "x", "b": 1}, 7]}),
                json!({"l": [{"a": "x"}, 7]}),
            ),
            (
                json!({"e": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}),
                json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"x": 1}, "y": 1}}),
                json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {}}}),
            ),
        ];
        for (properties, spec, expected) in table {
            let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
            let object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec, "extra": 1});
            assert_eq!(pruned(&schema, &object)["spec"], expected, "{properties}");
            assert!(pruned(&schema, &object).get("extra").is_none());
        }
    }

    #[test]
    fn defaults_fill_absent_fields_and_disallowed_nulls() {
        let table = [
            (json!({"a": {"type": "integer", "default": 5}}), json!({}), json!({"a": 5})),
            (json!({"a": {"type": "integer", "default": 5}}), json!({"a": null}), json!({"a": 5})),
            (
                json!({"a": {"type": "integer", "default": 5, "nullable": true}}),
                json!({"a": null}),
                json!({"a": null}),
            ),
            (json!({"a": {"type": "integer"}}), json!({"a": null}), json!({})),
            (
                json!({"m": {"type": "object", "additionalProperties": {"type": "integer"}}}),
                json!({"m": {"k": null, "l": 1}}),
                json!({"m": {"l": 1}}),
            ),
            (
                json!({"o": {"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "y"}}}}),
                json!({}),
                json!({"o": {"x": "y"}}),
            ),
            (
                json!({"o": {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}}}),
                json!({}),
                json!({}),
            ),
            (
                json!({"l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}}}}),
                json!({"l": [{}]}),
                json!({"l": [{"x": "y"}]}),
            ),
            (
                json!({"m": {"type": "object", "additionalProperties": {"type": "integer", "default": 1}}}),
                json!({"m": {"k": null}}),
                json!({"m": {"k": 1}}),
            ),
        ];
        for (properties, spec, expected) in table {
            let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
            assert_eq!(pruned(&schema, &json!({"spec": spec}))["spec"], expected, "{properties} {spec}");
        }
    }
}
