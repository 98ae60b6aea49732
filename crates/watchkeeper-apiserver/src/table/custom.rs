//! Tables of custom kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    JsonPath, age,
    columns::{age_column, definition, name_column},
    json_path::text_of,
};
use crate::kinds::{Custom, PrinterColumn};

/// The columns of a custom kind, with parsed paths.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    columns: Vec<(&'a PrinterColumn, Option<JsonPath>)>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(custom: &'a Custom) -> Self {
        let columns = custom.columns.iter().map(|column| (column, JsonPath::parse(&column.json_path)));
        Self { columns: columns.collect() }
    }

    pub(super) fn definitions(&self) -> Value {
        let mut definitions = vec![name_column()];
        if self.columns.is_empty() {
            definitions.push(age_column());
        }
        definitions.extend(self.columns.iter().map(|(column, _)| {
            let description = if column.description.is_empty() {
                format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
            } else {
                column.description.clone()
            };
            definition(&column.name, &column.ty, &column.format, &description, column.priority)
        }));
        Value::Array(definitions)
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Value {
        let mut cells = vec![object["metadata"]["name"].as_str().unwrap_or_default().into()];
        if self.columns.is_empty() {
            cells.push(age::since(object["metadata"]["creationTimestamp"].as_str(), now).into());
        }
        cells.extend(self.columns.iter().map(|(column, path)| {
            let found = path.as_ref().map(|path| path.find(object)).unwrap_or_default();
            found.first().map_or(Value::Null, |value| cell(&column.ty, value, now))
        }));
        Value::Array(cells)
    }
}

/// Returns the cell of a value in a column of type `ty`; null if it does not match the type.
fn cell(ty: &str, value: &Value, now: Timestamp) -> Value {
    match (ty, value) {
        ("string", value) if !value.is_null() => text_of(value).into(),
        ("integer", Value::Number(number)) => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a column of whole numbers shows whole numbers"
            )]
            let whole = number.as_i64().or_else(|| number.as_f64().map(|number| number as i64));
            json!(whole)
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) => age::since(Some(time), now).into(),
        _ => Value::Null,
    }
}
