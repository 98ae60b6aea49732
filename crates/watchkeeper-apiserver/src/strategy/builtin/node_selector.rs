//! Node selectors and topology terms, which restrict a volume or a device to nodes.

use std::collections::BTreeSet;

use crate::strategy::{
    cursor::{Cursor, Errors},
    names,
    table::{self, Rule, RuleTable},
};

/// The rules of a node selector (`v1.NodeSelector`).
pub(super) const NODE_SELECTOR: RuleTable = &[
    ("nodeSelectorTerms", &[Rule::RequiredAs("must have at least one node selector term")]),
    ("nodeSelectorTerms[].matchExpressions[]", &[Rule::Struct(EXPRESSION)]),
    ("nodeSelectorTerms[].matchFields[]", &[Rule::Struct(FIELD)]),
];

const EXPRESSION: RuleTable = &[
    ("", &[Rule::Check(expression_values)]),
    ("key", &[Rule::EvenEmpty(names::qualified)]),
    ("values[]", &[Rule::Format(names::label_value)]),
];

pub(super) const FIELD: RuleTable = &[
    ("", &[Rule::Check(field_values)]),
    ("key", &[Rule::Check(field_key)]),
    ("values[]", &[Rule::EvenEmpty(names::dns_subdomain)]),
];

pub(super) fn expression_values(requirement: &Cursor<'_>, errors: &mut Errors) {
    let values = requirement.at("values");
    let count = values.items().count();
    match requirement.at("operator").text() {
        "In" | "NotIn" if count == 0 => {
            errors.push(values.missing("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            errors
                .push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" if count != 1 => {
            errors.push(values.missing("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(requirement.at("operator").invalid("not a valid selector operator")),
    }
}

fn field_values(requirement: &Cursor<'_>, errors: &mut Errors) {
    let values = requirement.at("values");
    match requirement.at("operator").text() {
        "In" | "NotIn" if values.items().count() == 1 => {}
        "In" | "NotIn" => errors
            .push(values.missing(
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            )),
        _ => errors.push(requirement.at("operator").invalid("not a valid selector operator")),
    }
}

fn field_key(key: &Cursor<'_>, errors: &mut Errors) {
    if key.text() != "metadata.name" {
        errors.push(key.invalid("not a valid field selector key"));
    }
}

/// Checks the allowed topologies of a storage class. Terms must be unique, and keys within a term.
pub(super) fn topologies(terms: &Cursor<'_>, errors: &mut Errors) {
    let mut known: BTreeSet<Vec<(String, BTreeSet<String>)>> = BTreeSet::new();
    for term in terms.items() {
        let expressions = term.at("matchLabelExpressions");
        let mut keys = BTreeSet::new();
        let mut shape = Vec::new();
        for expression in expressions.items() {
            table::check(TOPOLOGY, &expression, errors);
            let key = expression.at("key");
            if !keys.insert(key.text().to_owned()) {
                errors.push(key.duplicate());
            }
            let values = expression.at("values");
            shape
                .push((key.text().to_owned(), values.items().map(|value| value.text().to_owned()).collect()));
        }
        shape.sort();
        // Upstream compares with as many empty terms as the list has items.
        if shape.is_empty() || !known.insert(shape) {
            let mut error = expressions.duplicate();
            error.bad_value = Some("".into());
            errors.push(error);
        }
    }
}

const TOPOLOGY: RuleTable =
    &[("values", &[Rule::Required, Rule::UniqueItems]), ("key", &[Rule::EvenEmpty(names::qualified)])];

/// The deprecated node labels, with the advice for each.
const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// Returns the advice about a deprecated node label.
pub(super) fn deprecation(label: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(name, _)| *name == label).map(|(_, advice)| *advice)
}

/// Returns warnings about deprecated keys of a list of requirements.
pub(super) fn expression_warnings(expressions: &Cursor<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for expression in expressions.items() {
        let key = expression.at("key");
        if let Some(advice) = deprecation(key.text()) {
            warnings.push(format!("{}: {} is {advice}", key.path(), key.text()));
        }
    }
    warnings
}
