//! Functions on strings. Positions count characters.

use super::{
    super::{
        eval::{EvalResult, Evaluator},
        meter::{EvalError, Meter, no_overload},
        value::{Text, Value},
    },
    owned,
};

/// Calls a function on a string. Returns `None` if there is no function with this name.
pub(super) fn call<'a>(
    evaluator: &mut Evaluator<'a, '_>,
    name: &str,
    text: &Text<'a>,
    rest: &[Value<'a>],
) -> Option<EvalResult<'a>> {
    let patterns = evaluator.patterns;
    let meter = &mut *evaluator.meter;
    Some(match (name, rest) {
        ("contains", [Value::String(part)]) => {
            search(text, part, meter).map(|()| Value::Bool(text.contains(&**part)))
        }
        ("startsWith", [Value::String(part)]) => Ok(Value::Bool(text.starts_with(&**part))),
        ("endsWith", [Value::String(part)]) => Ok(Value::Bool(text.ends_with(&**part))),
        ("matches", [Value::String(pattern)]) => {
            patterns.get(pattern, text, meter).map(|regex| Value::Bool(regex.is_match(text)))
        }
        ("find", [Value::String(pattern)]) => patterns.get(pattern, text, meter).map(|regex| {
            Value::text(regex.find(text).map_or_else(String::new, |found| found.as_str().to_owned()))
        }),
        ("findAll", [Value::String(pattern), limit @ ..]) => {
            let most = match limit {
                [] => usize::MAX,
                [Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
                _ => return Some(no_overload()),
            };
            patterns
                .get(pattern, text, meter)
                .and_then(|regex| pieces(regex.find_iter(text).take(most).map(|found| found.as_str()), meter))
        }
        ("lowerAscii", []) => transform(text, str::to_ascii_lowercase, meter),
        ("upperAscii", []) => transform(text, str::to_ascii_uppercase, meter),
        ("trim", []) => transform(text, |text| text.trim().to_owned(), meter),
        ("charAt", [Value::Int(at)]) => char_at(text, *at, meter),
        ("substring", [Value::Int(start)]) => substring(text, *start, None, meter),
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end), meter),
        ("indexOf" | "lastIndexOf", [Value::String(part), offset @ ..]) => {
            let offset = match offset {
                [] => None,
                [Value::Int(offset)] => Some(*offset),
                _ => return Some(no_overload()),
            };
            index_of(text, part, offset, name == "lastIndexOf", meter)
        }
        ("replace", [Value::String(from), Value::String(to), limit @ ..]) => {
            let most = match limit {
                [] => usize::MAX,
                [Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
                _ => return Some(no_overload()),
            };
            replace(text, from, to, most, meter)
        }
        ("split", [Value::String(separator), limit @ ..]) => match limit {
            [] => split(text, separator, -1, meter),
            [Value::Int(limit)] => split(text, separator, *limit, meter),
            _ => no_overload(),
        },
        _ => return None,
    })
}

fn search(text: &str, part: &str, meter: &mut Meter) -> Result<(), EvalError> {
    meter.read(text)?;
    meter.read(part)
}

fn transform<'a>(text: &str, change: fn(&str) -> String, meter: &mut Meter) -> EvalResult<'a> {
    meter.allocate(text.len())?;
    Ok(Value::text(change(text)))
}

fn pieces<'a, 't>(found: impl Iterator<Item = &'t str>, meter: &mut Meter) -> EvalResult<'a> {
    let mut items = Vec::new();
    for piece in found {
        meter.allocate(piece.len())?;
        meter.allocate_values(1)?;
        items.push(Value::text(piece.to_owned()));
    }
    Ok(Value::List(owned(items)))
}

/// Returns the byte position of a character. `None` beyond the end.
fn position(text: &str, characters: i64) -> Option<usize> {
    let characters = usize::try_from(characters).ok()?;
    text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len())).nth(characters)
}

fn out_of_range<'a>(at: i64) -> EvalResult<'a> {
    EvalError::error(format!("index out of range: {at}"))
}

fn char_at<'a>(text: &str, at: i64, meter: &mut Meter) -> EvalResult<'a> {
    meter.read(text)?;
    match position(text, at) {
        Some(start) => {
            let rest = text.get(start..).unwrap_or_default();
            Ok(Value::text(rest.chars().take(1).collect::<String>()))
        }
        None => out_of_range(at),
    }
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>, meter: &mut Meter) -> EvalResult<'a> {
    meter.read(text)?;
    let Some(from) = position(text, start) else { return out_of_range(start) };
    let to = match end {
        None => text.len(),
        Some(end) => match position(text, end) {
            Some(_) if start > end => {
                return EvalError::error(format!("invalid substring range. start: {start}, end: {end}"));
            }
            Some(to) => to,
            None => return out_of_range(end),
        },
    };
    let part = text.get(from..to).unwrap_or_default();
    meter.allocate(part.len())?;
    Ok(Value::text(part.to_owned()))
}

fn index_of<'a>(
    text: &str,
    part: &str,
    offset: Option<i64>,
    is_last: bool,
    meter: &mut Meter,
) -> EvalResult<'a> {
    search(text, part, meter)?;
    let from = match offset {
        Some(offset) => match position(text, offset) {
            Some(from) => from,
            None => return out_of_range(offset),
        },
        None if is_last => text.len(),
        None => 0,
    };
    let found = if is_last {
        // The match may start at the offset, so it may end after it.
        let end = (from + part.len()).min(text.len());
        let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
        text.get(..end).and_then(|head| head.rfind(part)).filter(|at| *at <= from)
    } else {
        text.get(from..).and_then(|tail| tail.find(part)).map(|at| at + from)
    };
    let count = found.and_then(|at| text.get(..at)).map(|head| head.chars().count());
    Ok(Value::Int(count.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX))))
}

fn replace<'a>(text: &str, from: &str, to: &str, most: usize, meter: &mut Meter) -> EvalResult<'a> {
    search(text, from, meter)?;
    let count = if from.is_empty() { text.chars().count() + 1 } else { text.matches(from).count() };
    let count = count.min(most);
    meter.allocate(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(Value::text(text.replacen(from, to, count)))
}

fn split<'a>(text: &str, separator: &str, limit: i64, meter: &mut Meter) -> EvalResult<'a> {
    search(text, separator, meter)?;
    if limit == 0 {
        return Ok(Value::List(owned(Vec::new())));
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    if separator.is_empty() {
        // One part for each character; the last part has the rest.
        let starts: Vec<usize> = {
            meter.allocate(text.len().min(most).saturating_mul(8))?;
            text.char_indices().map(|(at, _)| at).take(most).collect()
        };
        let ends = starts.iter().skip(1).copied().chain(std::iter::once(text.len()));
        let found = starts.iter().zip(ends).filter_map(|(start, end)| text.get(*start..end));
        return pieces(found, meter);
    }
    pieces(text.splitn(most, separator), meter)
}
