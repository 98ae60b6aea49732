use std::{collections::BTreeSet, sync::Arc};

use super::*;
use crate::kinds::{Custom, CustomKind, GroupVersionKind, Kind, Registry};

/// Collects all references in a document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.clone());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn custom() -> Registry {
    let registry = Registry::new();
    let template = Arc::clone(registry.kinds().by_path("", "v1", "configmaps").unwrap());
    let gvk = GroupVersionKind::new("stable.example.com", "v1", "CronTab");
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "description": "the action of the operation"}}});
    let custom = Custom { schema: Some(schema), ..Custom::default() };
    let kind = Kind {
        storage: gvk.clone(),
        gvk,
        plural: "crontabs".into(),
        list_kind: "CronTabList".into(),
        custom: Some(Arc::new(custom)),
        ..Kind::clone(&template)
    };
    registry.set_custom("stable.example.com", "crontabs", CustomKind { served: vec![kind], hidden: None });
    registry
}

#[test]
fn every_indexed_document_exists_and_its_references_resolve() {
    let kinds = custom().kinds();
    let index = index(&kinds);
    let paths = index["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 24);
    for (path, index) in paths {
        let (group, version) = group_version(path).unwrap();
        let document = document(&kinds, group, version).unwrap();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{path}: {reference}");
        }
        assert!(
            index["serverRelativeURL"].as_str().unwrap().starts_with(&format!("/openapi/v3/{path}?hash="))
        );
    }
}

#[test]
fn operation_ids_are_unique() {
    let document = document(&Registry::new().kinds(), "apps", "v1").unwrap();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values().filter(|operation| operation.is_object()) {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(names.insert(name.clone()), "{path}: {name}");
        }
    }
    assert!(names.contains("patchAppsV1NamespacedDeploymentScale"));
    assert!(names.contains("listAppsV1DeploymentForAllNamespaces"));
}

#[test]
fn patch_operations_list_the_media_types_kubectl_needs() {
    let document = document(&Registry::new().kinds(), "apps", "v1").unwrap();
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(
        parameters
            .iter()
            .any(|parameter| parameter["name"] == "fieldValidation" && parameter["in"] == "query")
    );
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some());
}

#[test]
fn schemas_declare_list_merge_strategies() {
    let document = document(&Registry::new().kinds(), "", "v1").unwrap();
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"],
        json!([{"group": "", "version": "v1", "kind": "Pod"}])
    );
    let ports = &schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"];
    assert_eq!(
        *ports,
        json!({
            "type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.ContainerPort"},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "containerPort"
        })
    );
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]["oneOf"].as_array().unwrap().len(),
        2
    );
    assert!(schemas.get("io.k8s.api.core.v1.PodList").is_some());
}

#[test]
fn a_custom_kind_is_published_with_its_own_schema() {
    let registry = custom();
    let document = document(&registry.kinds(), "stable.example.com", "v1").unwrap();
    let schema = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(schema["properties"]["spec"]["description"], "the action of the operation");
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "stable.example.com", "version": "v1", "kind": "CronTab"}])
    );
    let patch =
        &document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"]["patch"];
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    let before = index(&registry.kinds());
    registry.set_custom("stable.example.com", "crontabs", CustomKind::default());
    let after = index(&registry.kinds());
    assert_eq!(after["paths"].get("apis/stable.example.com/v1"), None);
    assert_eq!(after["paths"]["apis/apps/v1"], before["paths"]["apis/apps/v1"]);
}

#[test]
fn openapi_v2_is_one_document_and_its_references_resolve() {
    let document = document_v2(&custom().kinds());
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 100);
    for reference in found {
        let name = reference.strip_prefix("#/definitions/").unwrap();
        assert!(document["definitions"].get(name).is_some(), "{reference}");
    }
    let text = document.to_string();
    for keyword in ["\"requestBody\":", "\"components\":"] {
        assert!(!text.contains(keyword), "{keyword}");
    }
    let definitions = &document["definitions"];
    assert_eq!(
        definitions["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"],
        json!({"type": "string"}),
        "without the default of version 3"
    );
    let deployment = &definitions["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
    assert_eq!(
        *deployment,
        json!({"$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentStrategy", "x-kubernetes-patch-strategy": "retainKeys"})
    );
    assert_eq!(definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"], "string");
    assert_eq!(
        definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"],
        json!({"type": "string", "format": "int-or-string"})
    );
    for name in ["io.k8s.api.core.v1.PersistentVolumeClaim", "com.example.stable.v1.CronTab"] {
        assert!(definitions[name]["x-kubernetes-group-version-kind"].is_array(), "{name}");
    }
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    let parameters = patch["parameters"].as_array().unwrap();
    assert_eq!(parameters[0]["in"], "body");
    assert!(parameters.iter().any(|one| one["name"] == "fieldValidation" && one["type"] == "string"));
}

#[test]
fn openapi_v2_omits_types_that_older_clients_cannot_parse() {
    let registry = custom();
    let template = Arc::clone(registry.kinds().by_path("stable.example.com", "v1", "crontabs").unwrap());
    let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "string", "nullable": true, "default": "x"},
        "b": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"c": {"type": "string"}}},
        "d": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "e": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}},
    }});
    let custom = Custom { schema: Some(schema), ..Custom::default() };
    let kind = Kind { custom: Some(Arc::new(custom)), ..Kind::clone(&template) };
    registry.set_custom("stable.example.com", "crontabs", CustomKind { served: vec![kind], hidden: None });
    let document = document_v2(&registry.kinds());
    let published = &document["definitions"]["com.example.stable.v1.CronTab"];
    let properties = &published["properties"];
    assert_eq!(properties["a"], json!({}));
    assert_eq!(properties["b"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(properties["d"], json!({"x-kubernetes-int-or-string": true}));
    assert_eq!(properties["e"], json!({"type": "array", "items": {"type": "integer", "enum": [1, 2]}}));
    assert_eq!(published["required"], json!(["b"]));
}

#[test]
fn openapi_v2_protobuf_decodes_as_gnostic_messages() {
    let document = json!({
        "swagger": "2.0",
        "definitions": {"a": {"type": "object", "x-b": [1], "properties": {"c": {"$ref": "#/definitions/a"}}}},
    });
    let property = [0x0a, 0x01, b'c', 0x12, 0x11, 0x0a, 0x0f];
    let encoded = encode(&document);
    assert!(encoded.starts_with(&[0x0a, 3, b'2', b'.', b'0', 0x4a]), "{encoded:?}");
    let has = |part: &[u8]| encoded.windows(part.len()).any(|window| window == part);
    // An entry named `c`, with a message whose first member is the reference.
    assert!(has(&property) && has(b"#/definitions/a"), "{encoded:?}");
    // The type is field 22; the extension is field 31 with the value as YAML.
    assert!(has(&[0xb2, 0x01, 8, 0x0a, 6]) && has(b"\x03x-b\x12\x06\x12\x04[1]\n"), "{encoded:?}");
}
