//! Devices: the offers of drivers on nodes, and claims for them.

mod claim;
mod quantity;
mod slice;

use serde_json::Value;

use super::{
    condition, resource_name,
    row::{CLUSTER, PLAIN, StatusMetadata, StrategyRow},
    storage::DRIVER_NAME,
};
use crate::{
    crd::{CelEnvironment, CelRequiredType},
    strategy::{
        Part,
        cursor::{Cursor, Errors},
        edit::{self, DefaultValue::EmptyObject},
        metadata, names,
        table::{self, Rule, RuleTable},
    },
};

/// Returns the row of a kind of the group `resource.k8s.io`.
pub(super) fn find(kind: &str) -> Option<StrategyRow> {
    Some(match kind {
        "ResourceClaim" => claim::RESOURCE_CLAIM,
        "ResourceClaimTemplate" => claim::RESOURCE_CLAIM_TEMPLATE,
        "ResourceSlice" => slice::RESOURCE_SLICE,
        "DeviceClass" => DEVICE_CLASS,
        "DeviceTaintRule" => DEVICE_TAINT_RULE,
        _ => return None,
    })
}

const DEVICE_CLASS: StrategyRow = StrategyRow {
    delete_returns_object: true,
    generation: &["spec"],
    zeros: &[("", "spec", EmptyObject)],
    table: &[
        ("spec.selectors", &[Rule::MaxItems(32)]),
        ("spec.selectors[]", &[Rule::Struct(SELECTOR)]),
        ("spec.config", &[Rule::MaxItems(32)]),
        ("spec.config[]", &[Rule::Struct(CONFIGURATION)]),
        (
            "spec.extendedResourceName",
            &[Rule::Check(|name, errors| {
                if name.is_set() && !resource_name::is_extended(name.text()) {
                    errors.push(name.invalid("must be a valid extended resource name"));
                }
            })],
        ),
    ],
    ..CLUSTER
};

const DEVICE_TAINT_RULE: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    generation: &["spec"],
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    zeros: &[("", "status", EmptyObject)],
    timed_defaults: |object, now| date_taints(object, "spec.taint", now),
    set_request_fields: |part, object, old, context| {
        let effect = |object: &Value| object.pointer("/spec/taint/effect").cloned();
        let time = |object: &Value| object.pointer("/spec/taint/timeAdded").cloned();
        if part == Part::Main
            && let Some(old) = old
            && effect(object) != effect(old)
            && time(object) == time(old)
        {
            edit::each(object, "spec.taint", &mut |taint| {
                taint.insert("timeAdded".to_owned(), context.now.into());
            });
        }
    },
    table: &[
        (
            "spec.deviceSelector",
            &[Rule::Pointer(&[
                ("driver", &[Rule::Check(|name, errors| if_set(DRIVER_NAME, name, errors))]),
                ("pool", &[Rule::Check(|name, errors| if_set(&[Rule::Check(pool_name)], name, errors))]),
                (
                    "device",
                    &[Rule::Check(|name, errors| {
                        if_set(&[Rule::EvenEmpty(names::dns_label)], name, errors);
                    })],
                ),
            ])],
        ),
        ("spec.taint", &[Rule::Struct(TAINT)]),
    ],
    status_table: &[("status.conditions", &[Rule::Check(condition::conditions), Rule::MaxItems(8)])],
    ..CLUSTER
};

/// Applies rules to an optional string. A present empty string is checked.
fn if_set(rules: &'static [Rule], at: &Cursor<'_>, errors: &mut Errors) {
    if at.is_set() {
        table::check_rules(rules, at, errors);
    }
}

/// Fills in when taints at `path` were added.
fn date_taints(object: &mut Value, path: &str, now: &dyn Fn() -> String) {
    edit::each(object, path, &mut |taint| {
        if taint.get("timeAdded").is_none_or(Value::is_null) {
            taint.insert("timeAdded".to_owned(), now().into());
        }
    });
}

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// The rules of a device taint.
const TAINT: RuleTable = &[
    ("key", &[Rule::EvenEmpty(names::qualified)]),
    ("value", &[Rule::Format(names::label_value)]),
    ("effect", &[Rule::Required, Rule::OneOf(&EFFECTS)]),
];

/// The rules of a toleration of a device taint.
const TOLERATION: RuleTable = &[
    ("key", &[Rule::Format(names::qualified)]),
    ("operator", &[Rule::Required, Rule::OneOf(&["Equal", "Exists"])]),
    (
        "",
        &[Rule::Check(|toleration, errors| {
            let value = toleration.at("value");
            match toleration.at("operator").text() {
                "Exists" if !value.is_empty() => {
                    errors.push(value.invalid("must be empty for operator `Exists`"));
                }
                "Equal" => value.format(names::label_value, errors),
                _ => {}
            }
        })],
    ),
    ("effect", &[Rule::OneOf(&EFFECTS)]),
];

