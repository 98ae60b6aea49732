//! `HorizontalPodAutoscaler`. Upstream checks both versions in the form of v2, so errors of a v1 object refer to fields of
//! v2.

use serde_json::{Value, json};

use super::super::row::{PLAIN, StrategyRow};
use crate::{
    convert,
    strategy::{
        cursor::{Cursor, Errors},
        edit::{
            self,
            DefaultValue::{EmptyObject, IntPtr, Null},
        },
        names,
        table::{
            self, FieldCondition,
            Rule::{
                Absent, AtLeast, AtMost, Check, CheckWith, Enum, EnumIfSet, Format, Pointer, Positive,
                Present, QuantityAtLeastZero, Required, RequiredAs, Struct, When,
            },
            RuleTable,
        },
    },
};

/// The annotation in which v1 keeps metrics without fields.
const METRICS_ANNOTATION: &str = "/metadata/annotations/autoscaling.alpha.kubernetes.io~1metrics";

/// The default target utilization of CPU, in percent.
const DEFAULT_CPU: i64 = 80;

pub(super) const AUTOSCALER_V1: StrategyRow = StrategyRow {
    generation: &["spec"],
    status: Some(|| None),
    defaults: |object| {
        edit::fill_all(object, &[("spec", "minReplicas", IntPtr(1))]);
        if object.pointer(METRICS_ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
            edit::fill_all(object, &[("spec", "targetCPUUtilizationPercentage", IntPtr(DEFAULT_CPU))]);
        }
    },
    zeros: &[
        ("", "status", EmptyObject),
        ("status", "currentReplicas", IntPtr(0)),
        ("status", "desiredReplicas", IntPtr(0)),
    ],
    table: &[("", &[CheckWith(check_as_v2)])],
    status_table: STATUS,
    ..PLAIN
};

