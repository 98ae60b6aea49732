//! Admission policies in CEL, and their bindings to resources.

use std::collections::BTreeSet;

use super::{
    super::{
        condition,
        row::{CLUSTER, StatusMetadata, StrategyRow},
    },
    not_static,
    rule::{MATCH_RESOURCES, compile, expression, match_conditions},
    static_warnings,
};
use crate::{
    crd::{CelEnvironment, CelRequiredType, is_reserved_in_cel},
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        edit::{
            self,
            DefaultValue::{EmptyObject, Str},
            Fill,
        },
        names,
        table::{self, Rule, RuleTable},
    },
};

const POLICY: StrategyRow = StrategyRow {
    generation: &["spec"],
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    validate_create: not_static,
    warnings: static_warnings,
    ..CLUSTER
};

pub(super) const VALIDATING: StrategyRow = StrategyRow {
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    zeros: &[("", "status", EmptyObject)],
    defaults: |object| edit::fill_all(object, POLICY_DEFAULTS),
    table: &[("spec", &[Rule::Struct(SPEC)]), ("", &[Rule::Check(expressions)])],
    status_table: &[
        ("status.typeChecking.expressionWarnings[].warning", &[Rule::Required]),
        (
            "status.typeChecking.expressionWarnings[].fieldRef",
            &[Rule::Check(|reference, errors| {
                expression(reference, "", errors);
            })],
        ),
        ("status.conditions", &[Rule::Check(condition::conditions)]),
    ],
    ..POLICY
};

pub(super) const MUTATING: StrategyRow = StrategyRow {
    defaults: |object| edit::fill_all(object, POLICY_DEFAULTS),
    table: &[
        ("spec", &[Rule::Struct(SPEC), Rule::Check(|spec, errors| drop(variables(spec, errors)))]),
        ("spec.matchConstraints", &[Rule::Check(mutable)]),
        ("spec.mutations", &[Rule::RequiredAs("mutations must contain at least one item")]),
        ("spec.mutations[]", &[Rule::Check(mutation)]),
        ("spec.reinvocationPolicy", &[Rule::Required, Rule::OneOf(&["IfNeeded", "Never"])]),
    ],
    ..POLICY
};

pub(super) const VALIDATING_BINDING: StrategyRow = StrategyRow {
    defaults: |object| edit::fill_all(object, BINDING_DEFAULTS),
    table: &[("spec", &[Rule::Struct(BINDING)]), ("spec.validationActions", &[Rule::Check(actions)])],
    ..POLICY
};

pub(super) const MUTATING_BINDING: StrategyRow = StrategyRow {
    defaults: |object| edit::fill_all(object, BINDING_DEFAULTS),
    table: &[("spec", &[Rule::Struct(BINDING)]), ("spec.matchResources", &[Rule::Check(mutable)])],
    ..POLICY
};

const POLICY_DEFAULTS: &[Fill] = &[
    ("spec", "failurePolicy", Str("Fail")),
    ("spec.matchConstraints", "matchPolicy", Str("Equivalent")),
    ("spec.matchConstraints", "namespaceSelector", EmptyObject),
    ("spec.matchConstraints", "objectSelector", EmptyObject),
    ("spec.matchConstraints.resourceRules|excludeResourceRules[]", "scope", Str("*")),
];

const BINDING_DEFAULTS: &[Fill] = &[
    ("spec.matchResources", "matchPolicy", Str("Equivalent")),
    ("spec.matchResources", "namespaceSelector", EmptyObject),
    ("spec.matchResources", "objectSelector", EmptyObject),
    ("spec.matchResources.resourceRules|excludeResourceRules[]", "scope", Str("*")),
];

/// Fields that validating and mutating policies share.
const SPEC: RuleTable = &[
    ("failurePolicy", &[Rule::Present(""), Rule::Enum(&["Fail", "Ignore"])]),
    ("paramKind", &[Rule::Pointer(PARAM_KIND)]),
    (
        "matchConstraints",
        &[
            Rule::Present(""),
            Rule::Struct(MATCH_RESOURCES),
            Rule::Struct(&[("resourceRules", &[Rule::Required])]),
        ],
    ),
    (
        "",
        &[Rule::Check(|spec, errors| {
            match_conditions(&spec.at("matchConditions"), spec.at("paramKind").is_set(), errors);
        })],
    ),
];

