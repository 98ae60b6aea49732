//! Arithmetic, equality and order.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value as Json;

use super::{
    super::{
        super::structural::ListType,
        ast::op,
        eval::EvalResult,
        meter::{EvalError, Meter, no_overload},
        value::{List, Map, Value},
    },
    library,
};

pub(super) fn negate<'a>(value: &Value<'a>) -> EvalResult<'a> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).map_or_else(overflow, Ok),
        Value::Double(value) => Ok(Value::Double(-value)),
        _ => no_overload(),
    }
}

fn overflow<'a>() -> EvalResult<'a> {
    EvalError::error("integer overflow")
}

/// The checked operations of one integer type.
struct CheckedOperations<T> {
    add: fn(T, T) -> Option<T>,
    subtract: fn(T, T) -> Option<T>,
    multiply: fn(T, T) -> Option<T>,
    divide: fn(T, T) -> Option<T>,
    remainder: fn(T, T) -> Option<T>,
}

const SIGNED: CheckedOperations<i64> = CheckedOperations {
    add: i64::checked_add,
    subtract: i64::checked_sub,
    multiply: i64::checked_mul,
    divide: i64::checked_div,
    remainder: i64::checked_rem,
};

const UNSIGNED: CheckedOperations<u64> = CheckedOperations {
    add: u64::checked_add,
    subtract: u64::checked_sub,
    multiply: u64::checked_mul,
    divide: u64::checked_div,
    remainder: u64::checked_rem,
};

/// Applies an arithmetic operator to integers. Returns none on overflow.
fn integers<T: Default + PartialEq>(
    function: &str,
    left: T,
    right: T,
    checked: &CheckedOperations<T>,
) -> Result<Option<T>, EvalError> {
    let operation = match function {
        op::ADD => checked.add,
        op::SUBTRACT => checked.subtract,
        op::MULTIPLY => checked.multiply,
        op::DIVIDE if right == T::default() => return EvalError::error("division by zero"),
        op::DIVIDE => checked.divide,
        _ if right == T::default() => return EvalError::error("modulus by zero"),
        _ => checked.remainder,
    };
    Ok(operation(left, right))
}

pub(super) fn arithmetic<'a>(
    function: &str,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
) -> EvalResult<'a> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => {
            integers(function, *a, *b, &SIGNED)?.map(Value::Int).map_or_else(overflow, Ok)
        }
        (Value::Uint(a), Value::Uint(b)) => integers(function, *a, *b, &UNSIGNED)?
            .map(Value::Uint)
            .map_or_else(|| EvalError::error("unsigned integer overflow"), Ok),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(match function {
            op::ADD => a + b,
            op::SUBTRACT => a - b,
            op::MULTIPLY => a * b,
            op::DIVIDE => a / b,
            _ => return no_overload(),
        })),
        (Value::String(a), Value::String(b)) if function == op::ADD => {
            meter.allocate(a.len() + b.len())?;
            Ok(Value::text(format!("{}{}", &**a, &**b)))
        }
        (Value::Bytes(a), Value::Bytes(b)) if function == op::ADD => {
            meter.allocate(a.len() + b.len())?;
            Ok(Value::Bytes(a.iter().chain(b.iter()).copied().collect()))
        }
        (Value::List(a), Value::List(b)) if function == op::ADD => concatenate(a, b, meter),
        (Value::Library(_), Value::Library(_)) => library::operator(function, left, right, meter),
        _ => no_overload(),
    }
}

/// Concatenates lists. Lists that are sets or maps keep one item of each identity.
fn concatenate<'a>(left: &List<'a>, right: &List<'a>, meter: &mut Meter) -> EvalResult<'a> {
    meter.allocate_values(left.len() + right.len())?;
    let mut items = left.iter().collect::<Result<Vec<_>, _>>()?;
    let identities = match (left, right) {
        (List::Json { items: a, kind, .. }, List::Json { items: b, .. }) => {
            Some((identities(a, kind, meter)?, identities(b, kind, meter)?))
        }
        _ => None,
    };
    let Some((Some(left_identities), Some(right_identities))) = identities else {
        for item in right.iter() {
            items.push(item?);
        }
        return Ok(Value::list(items));
    };
    let indexes: BTreeMap<&str, usize> =
        left_identities.iter().enumerate().map(|(index, identity)| (identity.as_str(), index)).collect();
    for (identity, item) in right_identities.iter().zip(right.iter()) {
        let item = item?;
        match indexes.get(identity.as_str()).and_then(|index| items.get_mut(*index)) {
            Some(slot) => *slot = item,
            None => items.push(item),
        }
    }
    Ok(Value::list(items))
}

