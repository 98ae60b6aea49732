//! `PodDisruptionBudget`, `HorizontalPodAutoscaler` and `PriorityClass`.

mod autoscaler;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{
    condition::conditions,
    row::{CLUSTER, PLAIN, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr, Str},
    },
    names::NameRule,
    table::{
        Rule::{
            AtLeast, AtMostAll, Check, CheckChange, EnumIfSet, Immutable, IntOrPercent, LabelSelector, Struct,
        },
        RuleTable,
    },
};

/// Returns the row of a kind of the groups `autoscaling`, `policy` and `scheduling.k8s.io`.
pub(super) fn find(group: &str, version: &str, kind: &str) -> Option<StrategyRow> {
    Some(match (group, kind) {
        ("policy", "PodDisruptionBudget") => DISRUPTION_BUDGET,
        ("autoscaling", "HorizontalPodAutoscaler") if version == "v1" => autoscaler::AUTOSCALER_V1,
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler::AUTOSCALER,
        ("scheduling.k8s.io", "PriorityClass") => PRIORITY_CLASS,
        _ => return None,
    })
}

const DISRUPTION_BUDGET: StrategyRow = StrategyRow {
    // Upstream checks only the common rules of metadata for a budget.
    names: NameRule::PathSegment,
    checks_metadata_last: true,
    qualifies_finalizers: false,
    generation: &["spec"],
    takes_unconditional_update: false,
    status: Some(|| None),
    zeros: &[
        ("", "spec", EmptyObject),
        ("", "status", EmptyObject),
        ("status", "currentHealthy", IntPtr(0)),
        ("status", "desiredHealthy", IntPtr(0)),
        ("status", "disruptionsAllowed", IntPtr(0)),
        ("status", "expectedPods", IntPtr(0)),
    ],
    table: &[("spec", &[Struct(BUDGET_SPEC)])],
    status_table: &[
        ("status.conditions", &[Check(conditions)]),
        ("status.disruptionsAllowed", &[AtLeast(0)]),
        ("status.currentHealthy", &[AtLeast(0)]),
        ("status.desiredHealthy", &[AtLeast(0)]),
        ("status.expectedPods", &[AtLeast(0)]),
    ],
    ..PLAIN
};

const BUDGET_SPEC: RuleTable = &[
    ("", &[Check(one_bound)]),
    ("minAvailable", &[IntOrPercent, AtMostAll]),
    ("maxUnavailable", &[IntOrPercent, AtMostAll]),
    ("selector", &[LabelSelector]),
    ("unhealthyPodEvictionPolicy", &[EnumIfSet(&["AlwaysAllow", "IfHealthyBudget"])]),
];

fn one_bound(spec: &Cursor<'_>, errors: &mut Errors) {
    if spec.at("minAvailable").is_set() && spec.at("maxUnavailable").is_set() {
        errors.push(spec.invalid("minAvailable and maxUnavailable cannot be both set"));
    }
}

const PRIORITY_CLASS: StrategyRow = StrategyRow {
    defaults: |object| edit::fill_all(object, &[("", "preemptionPolicy", Str("PreemptLowerPriority"))]),
    zeros: &[("", "value", IntPtr(0))],
    // The generation of a priority class is set once and never incremented.
    prepare_create: |object| {
        if let Some(metadata) = edit::object(object, "metadata") {
            metadata.insert("generation".to_owned(), Value::from(1));
        }
    },
    table: &[("value", &[CheckChange(same_value)]), ("preemptionPolicy", &[Immutable])],
    validate_create: |object, errors| {
        object.at("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
        let (value, metadata) = (object.at("value"), object.at("metadata"));
        let name = metadata.at("name");
        if name.text().starts_with("system-") {
            if let Err(detail) = system_class(object) {
                errors.push(name.forbidden(format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {detail}"
                )));
            }
        } else if value.int().is_some_and(|value| value > 1_000_000_000) {
            errors.push(value.forbidden("maximum allowed value of a user defined priority is 1000000000"));
        }
    },
    ..CLUSTER
};

/// The priority classes of the system.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

fn system_class(object: &Cursor<'_>) -> Result<(), String> {
    let metadata = object.at("metadata");
    let name = metadata.at("name").text();
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Err(format!("{name} is not a known system priority class"));
    };
    if object.at("value").int() != Some(*value) {
        return Err(format!("value of {name} PriorityClass must be {value}"));
    }
    if object.at("globalDefault").is_true() {
        return Err(format!("globalDefault of {name} PriorityClass must be false"));
    }
    Ok(())
}

fn same_value(value: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    if value.value != old.value {
        errors.push(value.forbidden("may not be changed in an update."));
    }
}
