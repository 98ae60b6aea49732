//! Objects as table rows, as shown by `kubectl get`.
//!
//! `columns` defines the columns of a kind, `cells` the values of an object in them, `custom` both for custom kinds.

mod age;
mod cells;
mod columns;
mod custom;
mod json_path;

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::kinds::Kind;

pub use json_path::JsonPath;

/// Returns the columns of `kind` and a row for each of `objects`, with ages at `now`. The caller adds the object of each
/// row.
pub(crate) fn table(kind: &Kind, objects: &[Value], now: SystemTime) -> Value {
    let now = jiff::Timestamp::try_from(now).unwrap_or_default();
    if let Some(Value::String(below)) = objects.first().and_then(|object| object.get("kind"))
        && below == "Scale"
    {
        let rows: Vec<Value> =
            objects.iter().map(|scale| json!({"cells": cells::scale(scale, now), "object": null})).collect();
        return json!({"columnDefinitions": columns::scale(), "rows": rows});
    }
    if let Some(custom) = &kind.custom {
        let columns = custom::Columns::new(custom);
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| json!({"cells": columns.cells(object, now), "object": null}))
            .collect();
        return json!({"columnDefinitions": columns.definitions(), "rows": rows});
    }
    let default_name = cells::default_name(kind, objects);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({"cells": cells::cells(kind, object, now, default_name), "object": null});
            if let Some(conditions) = cells::conditions(kind, object) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    json!({"columnDefinitions": columns::definitions(kind), "rows": rows})
}

#[cfg(test)]
mod tests;
