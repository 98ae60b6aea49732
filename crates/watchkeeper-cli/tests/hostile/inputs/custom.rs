//! Custom resources: long lists, schemas that multiply, hostile definitions.

use serde_json::{Map, Value, json};

use super::{
    MAPS,
    definition::{OBJECTS, definition, named_definition, thing},
    names,
};
use crate::{
    http::{Input, post, request},
    run::Class,
};

/// Long lists whose items must differ.
pub(crate) fn lists() -> Class {
    let item = json!({"type": "object", "required": ["k"], "properties": {
        "k": {"type": "string"}, "n": {"type": "integer"}}});
    let spec = json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item},
    }});
    let mut setup = vec![definition(&spec)];
    let mut inputs = Vec::new();
    for count in [1_000, 5_000, 20_000] {
        let set: Vec<String> = names(count).collect();
        let twice: Vec<String> = names(count / 2).chain(names(count / 2)).collect();
        let map = |number: usize| -> Value {
            names(count).rev_if(number == 2).map(|name| json!({"k": name, "n": number})).collect()
        };
        let same: Vec<Value> = names(count).map(|_| json!({"k": "a"})).collect();
        let mut stored = thing(&json!({"set": set, "map": map(1)}));
        let name = format!("stored-{count}");
        stored["metadata"] = json!({"name": name});
        setup.push(post(OBJECTS, &stored));
        for spec in [json!({"set": set}), json!({"set": twice}), json!({"map": map(1)}), json!({"map": same})]
        {
            inputs.push(post(OBJECTS, &thing(&spec)));
        }
        let target = format!("{OBJECTS}/{name}");
        let changed = json!({"spec": {"map": map(2)}});
        inputs.push(request("PATCH", &target, "application/merge-patch+json", changed.to_string()));
        let mut applied = stored.clone();
        applied["spec"] = json!({"map": map(2)});
        let apply = format!("{target}?fieldManager=m&force=true");
        inputs.push(request("PATCH", &apply, "application/apply-patch+yaml", applied.to_string()));
    }
    Class { setup, inputs }
}

trait RevIf: Iterator<Item = String> + Sized {
    fn rev_if(self, is_reversed: bool) -> std::vec::IntoIter<String> {
        let mut all: Vec<String> = self.collect();
        if is_reversed {
            all.reverse();
        }
        all.into_iter()
    }
}

impl<I: Iterator<Item = String>> RevIf for I {}

/// Schemas whose cost multiplies with the object.
pub(crate) fn schemas() -> Class {
    let allowed: Vec<String> = names(20_000).collect();
    let alternatives: Vec<Value> = names(1_000).map(|name| json!({"required": [name]})).collect();
    let patterns: Vec<Value> = (0..200).map(|number| json!({"pattern": format!("a{{{number}}}b")})).collect();
    let spec = json!({"type": "object", "properties": {
        "e": {"type": "array", "items": {"type": "string", "enum": allowed}},
        "a": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"},
            "anyOf": alternatives}},
        "o": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"},
            "oneOf": alternatives}},
        "p": {"type": "string", "allOf": patterns},
        "r": {"type": "string", "pattern": "(a*)*(a|aa)*b$"},
        "d": {"type": "array", "items": {"type": "object", "properties": {
            "x": {"type": "string", "default": "x".repeat(20_000)}}}},
    }});
    let mut inputs = Vec::new();
    for count in [500, 2_000, 10_000] {
        let bad: Vec<String> = names(count).map(|name| format!("bad-{name}")).collect();
        let objects = vec![json!({"k999999": 1}); count];
        for spec in [
            json!({"e": bad}),
            json!({"a": objects}),
            json!({"o": objects}),
            json!({"p": "a".repeat(count * 50)}),
            json!({"r": "a".repeat(count * 50)}),
            json!({"d": vec![json!({}); count]}),
        ] {
            inputs.push(post(OBJECTS, &thing(&spec)));
        }
    }
    Class { setup: vec![definition(&spec)], inputs }
}

/// Definitions that are deep, wide or hard to compile.
pub(crate) fn definitions() -> Class {
    let deep = |depth: usize, combination: &str| {
        (0..depth).fold(json!({"type": "string"}), |inner, _| match combination {
            "properties" => json!({"type": "object", "properties": {"a": inner}}),
            "items" => json!({"type": "array", "items": inner}),
            "not" => json!({"type": "string", "not": inner}),
            combination => json!({"type": "string", combination: [inner]}),
        })
    };
    let text = |schema: Value| json!({"type": "object", "properties": {"s": schema}});
    let mut schemas = Vec::new();
    for depth in [10, 40] {
        for combination in ["properties", "items", "not", "allOf", "anyOf", "oneOf"] {
            schemas.push(text(deep(depth, combination)));
        }
    }
    let wide: Map<String, Value> = names(3_000).map(|name| (name, json!({"type": "string"}))).collect();
    schemas.push(json!({"type": "object", "properties": wide, "required": names(3_000).collect::<Vec<_>>()}));
    let keys: Vec<String> = names(3_000).collect();
    schemas.push(text(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
    ));
    for pattern in [r"\pL{1000}", "((a{100}){100}){100}", "(a|b|c|d){1000}", &"(".repeat(2_000)] {
        schemas.push(text(json!({"type": "string", "pattern": pattern})));
    }
    let patterns: Vec<Value> =
        (0..100).map(|number| json!({"pattern": format!(r"\pL{{8}}{number}")})).collect();
    schemas.push(text(json!({"type": "string", "anyOf": patterns})));
    let mut inputs: Vec<Input> = schemas
        .iter()
        .enumerate()
        .map(|(number, schema)| named_definition(&format!("things{number}"), schema))
        .collect();
    inputs.push(request("GET", MAPS, "application/json", ""));
    Class { inputs, ..Class::default() }
}