/// Returns the identities of the items of a set or map. `None` for other lists.
fn identities(items: &[Json], kind: &ListType, meter: &mut Meter) -> Result<Option<Vec<String>>, EvalError> {
    let identity = |item: &Json| match kind {
        ListType::Atomic => String::new(),
        ListType::Set => item.to_string(),
        ListType::Map(keys) => {
            let parts: Vec<String> =
                keys.iter().filter_map(|key| item.get(key)).map(Json::to_string).collect();
            parts.join("\u{0}")
        }
    };
    if matches!(kind, ListType::Atomic) {
        return Ok(None);
    }
    let mut found = Vec::with_capacity(items.len());
    for item in items {
        let identity = identity(item);
        meter.allocate(identity.len() + 32)?;
        found.push(identity);
    }
    Ok(Some(found))
}

pub(in super::super) fn equal(
    left: &Value<'_>,
    right: &Value<'_>,
    meter: &mut Meter,
) -> Result<bool, EvalError> {
    meter.work(1)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().min(b.len()) as u64 / 8)?;
            **a == **b
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.work(a.len().min(b.len()) as u64 / 8)?;
            a == b
        }
        (Value::List(a), Value::List(b)) => return equal_lists(a, b, meter),
        (Value::Map(a), Value::Map(b)) => return equal_maps(a, b, meter),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => return equal(a, b, meter),
            _ => false,
        },
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Opaque(a), Value::Opaque(b)) => return equal_json(a, b, meter),
        (Value::Library(a), Value::Library(b)) => a == b,
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => compare(left, right, meter)? == Some(Ordering::Equal),
        _ => false,
    })
}

fn equal_lists(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    // Items of sets and maps have no order.
    if let (List::Json { items: left_identities, kind, .. }, List::Json { items: right_identities, .. }) =
        (a, b)
        && let (Some(left), Some(right)) =
            (identities(left_identities, kind, meter)?, identities(right_identities, kind, meter)?)
    {
        if matches!(kind, ListType::Set) {
            return Ok(left.into_iter().collect::<BTreeSet<_>>() == right.into_iter().collect());
        }
        let indexes: BTreeMap<String, usize> =
            right.into_iter().enumerate().map(|(index, identity)| (identity, index)).collect();
        for (identity, item) in left.iter().zip(a.iter()) {
            let Some(other) = indexes.get(identity).and_then(|index| b.get(*index)) else { return Ok(false) };
            if !equal(&item?, &other?, meter)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for (a, b) in a.iter().zip(b.iter()) {
        if !equal(&a?, &b?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(a: &Map<'_>, b: &Map<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    let keys = a.keys();
    meter.work(keys.len() as u64 * 8)?;
    for key in &keys {
        match (a.get(key), b.get(key)) {
            (Some(left), Some(right)) => {
                if !equal(&left?, &right?, meter)? {
                    return Ok(false);
                }
            }
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    // Members without a schema are compared as data.
    if let (Map::Object { members, schema, .. }, Some(others)) = (a, b.members()) {
        for (name, member) in members.iter().filter(|(name, _)| !schema.properties.contains_key(*name)) {
            if let Some(other) = others.get(name)
                && !equal_json(member, other, meter)?
            {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn equal_json(a: &Json, b: &Json, meter: &mut Meter) -> Result<bool, EvalError> {
    meter.work(2)?;
    match (a, b) {
        (Json::Array(a), Json::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !equal_json(a, b, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Object(a), Json::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (name, member) in a {
                match b.get(name) {
                    Some(other) if equal_json(member, other, meter)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Json::String(a), Json::String(b)) => {
            meter.read(a)?;
            Ok(a == b)
        }
        _ => Ok(a == b),
    }
}

/// Compares values. Returns `None` for a number and NaN.
#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of different types are compared as doubles where whole numbers do not fit"
)]
pub(super) fn compare(
    left: &Value<'_>,
    right: &Value<'_>,
    meter: &mut Meter,
) -> Result<Option<Ordering>, EvalError> {
    Ok(match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => (*a as f64).partial_cmp(b),
        (Value::Double(a), Value::Int(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Uint(a), Value::Double(b)) => (*a as f64).partial_cmp(b),
        (Value::Double(a), Value::Uint(b)) => a.partial_cmp(&(*b as f64)),
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().min(b.len()) as u64 / 8)?;
            Some(a.as_bytes().cmp(b.as_bytes()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.work(a.len().min(b.len()) as u64 / 8)?;
            Some(a.cmp(b))
        }
        (Value::Library(a), Value::Library(b)) => match a.partial_cmp(b) {
            Some(order) => Some(order),
            None => return no_overload(),
        },
        _ => return no_overload(),
    })
}
