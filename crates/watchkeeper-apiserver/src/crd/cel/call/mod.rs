//! The functions of expressions: selects the implementation for the arguments.

mod convert;
mod cost;
mod format;
mod library;
mod lists;
mod operators;
mod strings;

use std::sync::Arc;

use super::{
    ast::op,
    eval::{EvalResult, Evaluator},
    meter::{EvalError, no_overload},
    value::{List, Map, Value},
};

pub(super) use self::{convert::display, operators::equal};

/// The arguments of a call, starting with the receiver of a member call.
pub(super) struct Arguments<'f, 'a> {
    pub(super) function: &'f str,
    pub(super) is_member: bool,
    pub(super) values: Vec<Value<'a>>,
}

/// Returns the type with this name.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    const TYPES: [&str; 18] = [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "optional_type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
        "net.IP",
        "net.CIDR",
        "kubernetes.URL",
        "kubernetes.Quantity",
        "kubernetes.Semver",
    ];
    TYPES.into_iter().find(|known| *known == name)
}

/// Returns whether a function converts its argument to another type.
pub(super) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

/// Calls a function. The caller charges its cost before.
pub(super) fn call<'a>(evaluator: &mut Evaluator<'a, '_>, args: &Arguments<'_, 'a>) -> EvalResult<'a> {
    let meter = &mut *evaluator.meter;
    match (args.function, args.values.as_slice()) {
        (op::NOT, [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        (op::NEGATE, [value]) => operators::negate(value),
        (op::EQUALS, [left, right]) => equal(left, right, meter).map(Value::Bool),
        (op::NOT_EQUALS, [left, right]) => equal(left, right, meter).map(|same| Value::Bool(!same)),
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
            let order = operators::compare(left, right, meter)?;
            Ok(Value::Bool(match args.function {
                op::LESS => order.is_some_and(std::cmp::Ordering::is_lt),
                op::LESS_EQUALS => order.is_some_and(std::cmp::Ordering::is_le),
                op::GREATER => order.is_some_and(std::cmp::Ordering::is_gt),
                _ => order.is_some_and(std::cmp::Ordering::is_ge),
            }))
        }
        (op::ADD | op::SUBTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [left, right]) => {
            operators::arithmetic(args.function, left, right, meter)
        }
        (op::IN, [value, Value::List(list)]) => {
            for item in list.iter() {
                meter.work(2)?;
                if equal(&item?, value, meter)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        (op::IN, [key, Value::Map(map)]) => Ok(Value::Bool(map.get(key).transpose()?.is_some())),
        ("size", [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))]) => {
            if let Value::String(text) = value {
                meter.read(text)?;
            }
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        ("type", [value]) => Ok(Value::Type(value.type_name())),
        ("dyn", [value]) => Ok(value.clone()),
        ("bool" | "bytes" | "double" | "int" | "string" | "uint" | "timestamp" | "duration", [value]) => {
            convert::convert(args.function, value, meter)
        }
        ("format", [Value::String(text), Value::List(list)]) => format::format(text, list, meter),
        (name, values)
            if name.starts_with("optional.") || matches!(name, "value" | "hasValue" | "unwrapOpt") =>
        {
            optional(name, values, meter)
        }
        (name, [Value::String(text), rest @ ..]) if args.is_member || name == "matches" => {
            match strings::call(evaluator, name, text, rest) {
                Some(result) => result,
                None => library::call(args, evaluator.meter),
            }
        }
        (name, values) => match lists::call(name, values, meter) {
            Some(result) => result,
            None => library::call(args, meter),
        },
    }
}

fn optional<'a>(name: &str, values: &[Value<'a>], meter: &mut super::meter::Meter) -> EvalResult<'a> {
    match (name, values) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("optional.ofNonZeroValue", [value]) => {
            let is_zero = match value {
                Value::Null => true,
                Value::Bool(value) => !value,
                Value::Int(value) => *value == 0,
                Value::Uint(value) => *value == 0,
                Value::Double(value) => *value == 0.0,
                Value::String(text) => text.is_empty(),
                Value::Bytes(bytes) => bytes.is_empty(),
                Value::List(list) => list.len() == 0,
                Value::Map(map) => map.len() == 0,
                Value::Optional(value) => value.is_none(),
                Value::Type(_) | Value::Opaque(_) | Value::Library(_) => false,
            };
            Ok(if is_zero { Value::Optional(None) } else { Value::some(value.clone()) })
        }
        ("value", [Value::Optional(Some(value))]) => Ok((**value).clone()),
        ("value", [Value::Optional(None)]) => EvalError::error("optional.none() dereference"),
        ("hasValue", [Value::Optional(value)]) => Ok(Value::Bool(value.is_some())),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            meter.allocate_values(list.len())?;
            let mut values = Vec::new();
            for item in list.iter() {
                match item? {
                    Value::Optional(Some(value)) => values.push((*value).clone()),
                    Value::Optional(None) => {}
                    _ => return no_overload(),
                }
            }
            Ok(Value::list(values))
        }
        _ => no_overload(),
    }
}

/// Calls `visit` with a value and all values in it, depth first.
fn walk<'a>(
    value: &Value<'a>,
    visit: &mut dyn FnMut(&Value<'a>) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    match value {
        Value::List(list) => list.iter().try_for_each(|item| walk(&item?, visit)),
        Value::Map(map) => map.keys().iter().try_for_each(|key| {
            visit(key)?;
            match map.get(key) {
                Some(value) => walk(&value?, visit),
                None => Ok(()),
            }
        }),
        value => visit(value),
    }
}

/// Creates a list of items.
fn owned(items: Vec<Value<'_>>) -> List<'_> {
    List::Owned(Arc::new(items))
}

type Entries<'a> = std::collections::BTreeMap<super::value::Key<'a>, Value<'a>>;

/// Creates a map of entries.
fn owned_map(entries: Entries<'_>) -> Value<'_> {
    Value::Map(Map::Owned(Arc::new(entries)))
}
