//! Patches of long lists.

use serde_json::{Value, json};

use super::{
    PODS,
    definition::{OBJECTS, definition, thing},
    names,
};
use crate::{
    http::{Input, post, request},
    run::Class,
};

const JSON_PATCH: &str = "application/json-patch+json";

/// JSON patches with very many operations on a long list.
pub(crate) fn json() -> Class {
    let spec =
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}}});
    let mut stored = thing(&json!({"l": vec![1; 100_000]}));
    stored["metadata"] = json!({"name": "long"});
    let target = format!("{OBJECTS}/long");
    let mut inputs = Vec::new();
    for count in [100, 1_000, 10_000] {
        for operation in [
            json!({"op": "move", "from": "/spec/l/0", "path": "/spec/l/-"}),
            json!({"op": "move", "from": "/spec/l/-1", "path": "/spec/l/0"}),
            json!({"op": "remove", "path": "/spec/l/0"}),
            json!({"op": "add", "path": "/spec/l/0", "value": 1}),
            json!({"op": "copy", "from": "/spec/l", "path": "/spec/m"}),
            json!({"op": "test", "path": "/spec/l/5", "value": 1}),
        ] {
            let patch = Value::Array(vec![operation; count]);
            inputs.push(request("PATCH", &target, JSON_PATCH, patch.to_string()));
        }
    }
    let deep: Vec<Value> = (0..500)
        .map(|depth| json!({"op": "add", "path": format!("/spec{}", "/a".repeat(depth + 1)), "value": {}}))
        .collect();
    inputs.push(request("PATCH", &target, JSON_PATCH, Value::Array(deep).to_string()));
    let long = json!([{"op": "add", "path": "/~1".repeat(300_000), "value": 1}]);
    inputs.push(request("PATCH", &target, JSON_PATCH, long.to_string()));
    Class { setup: vec![definition(&spec), post(OBJECTS, &stored)], inputs }
}

/// Merge patches, strategic merge patches and applies with long lists in other orders.
pub(crate) fn merges() -> Class {
    let pod = |count: usize, is_reversed: bool| {
        let mut variables: Vec<Value> =
            names(count).map(|name| json!({"name": name, "value": "1"})).collect();
        if is_reversed {
            variables.reverse();
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "long"},
            "spec": {"containers": [{"name": "a", "image": "i", "env": variables}]}})
    };
    let target = format!("{PODS}/long");
    let mut inputs: Vec<Input> = Vec::new();
    for count in [500, 2_000, 6_000] {
        let patch = pod(count, true).to_string();
        inputs.push(request("PATCH", &target, "application/strategic-merge-patch+json", &patch));
        inputs.push(request("PATCH", &target, "application/merge-patch+json", &patch));
        let apply = format!("{target}?fieldManager=m&force=true");
        inputs.push(request("PATCH", &apply, "application/apply-patch+yaml", &patch));
        let names: Vec<Value> = names(count).map(|name| json!({"name": name})).collect();
        let order = json!({"spec": {"containers": [{"name": "a", "$setElementOrder/env": names}]}});
        let strategic = "application/strategic-merge-patch+json";
        inputs.push(request("PATCH", &target, strategic, order.to_string()));
    }
    Class { setup: vec![post(PODS, &pod(1_000, false))], inputs }
}
