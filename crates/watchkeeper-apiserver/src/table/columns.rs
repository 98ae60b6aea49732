//! The table columns of built-in kinds.

use serde_json::{Value, json};

use crate::kinds::Kind;

const TABLE: &str = include_str!("columns.tsv");

/// Returns the rows of the table: group, plural, and the columns.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut cells = line.splitn(3, '\t');
        Some((cells.next()?, cells.next()?, cells.next()?))
    })
}

/// Returns the column definitions of `kind`.
pub(super) fn definitions(kind: &Kind) -> Value {
    let columns = rows()
        .find(|(group, plural, _)| *group == kind.gvk.group && *plural == kind.plural)
        .map_or("Name:n\tCreated At:d", |(_, _, columns)| columns);
    define(columns, &kind.gvk.kind)
}

/// Returns the column definitions of scales.
pub(super) fn scale() -> Value {
    define("Name:n\tDesired:i\tAvailable:i\tAge:s", "Scale")
}

fn define(columns: &str, kind: &str) -> Value {
    columns
        .split('\t')
        .map(|column| {
            let (name, ty) = column.split_once(':').unwrap_or((column, "s"));
            let (ty, priority) = ty.strip_suffix('+').map_or((ty, 0), |ty| (ty, 1));
            let (ty, format) = match ty {
                "n" => ("string", "name"),
                "i" => ("integer", ""),
                "b" => ("boolean", ""),
                "d" => ("date", ""),
                _ => ("string", ""),
            };
            definition(name, ty, format, &describe(name, kind), priority)
        })
        .collect()
}

/// Returns a column definition.
pub(super) fn definition(name: &str, ty: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({"name": name, "type": ty, "format": format, "description": description, "priority": priority})
}

fn describe(column: &str, kind: &str) -> String {
    match column {
        "Name" => "The name of the object, unique among its kind in its namespace.".to_owned(),
        "Age" | "Created At" => "When the object was created.".to_owned(),
        _ => format!("{column} of the {kind}."),
    }
}

/// Returns the definition of the name column, the first of every table.
pub(super) fn name_column() -> Value {
    definition("Name", "string", "name", &describe("Name", ""), 0)
}

/// Returns the definition of the age column, the default of custom kinds without columns.
pub(super) fn age_column() -> Value {
    definition("Age", "date", "", &describe("Age", ""), 0)
}
