//! Definitions and their kinds, and properties that hold for any schema and any object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    cel,
    prune::{prune_object, set_defaults},
    structural::Structural,
    validate,
};
use crate::{
    schema::{Shape, Topology, TypeRef},
    strategy::{Part, for_builtin},
};

fn definition(schema: &Value) -> Value {
    json!({
        "metadata": {"name": "foos.g.example.com", "generation": 1},
        "spec": {"group": "g.example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
        "status": {"storedVersions": ["v1"]},
    })
}

fn wrong(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let mut errors = Vec::new();
    super::validate_definition(definition, old, &mut errors);
    let mut found: Vec<String> = errors
        .into_iter()
        .map(|error| {
            let path = error.path.replace("spec.validation.openAPIV3Schema.properties[spec]", "~");
            format!("{path} {}", error.kind.reason().trim_start_matches("FieldValue"))
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn a_non_structural_schema_is_rejected_with_the_violating_path() {
    let rule = |rule: &str| {
        json!({"type": "object", "properties": {"n": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "integer"}}}, "x-kubernetes-validations": [{"rule": rule}]})
    };
    let table: Vec<(Value, &[&str])> = vec![
        (json!({"type": "object"}), &[]),
        (json!({}), &["~.type Required"]),
        (json!({"type": "array"}), &["~.items Required"]),
        (json!({"type": "text"}), &["~.type NotSupported"]),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "default": 5}}}),
            &["~.properties[a].default TypeInvalid"],
        ),
        (json!({"type": "object", "default": {"b": 1}, "properties": {}}), &["~.default Invalid"]),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {"type": "string"}}}),
            &["~.additionalProperties Forbidden"],
        ),
        (
            json!({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]}),
            &["~.properties[a] Required"],
        ),
        (json!({"type": "object", "anyOf": [{"type": "object"}]}), &["~.anyOf[0].type Forbidden"]),
        (json!({"type": "string", "pattern": "("}), &["~.pattern Invalid"]),
        (json!({"type": "string", "x-kubernetes-list-type": "set"}), &["~.type Invalid"]),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            &["~.items.x-kubernetes-map-type Invalid"],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
            &["~.items.properties[k].default Required"],
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            &["~.uniqueItems Forbidden"],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            &["~.x-kubernetes-preserve-unknown-fields Invalid"],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            &[],
        ),
        (json!({"type": "object", "x-kubernetes-embedded-resource": true}), &["~.properties Required"]),
        (rule("self.n > 1"), &[]),
        (rule("self.nope > 1"), &["~.x-kubernetes-validations[0].rule Invalid"]),
        (rule("self.n +"), &["~.x-kubernetes-validations[0].rule Invalid"]),
        (rule(" "), &["~.x-kubernetes-validations[0].rule Required"]),
        (rule("self.n"), &["~.x-kubernetes-validations[0].rule Invalid"]),
        (
            rule("self.l.all(a, self.l.all(b, a != b))"),
            // The rule alone, its share of the cost of the schema, and the schema.
            &[
                "spec.validation.openAPIV3Schema Forbidden",
                "~.x-kubernetes-validations[0].rule Forbidden",
                "~.x-kubernetes-validations[0].rule Forbidden",
            ],
        ),
        (
            json!({"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
            &["~.items.x-kubernetes-validations[0].rule Invalid"],
        ),
        (
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "messageExpression": "5"}]}),
            &["~.x-kubernetes-validations[0].messageExpression Invalid"],
        ),
        (
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "reason": "Whim", "fieldPath": ".x"}]}),
            &[
                "~.x-kubernetes-validations[0].fieldPath Invalid",
                "~.x-kubernetes-validations[0].reason NotSupported",
            ],
        ),
    ];
    for (schema, expected) in table {
        let definition = definition(&json!({"type": "object", "properties": {"spec": schema}}));
        assert_eq!(wrong(&definition, None), expected, "{schema}");
    }
}