pub(super) const AUTOSCALER: StrategyRow = StrategyRow {
    defaults: |object| {
        edit::fill_all(object, &[("spec", "minReplicas", IntPtr(1))]);
        edit::each(object, "spec", &mut |spec| {
            let has_metrics =
                spec.get("metrics").and_then(Value::as_array).is_some_and(|metrics| !metrics.is_empty());
            if !has_metrics {
                spec.insert(
                    "metrics".to_owned(),
                    json!([{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": DEFAULT_CPU}}}]),
                );
            }
        });
        behavior(object);
    },
    zeros: &[
        ("", "status", EmptyObject),
        ("status", "desiredReplicas", IntPtr(0)),
        ("status", "currentMetrics", Null),
        ("status.conditions[]", "lastTransitionTime", Null),
    ],
    table: AUTOSCALER_RULES,
    ..AUTOSCALER_V1
};

const AUTOSCALER_RULES: RuleTable = &[("spec", &[Struct(SPEC)])];

const STATUS: RuleTable = &[
    ("status.conditions[].observedGeneration", &[AtLeast(0)]),
    ("status.currentReplicas", &[AtLeast(0)]),
    ("status.desiredReplicas", &[AtLeast(0)]),
];

const SPEC: RuleTable = &[
    ("minReplicas", &[AtLeast(0)]),
    ("maxReplicas", &[Check(max_replicas)]),
    ("", &[Check(replicas_in_order)]),
    ("scaleTargetRef", &[Struct(REFERENCE), CheckWith(scale_target_version)]),
    ("metrics[]", &[Check(metric)]),
    ("", &[Check(scale_to_zero)]),
    ("behavior.scaleUp|scaleDown", &[Pointer(SCALING_RULES)]),
];

const REFERENCE: RuleTable =
    &[("kind", &[Required, Format(names::path_segment)]), ("name", &[Required, Format(names::path_segment)])];

const SCALING_RULES: RuleTable = &[
    ("stabilizationWindowSeconds", &[AtLeast(0), AtMost(3600)]),
    ("selectPolicy", &[EnumIfSet(&["Disabled", "Max", "Min"])]),
    ("policies", &[RequiredAs("must specify at least one Policy")]),
    ("policies[]", &[Struct(SCALING_POLICY)]),
    ("tolerance", &[QuantityAtLeastZero]),
];

const SCALING_POLICY: RuleTable = &[
    ("type", &[Enum(&["Percent", "Pods"])]),
    ("value", &[Positive("must be greater than zero")]),
    ("periodSeconds", &[Positive("must be greater than zero"), AtMost(1800)]),
];

/// The metric sources in the order of checking: the type, its member and its rules.
const SOURCES: [(&str, &str, RuleTable); 5] = [
    (
        "Object",
        "object",
        &[
            ("describedObject", &[Struct(REFERENCE), Check(object_version)]),
            ("metric", &[Struct(METRIC_IDENTIFIER)]),
            (
                "target",
                &[
                    Struct(TARGET),
                    When(
                        FieldCondition::Lacks("value"),
                        &[("averageValue", &[Present("must set either a target value or averageValue")])],
                    ),
                ],
            ),
        ],
    ),
    (
        "External",
        "external",
        &[
            ("metric", &[Struct(METRIC_IDENTIFIER)]),
            (
                "target",
                &[
                    Struct(TARGET),
                    When(
                        FieldCondition::Lacks("value"),
                        &[(
                            "averageValue",
                            &[Present("must set either a target value for metric or a per-pod target")],
                        )],
                    ),
                    When(
                        FieldCondition::Has("averageValue"),
                        &[(
                            "value",
                            &[Absent("may not set both a target value for metric and a per-pod target")],
                        )],
                    ),
                ],
            ),
        ],
    ),
    (
        "Pods",
        "pods",
        &[
            ("metric", &[Struct(METRIC_IDENTIFIER)]),
            ("target", &[Struct(TARGET)]),
            ("target.averageValue", &[Present("must specify a positive target averageValue")]),
        ],
    ),
    (
        "Resource",
        "resource",
        &[("name", &[RequiredAs("must specify a resource name")]), ("target", &[Struct(RESOURCE_TARGET)])],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            (
                "name",
                &[RequiredAs("must specify a resource name"), Check(super::super::pod::resource_name_field)],
            ),
            ("container", &[RequiredAs("must specify a container"), Format(names::dns_label)]),
            ("target", &[Struct(RESOURCE_TARGET)]),
        ],
    ),
];

const METRIC_IDENTIFIER: RuleTable =
    &[("name", &[RequiredAs("must specify a metric name"), Format(names::path_segment)])];

const TARGET: RuleTable = &[
    ("type", &[Check(target_type)]),
    ("value|averageValue", &[Check(positive_quantity)]),
    ("averageUtilization", &[Check(utilization)]),
];

const RESOURCE_TARGET: RuleTable = &[
    ("", &[Struct(TARGET)]),
    (
        "",
        &[
            When(
                FieldCondition::Lacks("averageValue"),
                &[(
                    "averageUtilization",
                    &[Present("must set either a target raw value or a target utilization")],
                )],
            ),
            When(
                FieldCondition::Has("averageUtilization"),
                &[(
                    "averageValue",
                    &[Absent("may not set both a target raw value and a target utilization")],
                )],
            ),
        ],
    ),
];

fn check_as_v2(object: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let as_v2 = |at: &Cursor<'_>| {
        let mut object = at.value.clone();
        convert::autoscaler_to_v2(&mut object);
        object
    };
    let (new, old) = (as_v2(object), old.map(as_v2));
    match &old {
        Some(old) => table::check_change(AUTOSCALER_RULES, &Cursor::root(&new), &Cursor::root(old), errors),
        None => table::check(AUTOSCALER_RULES, &Cursor::root(&new), errors),
    }
}

/// Sets the scaling rules of both directions if a behavior is given.
fn behavior(object: &mut Value) {
    if object.pointer("/spec/behavior").is_none_or(Value::is_null) {
        return;
    }
    let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    let up = json!({"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [policy("Pods", 4), policy("Percent", 100)]});
    let down = json!({"selectPolicy": "Max", "policies": [policy("Percent", 100)]});
    for (direction, rules) in [("scaleUp", up), ("scaleDown", down)] {
        if let Some(members) = edit::object_at(object, &["spec", "behavior", direction]) {
            for (name, value) in rules.as_object().cloned().unwrap_or_default() {
                let member = members.entry(name).or_insert(Value::Null);
                if member.is_null() {
                    *member = value;
                }
            }
        }
    }
}

fn max_replicas(most: &Cursor<'_>, errors: &mut Errors) {
    match most.int() {
        None | Some(0) => errors.push(most.missing("must be set and greater than 0")),
        Some(_) => most.at_least(1, errors),
    }
}

fn replicas_in_order(spec: &Cursor<'_>, errors: &mut Errors) {
    let (least, most) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    if least.int().is_some_and(|least| most.int().unwrap_or(0) < least) {
        errors.push(most.invalid("must be greater than or equal to `minReplicas`"));
    }
}

/// Checks an apiVersion. Most scalable kinds have an API group.
fn api_version(reference: &Cursor<'_>, allows_core: bool, errors: &mut Errors) {
    let version = reference.at("apiVersion");
    let text = version.text();
    if text.matches('/').count() > 1 {
        errors.push(version.invalid(format!("unexpected GroupVersion string: {text}")));
    } else if !allows_core && text.split_once('/').is_none_or(|(group, _)| group.is_empty()) {
        errors.push(version.invalid("apiVersion must specify API group"));
    }
}

fn scale_target_version(target: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let is_unchanged = old.is_some_and(|old| {
        ["apiVersion", "kind"].iter().all(|member| old.at(member).text() == target.at(member).text())
    });
    if !is_unchanged {
        api_version(target, target.at("kind").text() == "ReplicationController", errors);
    }
}

fn object_version(described: &Cursor<'_>, errors: &mut Errors) {
    api_version(described, true, errors);
}

fn metric(metric: &Cursor<'_>, errors: &mut Errors) {
    let kind = metric.at("type");
    let mut types = SOURCES.map(|(name, ..)| name);
    types.sort_unstable();
    if kind.is_empty() {
        errors.push(kind.missing("must specify a metric source type"));
    }
    let is_known = types.contains(&kind.text());
    if !is_known {
        errors.push(kind.unsupported(&types));
    }
    let given = || SOURCES.iter().filter(|(_, member, _)| metric.at(member).is_set());
    if let Some((_, member, rules)) = given().next() {
        table::check(rules, &metric.at(member), errors);
    }
    let expected = SOURCES.iter().find(|(name, ..)| *name == kind.text()).map(|(_, member, _)| *member);
    match expected {
        Some(member) if !metric.at(member).is_set() => {
            errors.push(metric.at(member).missing("must populate information for the given metric source"));
        }
        Some(_) => {}
        None => errors.push(kind.unsupported(&types)),
    }
    if given().count() != 1 {
        for (_, member, _) in given().filter(|(_, member, _)| Some(*member) != expected) {
            errors.push(metric.at(member).forbidden("must populate the given metric source only"));
        }
    }
}

fn target_type(kind: &Cursor<'_>, errors: &mut Errors) {
    if kind.is_empty() {
        errors.push(kind.missing("must specify a metric target type"));
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        errors.push(kind.invalid("must be either Utilization, Value, or AverageValue"));
    }
}

fn positive_quantity(amount: &Cursor<'_>, errors: &mut Errors) {
    let quantity = crate::strategy::quantity::Quantity::from_value(amount.value);
    if quantity.is_some_and(|quantity| quantity.is_negative() || quantity.is_zero()) {
        errors.push(amount.invalid("must be positive"));
    }
}

fn utilization(share: &Cursor<'_>, errors: &mut Errors) {
    if share.int().is_some_and(|share| share < 1) {
        errors.push(share.invalid("must be greater than 0"));
    }
}

/// Checks that scaling to zero uses a metric that exists without pods.
fn scale_to_zero(spec: &Cursor<'_>, errors: &mut Errors) {
    let metrics = spec.at("metrics");
    let is_outside = |metric: &Cursor<'_>| matches!(metric.at("type").text(), "Object" | "External");
    if spec.at("minReplicas").int() == Some(0) && !metrics.items().any(|metric| is_outside(&metric)) {
        errors.push(metrics.forbidden(
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ));
    }
}
