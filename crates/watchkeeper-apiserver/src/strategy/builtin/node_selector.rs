//! Node selectors: which nodes a pod, a volume or a device is for.

use crate::strategy::{
    at::{At, Errors},
    names,
    table::{Rule, Table},
};

/// A node selector (`v1.NodeSelector`).
pub(super) const NODE_SELECTOR: Table = &[
    ("nodeSelectorTerms", &[Rule::RequiredAs("must have at least one node selector term")]),
    ("nodeSelectorTerms[].matchExpressions[]", &[Rule::Struct(EXPRESSION)]),
    ("nodeSelectorTerms[].matchFields[]", &[Rule::Struct(FIELD)]),
];

const EXPRESSION: Table = &[
    ("", &[Rule::Check(expression_values)]),
    ("key", &[Rule::EvenEmpty(names::qualified)]),
    ("values[]", &[Rule::Format(names::label_value)]),
];

pub(super) const FIELD: Table = &[
    ("", &[Rule::Check(field_values)]),
    ("key", &[Rule::Check(field_key)]),
    ("values[]", &[Rule::EvenEmpty(names::dns_subdomain)]),
];

pub(super) fn expression_values(requirement: &At<'_>, errors: &mut Errors) {
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

fn field_values(requirement: &At<'_>, errors: &mut Errors) {
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

fn field_key(key: &At<'_>, errors: &mut Errors) {
    if key.text() != "metadata.name" {
        errors.push(key.invalid("not a valid field selector key"));
    }
}
