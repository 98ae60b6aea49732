//! Types for tests, written as OpenAPI schemas.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::schema::{
    EmptyEncoding, Field, MapKey, PatchStrategy, Scalar, Schemas, Shape, Struct, Topology, Type, TypeId,
    TypeRef,
};

/// Returns the type of a schema: `properties`, `items` and the extensions of Kubernetes; `name` names it.
pub(crate) fn of(schema: &Value) -> TypeRef {
    let mut schemas = Schemas::default();
    let id = add(&mut schemas, schema);
    TypeRef::new(Arc::new(schemas), id)
}

fn add(schemas: &mut Schemas, schema: &Value) -> TypeId {
    let shape = match schema["type"].as_str().unwrap_or_default() {
        "string" => Shape::Scalar(Scalar::String),
        "integer" => Shape::Scalar(Scalar::Int64),
        "boolean" => Shape::Scalar(Scalar::Boolean),
        "int-or-string" => Shape::Scalar(Scalar::IntOrString),
        "array" => add_list(schemas, schema),
        "object" if schema.get("properties").is_some() => add_struct(schemas, schema),
        "object" if schema.get("additionalProperties").is_some() => {
            let value = add(schemas, &schema["additionalProperties"]);
            Shape::Map { value, is_atomic: is_atomic(schema) }
        }
        _ => Shape::Any,
    };
    schemas.add(Type { name: schema["name"].as_str().map(Into::into), shape })
}

fn is_atomic(schema: &Value) -> bool {
    schema["x-kubernetes-map-type"] == "atomic"
}

fn add_list(schemas: &mut Schemas, schema: &Value) -> Shape {
    let item = add(schemas, &schema["items"]);
    let topology = match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Topology::Set,
        Some("map") => {
            let names = schema["x-kubernetes-list-map-keys"].as_array().unwrap();
            let keys = names.iter().map(|name| {
                let name = name.as_str().unwrap();
                let default = schema["items"]["properties"][name].get("default").cloned();
                MapKey { name: name.into(), default }
            });
            Topology::Map { keys: keys.collect() }
        }
        _ => Topology::Atomic,
    };
    Shape::List { item, topology }
}

fn add_struct(schemas: &mut Schemas, schema: &Value) -> Shape {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut fields: Vec<Field> = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, member)| {
            let strategies = member["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
            Field {
                name: name.as_str().into(),
                ty: add(schemas, member),
                is_required: required.iter().any(|required| required == name),
                default: member.get("default").cloned(),
                patch: PatchStrategy {
                    merges: strategies.split(',').any(|strategy| strategy == "merge"),
                    merge_key: member["x-kubernetes-patch-merge-key"].as_str().map(Into::into),
                    retains_keys: strategies.split(',').any(|strategy| strategy == "retainKeys"),
                    replaces: strategies.split(',').any(|strategy| strategy == "replace"),
                },
                proto: None,
                empty: match (member.get("default"), required.iter().any(|required| required == name)) {
                    (Some(Value::Object(_)), _) => EmptyEncoding::Zero,
                    (_, true) if matches!(member["type"].as_str(), Some("array" | "object")) => {
                        EmptyEncoding::Null
                    }
                    (_, true) => EmptyEncoding::Zero,
                    (_, false) => EmptyEncoding::Unchanged,
                },
            }
        })
        .collect();
    fields.sort_by(|left, right| left.name.cmp(&right.name));
    let others = schema["x-kubernetes-preserve-unknown-fields"].as_bool().unwrap_or_default();
    let others = others.then(|| schemas.add(Type { name: None, shape: Shape::Any }));
    Shape::Struct(Struct { fields, others, is_atomic: is_atomic(schema), is_embedded_resource: false })
}

fn strings() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn atomic(mut schema: Value) -> Value {
    schema["x-kubernetes-map-type"] = json!("atomic");
    schema
}

fn metadata() -> Value {
    json!({"type": "object", "default": {}, "properties": {
        "name": {"type": "string"}, "namespace": {"type": "string"}, "uid": {"type": "string"},
        "resourceVersion": {"type": "string"}, "generation": {"type": "integer"},
        "creationTimestamp": {"type": "string"},
        "labels": strings(), "annotations": strings(),
        "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge"},
        "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
            "items": atomic(json!({"type": "object", "properties":
                {"uid": {"type": "string"}, "name": {"type": "string"}, "kind": {"type": "string"}}}))},
        "managedFields": {"type": "array", "items": {"type": "object"}},
    }})
}

