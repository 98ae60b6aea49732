//! The requests that a webhook or a policy applies to.

use std::collections::BTreeSet;

use crate::{
    crd::{CelEnvironment, CelOutputType, CelRequiredType},
    strategy::{
        cursor::{Cursor, Errors},
        names,
        table::{Rule, RuleTable, only_wildcard},
    },
};

/// A rule with operations (`RuleWithOperations`).
pub(super) const RULE_WITH_OPERATIONS: RuleTable = &[
    ("operations", &[Rule::Required, Rule::Check(|list, errors| only_wildcard(list, "operations", errors))]),
    ("operations[]", &[Rule::Enum(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"])]),
    ("apiGroups", &[Rule::Required, Rule::Check(|list, errors| only_wildcard(list, "API groups", errors))]),
    (
        "apiVersions",
        &[Rule::Required, Rule::Check(|list, errors| only_wildcard(list, "API versions", errors))],
    ),
    ("apiVersions[]", &[Rule::Required]),
    ("resources", &[Rule::Required, Rule::Check(resources)]),
    ("scope", &[Rule::OneOf(&["*", "Cluster", "Namespaced"])]),
];

/// The resources that a policy matches (`MatchResources`).
pub(super) const MATCH_RESOURCES: RuleTable = &[
    ("matchPolicy", &[Rule::Present(""), Rule::Enum(&["Equivalent", "Exact"])]),
    ("namespaceSelector", &[Rule::Present(""), Rule::LabelSelector]),
    ("objectSelector", &[Rule::Present(""), Rule::LabelSelector]),
    ("resourceRules|excludeResourceRules[]", &[Rule::Struct(NAMED_RULE)]),
];

const NAMED_RULE: RuleTable = &[
    ("resourceNames[]", &[Rule::Format(names::path_segment)]),
    ("resourceNames", &[Rule::UniqueItems]),
    ("", &[Rule::Struct(RULE_WITH_OPERATIONS)]),
];

/// Checks resources and subresources: a wildcard must not be combined with entries that it covers.
fn resources(list: &Cursor<'_>, errors: &mut Errors) {
    let (mut all_subresources, mut of_all_resources) = (BTreeSet::new(), BTreeSet::new());
    let mut has_plain = false;
    for item in list.items() {
        let text = item.text();
        if text.is_empty() {
            errors.push(item.missing(""));
            continue;
        }
        let Some((resource, subresource)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        if all_subresources.contains(resource) {
            errors.push(item.invalid(format!("if '{resource}/*' is present, must not specify {text}")));
        }
        if of_all_resources.contains(subresource) {
            errors.push(item.invalid(format!("if '*/{subresource}' is present, must not specify {text}")));
        }
        if subresource == "*" {
            all_subresources.insert(resource.to_owned());
        }
        if resource == "*" {
            of_all_resources.insert(subresource.to_owned());
        }
    }
    let has = |expected: &str| list.items().any(|item| item.text() == expected);
    if list.items().count() > 1 && has("*/*") {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if has("*") && has_plain {
        errors.push(list.invalid("if '*' is present, must not specify other resources without subresources"));
    }
}

/// Conditions in CEL on the requests that match (`matchConditions`).
pub(super) fn match_conditions(conditions: &Cursor<'_>, has_params: bool, errors: &mut Errors) {
    if conditions.is_empty() {
        return;
    }
    let environment = CelEnvironment::admission(has_params, true);
    if conditions.items().count() > 64 {
        errors.push(crate::strategy::table::too_many(conditions, 64));
    }
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        compile(&environment, CelRequiredType::Bool, &condition.at("expression"), "", errors);
        let name = condition.at("name");
        if name.is_empty() {
            errors.push(name.missing(""));
            continue;
        }
        name.format(names::qualified, errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

/// Compiles an expression that must be given and returns its type. White space alone counts as missing; `detail` is that of
/// a missing expression.
pub(super) fn compile(
    environment: &CelEnvironment,
    output: CelRequiredType,
    text: &Cursor<'_>,
    detail: &str,
    errors: &mut Errors,
) -> CelOutputType {
    if text.text().trim().is_empty() {
        errors.push(text.missing(detail));
        return CelOutputType::unknown();
    }
    environment.compile(text.text(), output).unwrap_or_else(|problem| {
        errors.push(text.invalid(problem));
        CelOutputType::unknown()
    })
}

/// Checks that an expression is present. White space alone counts as missing.
pub(super) fn expression(expression: &Cursor<'_>, detail: &str, errors: &mut Errors) {
    if expression.text().trim().is_empty() {
        errors.push(expression.missing(detail));
    }
}
