//! Built-in objects with too much in them.

use serde_json::{Map, Value, json};

use super::{MAPS, PODS, names};
use crate::{
    http::{Input, post, request},
    run::Class,
};

fn map(metadata: &Value, data: impl Iterator<Item = (String, Value)>) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data.collect::<Map<_, _>>()})
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": spec})
}

/// Objects that are wrong in very many places.
pub(crate) fn field_errors() -> Class {
    let named = json!({"generateName": "m-"});
    let mut inputs = Vec::new();
    for count in [1_000, 10_000, 20_000, 40_000] {
        let bad = names(count).map(|name| (format!("!{name}"), json!("v")));
        inputs.push(post(MAPS, &map(&named, bad)));
        let bad: Map<String, Value> = names(count).map(|name| (format!("!{name}"), json!("v"))).collect();
        inputs.push(post(MAPS, &map(&json!({"generateName": "m-", "labels": bad}), std::iter::empty())));
        inputs.push(post(MAPS, &map(&json!({"generateName": "m-", "annotations": bad}), std::iter::empty())));
    }
    let image = json!({"name": "a", "image": "i"});
    for count in [2_000, 10_000] {
        let containers: Vec<Value> = (0..count).map(|_| json!({"name": "A B"})).collect();
        inputs.push(post(PODS, &pod(&json!({"containers": containers}))));
        let ports: Vec<Value> = (0..count).map(|port| json!({"containerPort": -port, "name": "!"})).collect();
        inputs.push(post(PODS, &pod(&json!({"containers": [{"name": "a", "image": "i", "ports": ports}]}))));
        let tolerations: Vec<Value> = (0..count).map(|_| json!({"operator": "x", "effect": "y"})).collect();
        inputs.push(post(PODS, &pod(&json!({"containers": [image], "tolerations": tolerations}))));
        let volumes: Vec<Value> = (0..count).map(|_| json!({"name": "v"})).collect();
        inputs.push(post(PODS, &pod(&json!({"containers": [image], "volumes": volumes}))));
    }
    Class { inputs, ..Class::default() }
}

/// Metadata of objects with very many entries.
pub(crate) fn metadata() -> Class {
    let mut inputs = Vec::new();
    for count in [1_000, 5_000, 20_000] {
        let owners: Vec<Value> = names(count)
            .map(|name| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name}))
            .collect();
        let finalizers: Vec<String> = names(count).map(|name| format!("example.com/{name}")).collect();
        let fields: Map<String, Value> = names(count).map(|name| (format!("f:{name}"), json!({}))).collect();
        let managers: Vec<Value> = names(count)
            .map(|name| {
                json!({"manager": name, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {}}})
            })
            .collect();
        let managed = json!([{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": fields}}]);
        for metadata in [
            json!({"generateName": "o-", "ownerReferences": owners}),
            json!({"generateName": "f-", "finalizers": finalizers}),
            json!({"generateName": "f-", "finalizers": vec!["example.com/a"; count]}),
            json!({"generateName": "g-", "managedFields": managed}),
            json!({"generateName": "h-", "managedFields": managers}),
        ] {
            inputs.push(post(MAPS, &map(&metadata, std::iter::empty())));
        }
    }
    Class { inputs, ..Class::default() }
}

/// Repeated writes of a large object.
pub(crate) fn rewrites() -> Class {
    let target = format!("{MAPS}/large");
    let object = |text: &str| map(&json!({"name": "large"}), std::iter::once(("a".to_owned(), json!(text))));
    let setup = vec![post(MAPS, &object("first"))];
    let inputs = (0..150)
        .map(|number: u8| {
            let text = char::from(b'a' + number % 26).to_string().repeat(1_000_000);
            request("PUT", &target, "application/json", object(&text).to_string())
        })
        .collect::<Vec<Input>>();
    Class { setup, inputs }
}