/// The rules of a device selector in CEL.
const SELECTOR: RuleTable =
    &[("cel", &[Rule::Present(""), Rule::Struct(&[("expression", &[Rule::Check(cel_expression)])])])];

fn cel_expression(expression: &Cursor<'_>, errors: &mut Errors) {
    const LENGTH: usize = 10 * 1024;
    if expression.text().len() > LENGTH {
        errors.push(metadata::too_long(expression, LENGTH));
    } else if let Err(problem) = CelEnvironment::device().compile(expression.text(), CelRequiredType::Bool) {
        errors.push(expression.invalid(problem));
    }
}

/// The rules of a device configuration for a driver.
const CONFIGURATION: RuleTable = &[(
    "opaque",
    &[
        Rule::Present(""),
        Rule::Struct(&[("driver", DRIVER_NAME), ("parameters", &[Rule::Check(raw_object)])]),
    ],
)];

/// Checks that opaque JSON is an object of limited size.
fn raw_object(raw: &Cursor<'_>, errors: &mut Errors) {
    const LENGTH: usize = 10 * 1024;
    if !raw.is_set() {
        errors.push(raw.missing(""));
    } else if raw.value.to_string().len() > LENGTH {
        errors.push(metadata::too_long(raw, LENGTH));
    } else if !raw.value.is_object() {
        let mut error = raw.invalid("must be a valid JSON object");
        error.bad_value = Some("<value omitted>".into());
        errors.push(error);
    }
}

/// Checks the name of a pool: subdomains separated by slashes.
fn pool_name(name: &Cursor<'_>, errors: &mut Errors) {
    if !name.required(errors) {
        return;
    }
    if name.text().len() > 253 {
        errors.push(metadata::too_long(name, 253));
    }
    for part in name.text().split('/') {
        errors.extend(names::dns_subdomain(part).into_iter().map(|detail| name.invalid(detail)));
    }
}

/// Checks the name of an attribute or a capacity: an identifier with an optional domain. Errors are reported at `at`.
fn qualified_name(name: &str, at: &Cursor<'_>, errors: &mut Errors) {
    let invalid_value = |value: &str, detail: String| {
        let mut error = at.invalid(detail);
        error.bad_value = Some(value.into());
        error
    };
    let (domain, identifier) = match name.split_once('/') {
        Some((_, rest)) if rest.contains('/') => return,
        Some((domain, identifier)) => (Some(domain), identifier),
        None => (None, name),
    };
    match domain {
        Some("") => errors.push(invalid_value("", "the domain must not be empty".to_owned())),
        Some(domain) => {
            if domain.len() > 63 {
                errors.push(metadata::too_long(at, 63));
            }
            errors.extend(
                names::caseless_subdomain(domain).into_iter().map(|detail| invalid_value(domain, detail)),
            );
        }
        None => {}
    }
    if domain.is_some() && identifier.is_empty() {
        errors.push(invalid_value("", "the name must not be empty".to_owned()));
        return;
    }
    if identifier.len() > 32 {
        errors.push(metadata::too_long(at, 32));
    }
    errors
        .extend(names::c_identifier(identifier).into_iter().map(|detail| invalid_value(identifier, detail)));
}

/// Checks a name that requires a domain.
fn fully_qualified_name(name: &Cursor<'_>, errors: &mut Errors) {
    if !name.is_set() {
        return;
    }
    qualified_name(name.text(), name, errors);
    if !name.text().contains('/') {
        errors.push(name.invalid("a fully qualified name must be a domain and a name separated by a slash"));
    }
}

/// Checks the binding conditions and binding failure conditions of a device.
fn binding_conditions(device: &Cursor<'_>, errors: &mut Errors) {
    let (bind, fail) = (device.at("bindingConditions"), device.at("bindingFailureConditions"));
    for list in [&bind, &fail] {
        table::check_rules(&[Rule::MaxItems(4), Rule::UniqueItems], list, errors);
        for condition in list.items() {
            let wrong = names::qualified(condition.text());
            errors.extend(wrong.into_iter().map(|detail| condition.invalid(detail)));
        }
    }
    for condition in fail.items() {
        if bind.items().any(|other| other.text() == condition.text()) {
            errors
                .push(condition.invalid("bindingFailureConditions must not overlap with bindingConditions"));
        }
    }
    match (bind.is_empty(), fail.is_empty()) {
        (true, false) => {
            errors.push(bind.invalid("bindingConditions are required to use bindingFailureConditions"));
        }
        (false, true) => {
            errors.push(fail.invalid("bindingFailureConditions are required to use bindingConditions"));
        }
        _ => {}
    }
}

/// The common row of resource claims and their templates.
const NAMESPACED: StrategyRow = StrategyRow { delete_returns_object: true, ..PLAIN };
