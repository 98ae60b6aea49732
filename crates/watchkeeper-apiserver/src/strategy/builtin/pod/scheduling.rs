//! Scheduling constraints of a pod: affinity, tolerations, topology spread, gates.

use std::collections::BTreeSet;

use super::super::node_selector;
use crate::strategy::{
    cursor::{Cursor, Errors},
    names,
    table::{
        self,
        Rule::{
            Check, Enum, EnumIfSet, EvenEmpty, Format, LabelSelector, OneOf, Pointer, Positive, RequiredAs,
            Struct,
        },
        RuleTable,
    },
};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) const AFFINITY: RuleTable = &[
    ("nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", &[Pointer(node_selector::NODE_SELECTOR)]),
    ("nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[]", &[Struct(PREFERRED_NODES)]),
    ("podAffinity", &[Struct(PODS)]),
    ("podAntiAffinity", &[Struct(PODS)]),
];

const PREFERRED_NODES: RuleTable = &[
    ("weight", &[Check(weight)]),
    // Values of preferred terms need not be valid label values.
    (
        "preference.matchExpressions[]",
        &[Struct(&[
            ("", &[Check(node_selector::expression_values)]),
            ("key", &[EvenEmpty(names::qualified)]),
        ])],
    ),
    ("preference.matchFields[]", &[Struct(node_selector::FIELD)]),
];

const PODS: RuleTable = &[
    ("requiredDuringSchedulingIgnoredDuringExecution[]", &[Struct(TERM)]),
    (
        "preferredDuringSchedulingIgnoredDuringExecution[]",
        &[Struct(&[("weight", &[Check(weight)]), ("podAffinityTerm", &[Struct(TERM)])])],
    ),
];

const TERM: RuleTable = &[
    ("labelSelector", &[LabelSelector]),
    ("namespaceSelector", &[LabelSelector]),
    ("", &[Check(namespaces), Check(label_keys)]),
    ("topologyKey", &[Check(topology_key)]),
];

pub(super) const SPREAD: RuleTable = &[
    ("maxSkew", &[Positive("must be greater than zero")]),
    ("topologyKey", &[RequiredAs("can not be empty")]),
    ("whenUnsatisfiable", &[Enum(&["DoNotSchedule", "ScheduleAnyway"])]),
];

const SPREAD_POLICIES: RuleTable = &[
    ("nodeAffinityPolicy", &[EnumIfSet(&["Honor", "Ignore"])]),
    ("nodeTaintsPolicy", &[EnumIfSet(&["Honor", "Ignore"])]),
    ("", &[Check(label_keys)]),
    ("labelSelector", &[LabelSelector]),
];

const TOLERATION: RuleTable =
    &[("key", &[Format(names::qualified)]), ("", &[Check(toleration)]), ("effect", &[OneOf(EFFECTS)])];

fn weight(weight: &Cursor<'_>, errors: &mut Errors) {
    if weight.int().is_none_or(|weight| !(1..=100).contains(&weight)) {
        errors.push(weight.invalid("must be in the range 1-100"));
    }
}

/// Checks namespaces of a term. Upstream reports an invalid one at `namespace`, without its index.
fn namespaces(term: &Cursor<'_>, errors: &mut Errors) {
    for name in term.at("namespaces").items() {
        let reported = term.named("namespace", name.value);
        errors.extend(names::dns_label(name.text()).into_iter().map(|detail| reported.invalid(detail)));
    }
}

fn topology_key(key: &Cursor<'_>, errors: &mut Errors) {
    if key.is_empty() {
        errors.push(key.missing("can not be empty"));
    }
    errors.extend(names::qualified(key.text()).into_iter().map(|detail| key.invalid(detail)));
}

