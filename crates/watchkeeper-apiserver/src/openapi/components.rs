//! The schemas of a document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    kinds::{GroupVersion, GroupVersionKind, Kind},
    schema::{Field, Scalar, Shape, Topology, TypeRef, builtin},
};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The types in every document: those of lists, deletes, patches and failures.
const EVERYWHERE: [&str; 4] = ["DeleteOptions", "ListMeta", "Patch", "Status"];

/// Returns a reference to a schema of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Returns the schema name of a kind: the OpenAPI name of a built-in type, or a name with the reversed group.
pub(super) fn name(kind: &Kind) -> String {
    if kind.custom.is_none()
        && let Some(name) = kind.ty.name()
    {
        return name.to_owned();
    }
    let group: Vec<&str> = kind.gvk.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), kind.gvk.version, kind.gvk.kind)
}

/// Returns the schema name of lists of a kind.
pub(super) fn list_name(kind: &Kind) -> String {
    let name = name(kind);
    let package = name.rsplit_once('.').map_or("", |(package, _)| package);
    format!("{package}.{}", kind.list_kind)
}

/// Returns the schema name of a built-in kind that is the body of a subresource.
pub(super) fn builtin_name(gvk: &GroupVersionKind) -> Option<String> {
    TypeRef::builtin(builtin().find_kind(gvk)).name().map(str::to_owned)
}

/// Returns all schemas that a document of these kinds refers to, by name.
pub(super) fn schemas(version: &GroupVersion) -> Value {
    let mut schemas = BTreeMap::new();
    let mut open: BTreeSet<String> = EVERYWHERE.iter().map(|name| format!("{META}.{name}")).collect();
    let mut kinds: BTreeMap<String, &GroupVersionKind> = BTreeMap::new();
    for kind in &version.kinds {
        let name = name(kind);
        if let Some(custom) = &kind.custom {
            open.insert(format!("{META}.ObjectMeta"));
            schemas.insert(name.clone(), custom_schema(custom.schema.as_ref(), &kind.gvk));
        } else {
            kinds.insert(name.clone(), &kind.gvk);
            open.insert(name.clone());
        }
        if kind.allows("list") {
            schemas.insert(list_name(kind), list_schema(kind, &name));
        }
        for subresource in &kind.subresources {
            if let Some(name) = builtin_name(&subresource.gvk) {
                kinds.insert(name.clone(), &subresource.gvk);
                open.insert(name);
            }
        }
    }
    while let Some(name) = open.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        let ty = TypeRef::builtin_named(&name);
        let mut schema = define(&ty, &mut open);
        if let Some(gvk) = kinds.get(&name) {
            schema["x-kubernetes-group-version-kind"] = json!([gvk_of(gvk)]);
        }
        schemas.insert(name, schema);
    }
    json!(schemas)
}

/// Returns group, version and kind in the form of the extension.
pub(super) fn gvk_of(gvk: &GroupVersionKind) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

fn custom_schema(given: Option<&Value>, gvk: &GroupVersionKind) -> Value {
    let mut schema = given
        .filter(|given| given.is_object())
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    if !schema["properties"].is_object() {
        schema["properties"] = Value::Object(Map::new());
    }
    let properties = &mut schema["properties"];
    properties["apiVersion"] = json!({"type": "string"});
    properties["kind"] = json!({"type": "string"});
    properties["metadata"] = json!({"allOf": [reference(&format!("{META}.ObjectMeta"))]});
    schema["x-kubernetes-group-version-kind"] = json!([gvk_of(gvk)]);
    schema
}

fn list_schema(kind: &Kind, item: &str) -> Value {
    let gvk = GroupVersionKind { kind: kind.list_kind.clone(), ..kind.gvk.clone() };
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [reference(&format!("{META}.ListMeta"))], "default": {}},
            "items": {"type": "array", "items": {"allOf": [reference(item)], "default": {}}},
        },
        "x-kubernetes-group-version-kind": [gvk_of(&gvk)],
    })
}

/// Returns the full schema of a type.
fn define(ty: &TypeRef, open: &mut BTreeSet<String>) -> Value {
    match ty.shape() {
        Shape::Struct(of) => {
            let mut schema = json!({"type": "object"});
            let required: Vec<&str> =
                of.fields.iter().filter(|field| field.is_required).map(|field| &*field.name).collect();
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            let properties: Map<String, Value> = of
                .fields
                .iter()
                .map(|field| (field.name.to_string(), property(field, &ty.at(field.ty), open)))
                .collect();
            if !properties.is_empty() {
                schema["properties"] = properties.into();
            }
            if of.is_atomic {
                schema["x-kubernetes-map-type"] = "atomic".into();
            }
            schema
        }
        Shape::Scalar(of) => scalar(*of),
        Shape::Map { value, is_atomic } => {
            let mut schema = json!({"type": "object", "additionalProperties": refer(&ty.at(*value), open)});
            if *is_atomic {
                schema["x-kubernetes-map-type"] = "atomic".into();
            }
            schema
        }
        Shape::List { item, topology } => {
            let mut schema = json!({"type": "array", "items": refer(&ty.at(*item), open)});
            match topology {
                Topology::Atomic => schema["x-kubernetes-list-type"] = "atomic".into(),
                Topology::Set => schema["x-kubernetes-list-type"] = "set".into(),
                Topology::Map { keys } => {
                    schema["x-kubernetes-list-type"] = "map".into();
                    schema["x-kubernetes-list-map-keys"] =
                        keys.iter().map(|key| key.name.to_string()).collect();
                }
            }
            schema
        }
        Shape::Any => match ty.name() {
            // Any JSON value for the JSON types; otherwise an object.
            Some(name) if name.contains(".JSON") => json!({}),
            _ => json!({"type": "object"}),
        },
    }
}

/// Returns the schema of a type where it is used: a reference if the type has a name.
fn refer(ty: &TypeRef, open: &mut BTreeSet<String>) -> Value {
    match ty.name() {
        Some(name) => {
            open.insert(name.to_owned());
            reference(name)
        }
        None => define(ty, open),
    }
}

fn property(field: &Field, ty: &TypeRef, open: &mut BTreeSet<String>) -> Value {
    let mut schema = refer(ty, open);
    let mut marks = Map::new();
    if let Some(default) = &field.default {
        marks.insert("default".into(), default.clone());
    }
    let strategies = [
        (field.patch.merges, "merge"),
        (field.patch.retains_keys, "retainKeys"),
        (field.patch.replaces, "replace"),
    ];
    let strategies: Vec<&str> =
        strategies.into_iter().filter(|(is_so, _)| *is_so).map(|(_, strategy)| strategy).collect();
    if !strategies.is_empty() {
        marks.insert("x-kubernetes-patch-strategy".into(), strategies.join(",").into());
    }
    if let Some(key) = &field.patch.merge_key {
        marks.insert("x-kubernetes-patch-merge-key".into(), (**key).into());
    }
    // A reference permits no sibling keywords.
    if ty.name().is_some() && !marks.is_empty() {
        schema = json!({"allOf": [schema]});
    }
    if let Value::Object(members) = &mut schema {
        members.extend(marks);
    }
    schema
}

fn scalar(of: Scalar) -> Value {
    match of {
        Scalar::String => json!({"type": "string"}),
        Scalar::Bytes => json!({"type": "string", "format": "byte"}),
        Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
        Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
        Scalar::Number => json!({"type": "number", "format": "double"}),
        Scalar::Boolean => json!({"type": "boolean"}),
        Scalar::IntOrString => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Scalar::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Scalar::Time | Scalar::MicroTime => json!({"type": "string", "format": "date-time"}),
    }
}