#[test]
fn names_scope_and_stored_versions_of_an_established_definition_are_immutable() {
    let mut old = definition(&json!({"type": "object"}));
    super::status_after_write(&mut old, [], "2020-01-01T00:00:00Z");
    assert_eq!(wrong(&old, Some(&old)), Vec::<String>::new());
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        wrong(&new, Some(&old))
    };
    assert_eq!(changed(&|new| new["spec"]["scope"] = json!("Cluster")), ["spec.scope Invalid"]);
    assert_eq!(changed(&|new| new["spec"]["names"]["kind"] = json!("Bar")), ["spec.names.kind Invalid"]);
    assert_eq!(changed(&|new| new["spec"]["names"]["plural"] = json!("bars")), ["spec.names.plural Invalid"]);
    assert_eq!(
        changed(&|new| new["spec"]["versions"][0]["name"] = json!("v2")),
        ["status.storedVersions Invalid", "status.storedVersions[0] Invalid"]
    );
}

#[test]
fn each_served_version_is_registered_with_its_own_settings() {
    let mut stored =
        definition(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string", "default": "d"}}}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}));
    stored["spec"]["versions"][0]["subresources"] =
        json!({"status": {}, "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}});
    stored["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.x"}]);
    stored["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "X", "type": "string", "jsonPath": ".spec.x"}]);
    stored["spec"]["versions"].as_array_mut().unwrap().push(json!({"name": "v2", "served": true, "storage": false, "deprecated": true, "schema": {"openAPIV3Schema": {"type": "object"}}}));
    stored["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "v3", "served": false, "storage": false}));
    let maker = super::CustomKinds::new(TypeRef::any());
    assert!(maker.kinds(&stored).unwrap().served.is_empty());
    super::status_after_write(&mut stored, [], "2020-01-01T00:00:00Z");
    let kinds = maker.kinds(&stored).unwrap().served;
    let versions: Vec<&str> = kinds.iter().map(|kind| kind.gvk.version.as_str()).collect();
    assert_eq!(versions, ["v1", "v2"]);
    let (first, second) = (&kinds[0], &kinds[1]);
    assert_eq!(second.storage, first.gvk);
    assert_eq!(first.subresources.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(), ["status", "scale"]);
    assert_eq!(first.custom.as_ref().unwrap().selectable_fields, [".spec.x"]);
    assert_eq!(first.custom.as_ref().unwrap().columns[0].json_path, ".spec.x");
    assert_eq!(second.strategy.deprecation().as_deref(), Some("g.example.com/v2 Foo is deprecated"));
    let spec = first.ty.member("spec").unwrap();
    let Shape::List { topology: Topology::Map { keys }, .. } = spec.member("l").unwrap().shape().clone()
    else {
        panic!("a list of objects with keys")
    };
    assert_eq!((&*keys[0].name, keys[0].default.clone()), ("k", Some(json!("d"))));
    assert!(spec.member("any").unwrap().member("whatever").is_some());
    assert!(spec.member("whatever").is_none());
    assert!(first.ty.member("metadata").is_some());
}

#[test]
fn a_status_write_of_a_custom_object_changes_only_the_status_and_no_generation() {
    let mut stored = definition(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"b": {"type": "integer"}}}}}),
    );
    stored["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    super::status_after_write(&mut stored, [], "2020-01-01T00:00:00Z");
    let kinds = super::CustomKinds::new(TypeRef::any()).kinds(&stored).unwrap().served;
    let strategy = &kinds[0].strategy;
    let mut object = json!({"apiVersion": "g.example.com/v1", "kind": "Foo", "metadata": {"name": "f", "namespace": "n"}, "spec": {"a": 1}, "status": {"b": 1}});
    strategy.prepare_for_create(&mut object);
    assert!(object.get("status").is_none());
    assert_eq!(strategy.validate_create(&object), []);
    let mut status = object.clone();
    status["status"] = json!({"b": "wrong"});
    status["spec"]["a"] = 9.into();
    status["metadata"]["labels"] = json!({"x": "y"});
    strategy.prepare_for_update(Part::Subresource("status"), &mut status, &object);
    assert_eq!(status["spec"]["a"], 1);
    assert!(status["metadata"].get("labels").is_none());
    assert_eq!(status["metadata"]["generation"], 1);
    assert_eq!(strategy.validate_update(Part::Subresource("status"), &status, &object)[0].path, "status.b");
    let mut main = object.clone();
    main["spec"]["a"] = 2.into();
    main["status"] = json!({"b": 3});
    strategy.prepare_for_update(Part::Main, &mut main, &object);
    assert_eq!((main["metadata"]["generation"].as_i64(), main.get("status")), (Some(2), None));
}