fn object(name: &str, mut members: Value) -> TypeRef {
    members["apiVersion"] = json!({"type": "string"});
    members["kind"] = json!({"type": "string"});
    members["metadata"] = metadata();
    of(&json!({"type": "object", "name": name, "properties": members}))
}

pub(crate) fn config_map() -> TypeRef {
    object("io.k8s.api.core.v1.ConfigMap", json!({"data": strings(), "immutable": {"type": "boolean"}}))
}

/// Returns the type of a custom resource: all three list types, an atomic object, a status without schema.
pub(crate) fn gizmo() -> TypeRef {
    object("com.example.v1.Gizmo", gizmo_members(&json!({})))
}

/// Returns the same type with other members in its spec, as after a change of the schema.
pub(crate) fn gizmo_with(spec: &Value) -> TypeRef {
    object("com.example.v1.Gizmo", gizmo_members(spec))
}

fn gizmo_members(changed: &Value) -> Value {
    let mut spec = json!({
        "size": {"type": "integer"},
        "atom": atomic(json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}})),
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items":
            {"type": "object", "required": ["name"],
             "properties": {"name": {"type": "string"}, "v": {"type": "integer"}, "w": {"type": "integer"}}}},
        "plain": {"type": "array", "items": {"type": "string"}},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "nested": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
    });
    for (name, schema) in changed.as_object().into_iter().flatten() {
        spec[name] = schema.clone();
    }
    json!({"spec": {"type": "object", "properties": spec}, "status": {"type": "object"}})
}

/// Returns a part of the type of a Deployment, with its structs that are not pointers.
pub(crate) fn deployment() -> TypeRef {
    let named = |members: Value| {
        let mut members = members;
        members["name"] = json!({"type": "string"});
        json!({"type": "object", "required": ["name"], "properties": members})
    };
    let list_map = |key: &str, items: Value| {
        json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key})
    };
    let port = json!({"type": "object", "required": ["containerPort"], "properties": {
        "containerPort": {"type": "integer", "default": 0}, "name": {"type": "string"},
        "protocol": {"type": "string", "default": "TCP"}}});
    let ports = json!({"type": "array", "items": port, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "containerPort"});
    let container = named(json!({
        "image": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
        "env": list_map("name", named(json!({"value": {"type": "string"}}))),
        "ports": ports,
        "resources": {"type": "object", "default": {}, "properties": {"limits":
            {"type": "object", "additionalProperties": {"type": "int-or-string"}}}},
    }));
    let volume = named(json!({
        "emptyDir": {"type": "object", "properties": {"medium": {"type": "string"}}},
        "configMap": {"type": "object", "properties": {"name": {"type": "string"}}},
    }));
    let mut volumes = list_map("name", volume);
    volumes["x-kubernetes-patch-strategy"] = json!("merge,retainKeys");
    let pod_spec = json!({"type": "object", "default": {}, "required": ["containers"], "properties": {
        "containers": list_map("name", container),
        "volumes": volumes,
        "tolerations": {"type": "array", "items": {"type": "object", "properties":
            {"key": {"type": "string"}, "operator": {"type": "string"}}}},
        "nodeSelector": atomic(strings()),
    }});
    let strategy = json!({"type": "object", "default": {}, "x-kubernetes-patch-strategy": "retainKeys", "properties": {
        "type": {"type": "string"},
        "rollingUpdate": {"type": "object", "properties":
            {"maxSurge": {"type": "int-or-string"}, "maxUnavailable": {"type": "int-or-string"}}}}});
    let spec = json!({"type": "object", "default": {}, "required": ["selector", "template"], "properties": {
        "replicas": {"type": "integer"},
        "selector": atomic(json!({"type": "object", "properties": {"matchLabels": strings()}})),
        "strategy": strategy,
        "template": {"type": "object", "default": {}, "properties": {"metadata": metadata(), "spec": pod_spec}},
    }});
    let conditions = list_map(
        "type",
        json!({"type": "object", "properties":
        {"type": {"type": "string"}, "status": {"type": "string"}}}),
    );
    let status = json!({"type": "object", "default": {}, "properties":
        {"replicas": {"type": "integer"}, "conditions": conditions}});
    object("io.k8s.api.apps.v1.Deployment", json!({"spec": spec, "status": status}))
}