const PARAM_KIND: RuleTable = &[
    ("apiVersion", &[Rule::Required, Rule::Check(api_version)]),
    ("kind", &[Rule::Required, Rule::Format(names::mixed_case_label)]),
];

/// Checks the variables and returns the environment of expressions that can use them. A variable sees those before it.
fn variables(spec: &Cursor<'_>, errors: &mut Errors) -> CelEnvironment {
    let base = CelEnvironment::admission(spec.at("paramKind").is_set(), true);
    let mut fields = Vec::new();
    let list = spec.at("variables");
    for variable in list.items() {
        let name = variable.at("name");
        if name.text().trim().is_empty() {
            errors.push(name.missing("name is not specified"));
        } else if !is_cel_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        let environment = base.clone().with_variables(&fields);
        let text = variable.at("expression");
        let ty = compile(&environment, CelRequiredType::Any, &text, "expression is not specified", errors);
        fields.push((name.text().to_owned(), ty));
    }
    if fields.is_empty() { base } else { base.with_variables(&fields) }
}

fn is_cel_identifier(name: &str) -> bool {
    names::c_identifier(name).is_empty() && !is_reserved_in_cel(name)
}

fn api_version(version: &Cursor<'_>, errors: &mut Errors) {
    let text = version.text();
    let invalid_value = |value: &str, detail: String| {
        FieldError::new(FieldErrorKind::Invalid, version.path(), Some(value.into()), detail)
    };
    let (group, number) = match text.matches('/').count() {
        0 => ("", text),
        1 => text.split_once('/').unwrap_or_default(),
        _ => {
            errors.push(version.invalid(format!("unexpected GroupVersion string: {text}")));
            return;
        }
    };
    let wrong = names::dns_subdomain(group);
    if !group.is_empty() && !wrong.is_empty() {
        errors.push(invalid_value(group, wrong.join(",")));
    }
    let wrong = names::dns_1035_label(number);
    if number.is_empty() {
        errors.push(version.invalid("version must be specified"));
    } else if !wrong.is_empty() {
        errors.push(invalid_value(number, wrong.join(",")));
    }
}

/// Checks the variables, the validations and the audit annotations of a validating policy.
fn expressions(object: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.at("metadata"), object.at("spec"));
    let environment = variables(&spec, errors);
    let (validations, annotations) = (spec.at("validations"), spec.at("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for list in [&validations, &annotations] {
            errors.push(list.missing("validations or auditAnnotations must contain at least one item"));
        }
        return;
    }
    for validation in validations.items() {
        let text = validation.at("expression");
        compile(&environment, CelRequiredType::Bool, &text, "expression is not specified", errors);
        message_expression(&validation.at("messageExpression"), &environment, errors);
        table::check(VALIDATION, &validation, errors);
    }
    if annotations.items().count() > 20 {
        errors.push(annotations.invalid("must not have more than 20 auditAnnotations"));
    }
    let mut seen = BTreeSet::new();
    for annotation in annotations.items() {
        audit_annotation(&annotation, metadata.at("name"), &environment, errors);
        let key = annotation.at("key");
        if !seen.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
}

const VALIDATION: RuleTable = &[
    (
        "message",
        &[
            Rule::Check(not_blank),
            Rule::Check(|message, errors| {
                if message.text().trim().contains(['\n', '\r']) {
                    errors.push(message.invalid("must not contain line breaks"));
                }
            }),
        ],
    ),
    (
        "reason",
        &[Rule::Check(|reason, errors| {
            const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
            // `Unauthorized` was a reason in older versions and is no longer valid.
            if reason.is_set() && !REASONS.contains(&reason.text()) {
                errors.push(reason.unsupported(&REASONS));
            }
        })],
    ),
];

fn not_blank(text: &Cursor<'_>, errors: &mut Errors) {
    if !text.is_empty() && text.text().trim().is_empty() {
        errors.push(text.invalid("must be non-empty if specified"));
    }
}