/// Checks `matchLabelKeys` and `mismatchLabelKeys`, which require a selector and distinct keys.
fn label_keys(term: &Cursor<'_>, errors: &mut Errors) {
    let (matched, mismatched) = (term.at("matchLabelKeys"), term.at("mismatchLabelKeys"));
    let selector = term.at("labelSelector");
    for keys in [&matched, &mismatched] {
        if !keys.is_empty() && !selector.is_set() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items() {
            errors.extend(names::qualified(key.text()).into_iter().map(|detail| key.invalid(detail)));
        }
    }
    let is_matched = |name: &str| matched.items().position(|key| key.text() == name);
    let mut seen: BTreeSet<&str> = selector
        .value
        .get("matchLabels")
        .and_then(serde_json::Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    let expressions = selector.at("matchExpressions");
    for expression in expressions.items() {
        let name = expression.value.get("key").and_then(serde_json::Value::as_str).unwrap_or_default();
        if let Some(index) = is_matched(name).filter(|_| seen.contains(name)) {
            let mut error = term.invalid("exists in both matchLabelKeys and labelSelector");
            error.path = format!("{}[{index}]", term.path());
            error.bad_value = Some(name.into());
            errors.push(error);
        }
        seen.insert(name);
    }
    for key in matched.items() {
        if mismatched.items().any(|other| other.value == key.value) {
            errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
        }
    }
}

pub(super) fn spread(constraints: &Cursor<'_>, errors: &mut Errors) {
    for (index, constraint) in constraints.items().enumerate() {
        table::check(SPREAD, &constraint, errors);
        let pair = |of: &Cursor<'_>| {
            (of.at("topologyKey").text().to_owned(), of.at("whenUnsatisfiable").text().to_owned())
        };
        if constraints.items().skip(index + 1).any(|later| pair(&later) == pair(&constraint)) {
            let mut error = constraint.at("{topologyKey, whenUnsatisfiable}").duplicate();
            let (key, action) = pair(&constraint);
            error.bad_value = Some(format!("{{{key}, {action}}}").into());
            errors.push(error);
        }
        let domains = constraint.at("minDomains");
        if domains.int().is_some_and(|count| count <= 0) {
            errors.push(domains.invalid("must be greater than zero"));
        }
        let action = constraint.at("whenUnsatisfiable").text();
        if domains.is_set() && action != "DoNotSchedule" {
            errors.push(domains.invalid(format!(
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            )));
        }
        table::check(SPREAD_POLICIES, &constraint, errors);
    }
}

pub(super) fn tolerations(tolerations: &Cursor<'_>, errors: &mut Errors) {
    for toleration in tolerations.items() {
        table::check(TOLERATION, &toleration, errors);
    }
}

fn toleration(toleration: &Cursor<'_>, errors: &mut Errors) {
    let (key, operator) = (toleration.at("key"), toleration.at("operator"));
    let (value, effect) = (toleration.at("value"), toleration.at("effect"));
    let mut reject = |at: &Cursor<'_>, detail: String| errors.push(at.invalid(detail));
    if key.is_empty() && operator.text() != "Exists" {
        reject(
            &operator,
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\""
                .to_owned(),
        );
    }
    if toleration.at("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        reject(&effect, "effect must be 'NoExecute' when `tolerationSeconds` is set".to_owned());
    }
    match operator.text() {
        "" | "Equal" => {
            let wrong = names::label_value(value.text());
            if !wrong.is_empty() {
                reject(&operator, wrong.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            reject(&operator, "value must be empty when `operator` is 'Exists'".to_owned());
        }
        "Exists" => {}
        "Lt" | "Gt" => errors.push(operator.unsupported(&["Equal", "Exists", "Lt", "Gt"])),
        _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
    }
}

/// Checks scheduling gates. Upstream reports an invalid and a duplicate name at the gate itself.
pub(super) fn gates(gates: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for gate in gates.items() {
        let name = gate.at("name");
        let mut report = |mut error: crate::field::FieldError| {
            error.path = gate.path();
            error.bad_value = Some(name.text().into());
            errors.push(error);
        };
        for detail in names::qualified(name.text()) {
            report(gate.invalid(detail));
        }
        if !seen.insert(name.text().to_owned()) {
            report(gate.duplicate());
        }
    }
}
