//! Functions on lists and sets.

use std::cmp::Ordering;

use super::{
    super::{
        ast::op,
        eval::EvalResult,
        meter::{EvalError, Meter, no_overload},
        value::{List, Value},
    },
    convert, operators, owned,
};

/// Calls a function on lists. Returns `None` if there is no function with this name.
pub(super) fn call<'a>(name: &str, values: &[Value<'a>], meter: &mut Meter) -> Option<EvalResult<'a>> {
    Some(match (name, values) {
        ("lists.range", [Value::Int(count)]) => range(*count, meter),
        ("strings.quote", [Value::String(text)]) => convert::quote(text, meter),
        (op::MAP_INSERT, _) => no_overload(),
        (_, [Value::List(list), rest @ ..]) => match (name, rest) {
            ("isSorted", []) => is_sorted(list, meter).map(Value::Bool),
            ("sum", []) => sum(list, meter),
            ("max", []) => extreme(list, Ordering::Greater, "max", meter),
            ("min", []) => extreme(list, Ordering::Less, "min", meter),
            ("indexOf", [required]) => index_of(list, required, false, meter),
            ("lastIndexOf", [required]) => index_of(list, required, true, meter),
            ("first", []) => list.get(0).transpose().map(optional),
            ("last", []) => {
                let last = list.len().checked_sub(1).and_then(|last| list.get(last));
                last.transpose().map(optional)
            }
            ("join", []) => join(list, "", meter),
            ("join", [Value::String(separator)]) => join(list, separator, meter),
            ("slice", [Value::Int(start), Value::Int(end)]) => slice(list, *start, *end, meter),
            ("flatten", []) => flattened(list, 1, meter),
            ("flatten", [Value::Int(depth)]) => flattened(list, *depth, meter),
            ("reverse", []) => all(list, meter).map(|mut items| {
                items.reverse();
                Value::List(owned(items))
            }),
            ("distinct", []) => distinct(list, meter),
            ("sort", []) => all(list, meter).and_then(|keys| sorted(list, &keys, meter)),
            (op::SORT_BY_KEYS, [Value::List(keys)]) => {
                all(keys, meter).and_then(|keys| sorted(list, &keys, meter))
            }
            ("sets.contains", [Value::List(other)]) => contains_all(list, other, meter).map(Value::Bool),
            ("sets.equivalent", [Value::List(other)]) => contains_all(list, other, meter)
                .and_then(|contains| Ok(contains && contains_all(other, list, meter)?))
                .map(Value::Bool),
            ("sets.intersects", [Value::List(other)]) => intersects(list, other, meter).map(Value::Bool),
            _ => return None,
        },
        _ => return None,
    })
}

fn optional(value: Option<Value<'_>>) -> Value<'_> {
    Value::Optional(value.map(std::sync::Arc::new))
}

fn all<'a>(list: &List<'a>, meter: &mut Meter) -> Result<Vec<Value<'a>>, EvalError> {
    meter.allocate_values(list.len())?;
    list.iter().collect()
}

fn range<'a>(count: i64, meter: &mut Meter) -> EvalResult<'a> {
    const MOST: i64 = 10_000_000;
    if count < 0 {
        return EvalError::error(format!("lists.range: size must be non-negative, got {count}"));
    }
    if count > MOST {
        return EvalError::error(format!("lists.range: size {count} exceeds maximum allowed ({MOST})"));
    }
    meter.allocate_values(usize::try_from(count).unwrap_or(usize::MAX))?;
    Ok(Value::List(owned((0..count).map(Value::Int).collect())))
}

fn is_sorted(list: &List<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    let mut previous: Option<Value<'_>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(previous) = &previous
            && operators::compare(previous, &item, meter)?.is_none_or(Ordering::is_gt)
        {
            return Ok(false);
        }
        previous = Some(item);
    }
    Ok(true)
}

fn sum<'a>(list: &List<'a>, meter: &mut Meter) -> EvalResult<'a> {
    let mut total: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        total = Some(match total {
            None => item,
            Some(total) => operators::arithmetic(op::ADD, &total, &item, meter)?,
        });
    }
    Ok(total.unwrap_or(Value::Int(0)))
}

