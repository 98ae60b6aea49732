//! Rendering of the table.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::Value;

use super::{
    Error,
    go_types::{Member, Packages},
    openapi::{Documents, only_kind},
};

const HEADER: &str = "\
# The types of Kubernetes 1.37, written by `cargo xtask apischema`; the parser beside it explains the form.
";

/// The types whose shape differs from their schema, or whose schema is empty.
const SPECIAL: [(&str, &str); 8] = [
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "any"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "microTime"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Patch", "any"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "any"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "intOrString"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "any"),
];

/// Renders the table of the types `roots` and all types they refer to.
pub(super) fn render(
    documents: &Documents,
    go: &mut Packages,
    roots: BTreeSet<String>,
) -> Result<String, Error> {
    let mut rendered = BTreeMap::new();
    let mut open = roots;
    while let Some(name) = open.pop_first() {
        let text = render_type(documents, go, &name, &mut open)?;
        rendered.insert(name, text);
        open.retain(|name| !rendered.contains_key(name));
    }
    let mut out = HEADER.to_owned();
    out.extend(rendered.into_values());
    Ok(out)
}

fn render_type(
    documents: &Documents,
    go: &mut Packages,
    name: &str,
    open: &mut BTreeSet<String>,
) -> Result<String, Error> {
    let schema = documents.schema(name)?;
    let mut out = name.to_owned();
    if let Some((_, special)) = SPECIAL.iter().find(|(special, _)| *special == name) {
        return Ok(format!("{out}\t{special}\n"));
    }
    if let Some(alternatives) = alternatives(name, open) {
        return Ok(format!("{out}\t{alternatives}\n"));
    }
    out.push_str(if schema["x-kubernetes-map-type"] == "atomic" { "\tatomic" } else { "\tstruct" });
    if let Some((group, version, kind)) = only_kind(schema) {
        _ = write!(out, "\t{group}/{version}/{kind}");
    }
    out.push('\n');
    let package = name.rsplit_once('.').map_or(name, |(package, _)| package);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let members = go.members(name)?;
    for (member, property) in schema["properties"].as_object().into_iter().flatten() {
        let known = members.get(member);
        // Kind and version are in the envelope; all other members must have a number.
        if known.is_none() && member != "kind" && member != "apiVersion" {
            return Err(Error::Type {
                name: name.to_owned(),
                what: format!("{member} has no protobuf number"),
            });
        }
        let ty = type_expression(property, package, name, open)?;
        let mut line = format!(" {member}\t{ty}\t");
        if let Some(known) = known {
            let numbers: Vec<String> = known.numbers.iter().map(u32::to_string).collect();
            line.push_str(&numbers.join("."));
        }
        line.push('\t');
        line.push_str(if required.contains(&member.as_str()) { "!" } else { "" });
        line.push_str(known.map_or("", |known| zero(documents, known, property)));
        for strategy in
            property["x-kubernetes-patch-strategy"].as_str().into_iter().flat_map(|all| all.split(','))
        {
            line.push_str(match strategy {
                "merge" => "m",
                "retainKeys" => "k",
                "replace" => "r",
                _ => {
                    return Err(Error::Type { name: name.to_owned(), what: format!("{member}: {strategy}") });
                }
            });
        }
        line.push('\t');
        line.push_str(property["x-kubernetes-patch-merge-key"].as_str().unwrap_or_default());
        line.push('\t');
        if let Some(default) = property.get("default") {
            line.push_str(&default.to_string());
        }
        out.push_str(line.trim_end_matches('\t'));
        out.push('\n');
    }
    Ok(out)
}

/// Returns the mark for a member without a value: none for pointers, `e` if it is omitted, `z` if it is written as its zero
/// value, `n` if it is written as null.
fn zero(documents: &Documents, member: &Member, property: &Value) -> &'static str {
    let reference = property["$ref"].as_str().or_else(|| property.pointer("/allOf/0/$ref")?.as_str());
    let target = reference.map(|reference| reference.rsplit('/').next().unwrap_or(reference));
    let is_struct = target.is_some();
    let is_nil =
        matches!(property["type"].as_str(), Some("array" | "object")) || property["format"] == "byte";
    // These types have custom encoders, which write null instead of a zero value.
    let is_null = target.is_some_and(|target| {
        target.ends_with(".Time")
            || target.ends_with(".MicroTime")
            || target.ends_with(".RawExtension")
            || documents
                .schema(target)
                .is_ok_and(|schema| schema.get("type").is_none() && schema.get("oneOf").is_none())
    });
    match (member.is_pointer, is_struct) {
        (true, _) if member.omits_empty || member.omits_zero => "",
        (true, _) => "n",
        (false, true) if member.omits_zero => "e",
        (false, true) if is_null => "n",
        (false, false) if member.omits_empty || member.omits_zero => "e",
        (false, false) if is_nil => "n",
        (false, _) => "z",
    }
}

/// Returns the shapes of the union types of `CustomResourceDefinition`, which have no schema.
fn alternatives(name: &str, open: &mut BTreeSet<String>) -> Option<&'static str> {
    let (package, rest) = name.split_once(".JSONSchemaPropsOr")?;
    open.insert(format!("{package}.JSONSchemaProps"));
    match rest {
        "Array" => Some("schemaOrArray"),
        "Bool" => Some("schemaOrBool"),
        "StringArray" => Some("schemaOrStrings"),
        _ => None,
    }
}

fn type_expression(
    schema: &Value,
    package: &str,
    name: &str,
    open: &mut BTreeSet<String>,
) -> Result<String, Error> {
    let unknown = || Error::Type { name: name.to_owned(), what: format!("cannot read {schema}") };
    let reference = schema["$ref"].as_str().or_else(|| schema.pointer("/allOf/0/$ref")?.as_str());
    if let Some(reference) = reference {
        let full = reference.rsplit('/').next().unwrap_or(reference);
        open.insert(full.to_owned());
        let short =
            full.strip_prefix(package).filter(|rest| rest.starts_with('.') && !rest[1..].contains('.'));
        let marker = if schema["x-kubernetes-map-type"] == "granular" { "granular:" } else { "" };
        return Ok(format!("{marker}{}", short.unwrap_or(full)));
    }
    let inner =
        |member: &str, open: &mut BTreeSet<String>| type_expression(&schema[member], package, name, open);
    Ok(match (schema["type"].as_str().ok_or_else(unknown)?, schema["format"].as_str()) {
        ("string", Some("byte")) => "bytes".into(),
        ("string", None) => "string".into(),
        ("integer", Some("int32")) => "int32".into(),
        ("integer", Some("int64") | None) => "int64".into(),
        ("number", _) => "number".into(),
        ("boolean", _) => "boolean".into(),
        ("object", _) => {
            let marker = if schema["x-kubernetes-map-type"] == "atomic" { "map:atomic:" } else { "map:" };
            format!("{marker}{}", inner("additionalProperties", open)?)
        }
        ("array", _) => {
            let topology = match schema["x-kubernetes-list-type"].as_str() {
                None | Some("atomic") => "atomic".to_owned(),
                Some("set") => "set".to_owned(),
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array().ok_or_else(unknown)?;
                    let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
                    format!("map({})", keys.join(","))
                }
                Some(_) => return Err(unknown()),
            };
            format!("list:{topology}:{}", inner("items", open)?)
        }
        _ => return Err(unknown()),
    })
}
