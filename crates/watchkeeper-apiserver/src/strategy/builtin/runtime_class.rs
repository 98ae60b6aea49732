//! Runtime classes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    node_selector, resource_name,
    row::{CLUSTER, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors, moved},
    edit, names, quantity,
    table::{self, Rule, RuleTable},
};

pub(super) const RUNTIME_CLASS: StrategyRow = StrategyRow {
    creates_on_update: true,
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    defaults: |object| edit::each(object, "overhead.podFixed", &mut quantity::canonicalize),
    table: RULES,
    warnings: |object, _| {
        let labels = object.pointer("/scheduling/nodeSelector").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        labels
            .filter_map(|(name, _)| node_selector::deprecation(name))
            .map(|advice| format!("scheduling.nodeSelector: {advice}"))
            .collect()
    },
    ..CLUSTER
};

const RULES: RuleTable = &[
    ("handler", &[Rule::Required, Rule::Format(names::dns_label), Rule::Immutable]),
    ("overhead.podFixed", &[Rule::Check(overhead)]),
    ("scheduling.nodeSelector", &[Rule::Labels]),
    ("scheduling.tolerations", &[Rule::Check(tolerations)]),
];

/// Checks the overhead like the limits of a container, and reports errors there.
fn overhead(amounts: &Cursor<'_>, errors: &mut Errors) {
    moved("overhead.podFixed", "overhead.limits", errors, |errors| {
        for (name, amount) in amounts.entries() {
            resource_name::check_of_container(name, &amount, errors);
            resource_name::check_amount(name, &amount, errors);
        }
    });
}

const TOLERATION: RuleTable = &[
    ("key", &[Rule::Format(names::qualified)]),
    ("", &[Rule::Check(toleration)]),
    ("effect", &[Rule::OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"])]),
];

fn toleration(toleration: &Cursor<'_>, errors: &mut Errors) {
    let operator = toleration.at("operator");
    if toleration.at("key").is_empty() && operator.text() != "Exists" {
        errors.push(operator.invalid(
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        ));
    }
    if toleration.at("tolerationSeconds").is_set() && toleration.at("effect").text() != "NoExecute" {
        errors.push(
            toleration.at("effect").invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"),
        );
    }
    let value = toleration.at("value");
    match operator.text() {
        "Equal" | "" => {
            let wrong = names::label_value(value.text());
            if !wrong.is_empty() {
                errors.push(operator.invalid(wrong.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.push(operator.invalid("value must be empty when `operator` is 'Exists'"));
        }
        "Exists" => {}
        _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
    }
}

fn tolerations(tolerations: &Cursor<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        table::check(TOLERATION, &toleration, errors);
    }
    let mut seen = BTreeSet::new();
    for toleration in tolerations.items() {
        let key: Vec<String> = ["key", "operator", "value", "effect"]
            .iter()
            .map(|member| toleration.at(member).text().to_owned())
            .collect();
        if !seen.insert(key) {
            errors.push(toleration.duplicate());
        }
    }
}