/// Checks an expression that produces a message.
fn message_expression(text: &Cursor<'_>, environment: &CelEnvironment, errors: &mut Errors) {
    not_blank(text, errors);
    if !text.text().trim().is_empty() {
        let environment = environment.clone().without_authorizer();
        compile(&environment, CelRequiredType::String, text, "", errors);
    }
}

fn audit_annotation(
    annotation: &Cursor<'_>,
    policy: Cursor<'_>,
    environment: &CelEnvironment,
    errors: &mut Errors,
) {
    const LENGTH: usize = 5 * 1024;
    let (key, value) = (annotation.at("key"), annotation.at("valueExpression"));
    if policy.is_empty() {
        errors.push(key.invalid("requires metadata.name be non-empty"));
    } else {
        let full = format!("{}/{}", policy.text(), key.text());
        errors.extend(names::qualified(&full).into_iter().map(|detail| {
            FieldError::new(FieldErrorKind::Invalid, key.path(), Some(full.as_str().into()), detail)
        }));
    }
    if value.text().trim().len() > LENGTH {
        errors.push(value.missing(format!("must not exceed {LENGTH} bytes in length")));
    } else {
        compile(
            environment,
            CelRequiredType::StringOrNull,
            &value,
            "valueExpression is not specified",
            errors,
        );
    }
}

/// Rejects delete operations, which have nothing to mutate. Paths of errors have no indices.
fn mutable(matched: &Cursor<'_>, errors: &mut Errors) {
    const OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let rules = matched.at("resourceRules");
    let reported = rules.at("operations");
    for rule in rules.items() {
        for operation in rule.at("operations").items() {
            if !OPERATIONS.contains(&operation.text()) {
                let mut error = reported.unsupported(&OPERATIONS);
                error.bad_value = Some(operation.value.clone());
                errors.push(error);
            }
        }
    }
}

fn mutation(mutation: &Cursor<'_>, errors: &mut Errors) {
    let kind = mutation.at("patchType");
    let (expected, other) = match kind.text() {
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "" => {
            errors.push(kind.missing(""));
            return;
        }
        _ => {
            errors.push(kind.unsupported(&["ApplyConfiguration", "JSONPatch"]));
            return;
        }
    };
    let patch = mutation.at(expected);
    if patch.is_set() {
        expression(&patch.at("expression"), "", errors);
    } else {
        errors.push(patch.missing(format!("must be specified when patchType is {}", kind.text())));
    }
    if mutation.at(other).is_set() {
        let mut error =
            mutation.at(other).invalid(format!("must not be specified when patchType is {}", kind.text()));
        error.bad_value = Some(format!("{{{other}}}").into());
        errors.push(error);
    }
}

const BINDING: RuleTable = &[
    ("policyName", &[Rule::Required, Rule::Format(names::dns_subdomain)]),
    ("paramRef", &[Rule::Pointer(PARAM_REF)]),
    ("matchResources", &[Rule::Pointer(MATCH_RESOURCES)]),
];

const PARAM_REF: RuleTable = &[
    ("name", &[Rule::Format(names::path_segment)]),
    ("selector", &[Rule::LabelSelector]),
    (
        "",
        &[Rule::Check(|reference, errors| {
            let (name, selector) = (reference.at("name"), reference.at("selector"));
            match (name.is_empty(), selector.is_set()) {
                (false, true) => {
                    for member in [&name, &selector] {
                        errors.push(member.forbidden("name and selector are mutually exclusive"));
                    }
                }
                (true, false) => errors.push(reference.missing("one of name or selector must be specified")),
                _ => {}
            }
        })],
    ),
    ("parameterNotFoundAction", &[Rule::Required, Rule::OneOf(&["Deny", "Allow"])]),
];

fn actions(actions: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        if !matches!(action.text(), "Audit" | "Deny" | "Warn") {
            errors.push(action.unsupported(&["Audit", "Deny", "Warn"]));
        }
        if !seen.insert(action.text().to_owned()) {
            errors.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        errors.push(actions.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        ));
    }
    if seen.is_empty() {
        errors.push(actions.missing("at least one validation action is required"));
    }
}