fn extreme<'a>(list: &List<'a>, required: Ordering, name: &str, meter: &mut Meter) -> EvalResult<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        best = Some(match best {
            Some(best) if operators::compare(&item, &best, meter)? != Some(required) => best,
            _ => item,
        });
    }
    best.map_or_else(|| EvalError::error(format!("{name} called on empty list")), Ok)
}

fn index_of<'a>(list: &List<'a>, required: &Value<'a>, is_last: bool, meter: &mut Meter) -> EvalResult<'a> {
    let mut found = -1;
    for (index, item) in (0..).zip(list.iter()) {
        if operators::equal(&item?, required, meter)? {
            found = index;
            if !is_last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn join<'a>(list: &List<'a>, separator: &str, meter: &mut Meter) -> EvalResult<'a> {
    let mut text = String::new();
    for (index, item) in list.iter().enumerate() {
        let Value::String(part) = item? else { return no_overload() };
        meter.allocate(part.len() + separator.len())?;
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&part);
    }
    Ok(Value::text(text))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64, meter: &mut Meter) -> EvalResult<'a> {
    let fail = |why: &str| EvalError::error(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return fail("negative indexes not supported");
    };
    if from > to {
        return fail("start index must be less than or equal to end index");
    }
    if to > list.len() {
        return fail(&format!("list is length {}", list.len()));
    }
    meter.allocate_values(to - from)?;
    let items: Result<Vec<_>, _> = (from..to).filter_map(|index| list.get(index)).collect();
    Ok(Value::List(owned(items?)))
}

fn flattened<'a>(list: &List<'a>, depth: i64, meter: &mut Meter) -> EvalResult<'a> {
    if depth < 0 {
        return EvalError::error("level must be non-negative");
    }
    let mut items = Vec::new();
    flatten(list, depth, &mut items, meter)?;
    Ok(Value::List(owned(items)))
}

fn flatten<'a>(
    list: &List<'a>,
    depth: i64,
    items: &mut Vec<Value<'a>>,
    meter: &mut Meter,
) -> Result<(), EvalError> {
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => flatten(&inner, depth - 1, items, meter)?,
            item => {
                meter.allocate_values(1)?;
                items.push(item);
            }
        }
    }
    Ok(())
}

fn distinct<'a>(list: &List<'a>, meter: &mut Meter) -> EvalResult<'a> {
    let mut items: Vec<Value<'a>> = Vec::new();
    meter.allocate_values(list.len())?;
    for item in list.iter() {
        let item = item?;
        if !contains(&items, &item, meter)? {
            items.push(item);
        }
    }
    Ok(Value::List(owned(items)))
}

fn contains(items: &[Value<'_>], required: &Value<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    for item in items {
        if operators::equal(item, required, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_all(list: &List<'_>, required: &List<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    let items = all(list, meter)?;
    for item in required.iter() {
        if !contains(&items, &item?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(list: &List<'_>, other: &List<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    let items = all(list, meter)?;
    for item in other.iter() {
        if contains(&items, &item?, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sorts a list by keys, one for each item.
fn sorted<'a>(list: &List<'a>, keys: &[Value<'a>], meter: &mut Meter) -> EvalResult<'a> {
    if keys.len() != list.len() {
        return EvalError::error(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list",
        );
    }
    if let Some(first) = keys.first()
        && keys.iter().any(|key| key.type_name() != first.type_name())
    {
        return EvalError::error("list elements must have the same type");
    }
    // Sorting needs a total order that cannot fail, so the comparisons are charged beforehand.
    let mut bytes: u64 = 0;
    for key in keys {
        operators::compare(key, key, meter)?;
        bytes = bytes.saturating_add(match key {
            Value::String(text) => text.len() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            _ => 8,
        });
    }
    meter.work(bytes.saturating_mul(u64::from(keys.len().max(2).ilog2()) + 1) / 4)?;
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| keys.get(*a).zip(keys.get(*b)).map_or(Ordering::Equal, |(a, b)| total_order(a, b)));
    meter.allocate_values(list.len())?;
    let items: Result<Vec<_>, _> = order.into_iter().filter_map(|index| list.get(index)).collect();
    Ok(Value::List(owned(items?)))
}

fn total_order(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Library(a), Value::Library(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        _ => Ordering::Equal,
    }
}