/// Generates any JSON, with names that rules refer to.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just(String::new()), "[a-z./:@-]{0,12}", ".{0,8}"].prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let name = prop::sample::select(NAMES);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "labels",
    "finalizers",
    "ownerReferences",
    "containers",
    "ports",
    "env",
    "valueFrom",
    "resources",
    "limits",
    "requests",
    "cpu",
    "template",
    "selector",
    "matchLabels",
    "type",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "port",
    "replicas",
    "strategy",
    "rollingUpdate",
    "maxSurge",
    "schedule",
    "jobTemplate",
    "rules",
    "versions",
    "schema",
    "openAPIV3Schema",
    "properties",
    "items",
    "default",
    "x-kubernetes-validations",
    "rule",
    "storage",
    "served",
    "names",
    "plural",
    "kind",
    "group",
    "data",
    "stringData",
    "volumes",
    "tolerations",
    "a",
    "b",
];

const KINDS: &[(&str, &str, &str)] = &[
    ("", "v1", "Pod"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "Namespace"),
    ("", "v1", "Node"),
    ("", "v1", "Event"),
    ("", "v1", "Endpoints"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "ResourceQuota"),
    ("", "v1", "LimitRange"),
    ("", "v1", "ReplicationController"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "ReplicaSet"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
];

/// Generates a schema like those in definitions, at most three levels deep.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "d", "maxLength": 3})),
        Just(json!({"type": "integer", "default": 5, "nullable": true})),
        Just(json!({"type": "integer", "minimum": 3})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "object", "default": {}, "properties": {"a": {"type": "boolean", "default": true}}})
        ),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = prop::sample::select(NAMES);
        prop_oneof![
            prop::collection::btree_map(name, inner.clone(), 0..4)
                .prop_map(|properties| json!({"type": "object", "properties": properties})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|of| json!({"type": "object", "additionalProperties": of})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn pruning_and_defaulting_are_idempotent(schema in any_schema(), object in any_json()) {
        let schema = Structural::read(&json!({"type": "object", "properties": {"spec": schema}}));
        let mut object = json!({"metadata": {"name": "n"}, "spec": object});
        prune_object(&mut object, &schema);
        set_defaults(&mut object, &schema);
        let once = object.clone();
        prune_object(&mut object, &schema);
        set_defaults(&mut object, &schema);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn validating_arbitrary_objects_does_not_panic(schema in any_schema(), object in any_json(), old in any_json()) {
        let schema = Structural::read(&json!({"type": "object", "properties": {"spec": schema}}));
        let (object, old) = (json!({"spec": object}), json!({"spec": old}));
        validate::validate(&object, Some(&old), &schema, "");
        validate::list_types(&object, &schema, "", &mut Vec::new());
        cel::validate(&object, Some(&old), &schema);
    }

    #[test]
    fn reading_and_validating_arbitrary_schemas_does_not_panic(schema in any_json()) {
        Structural::read(&schema);
        let definition = json!({"metadata": {"name": "a"}, "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        super::validate_definition(&definition, None, &mut Vec::new());
    }

    #[test]
    fn built_in_kinds_accept_arbitrary_input_without_panic_and_default_idempotently(
        metadata in any_json(), spec in any_json(), data in any_json(), old in any_json(),
    ) {
        let object = json!({"metadata": metadata, "spec": spec, "data": data, "rules": data, "subjects": spec, "status": old});
        let old = json!({"metadata": metadata, "spec": old, "data": spec});
        for (group, version, kind) in KINDS {
            let strategy = for_builtin(group, version, kind);
            let mut object = object.clone();
            strategy.set_defaults(&mut object);
            let once = object.clone();
            strategy.set_defaults(&mut object);
            prop_assert_eq!(&object, &once, "{}", kind);
            strategy.prepare_for_create(&mut object);
            strategy.validate_create(&object);
            strategy.warnings(&object, None);
            strategy.grace_period_seconds(&object);
            for part in [Part::Main, Part::Subresource("status"), Part::Subresource("other")] {
                let mut changed = object.clone();
                strategy.prepare_for_update(part, &mut changed, &old);
                strategy.validate_update(part, &changed, &old);
            }
        }
    }
}
