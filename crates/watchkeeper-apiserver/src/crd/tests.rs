//! Properties that hold for any schema and any object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    cel,
    prune::{prune_object, set_defaults},
    structural::Structural,
    validate,
};
use crate::strategy::{Part, for_builtin};

/// Any JSON, with members that rules look at among the names.
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

/// A schema of the kind definitions have, three levels deep at most.
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
    fn pruning_and_defaulting_twice_is_doing_it_once(schema in any_schema(), object in any_json()) {
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
    fn no_object_breaks_validation(schema in any_schema(), object in any_json(), old in any_json()) {
        let schema = Structural::read(&json!({"type": "object", "properties": {"spec": schema}}));
        let (object, old) = (json!({"spec": object}), json!({"spec": old}));
        validate::validate(&object, Some(&old), &schema, "");
        validate::list_types(&object, &schema, "", &mut Vec::new());
        cel::validate(&object, Some(&old), &schema);
    }

    #[test]
    fn no_schema_breaks_reading_or_checking_it(schema in any_json()) {
        Structural::read(&schema);
        let definition = json!({"metadata": {"name": "a"}, "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        super::validate_definition(&definition, None, &mut Vec::new());
    }

    #[test]
    fn no_object_breaks_a_built_in_kind_and_its_defaults_are_final(
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
