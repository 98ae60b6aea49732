//! Resource quotas and limit ranges.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    resource_name,
    row::{PLAIN, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{self, DefaultValue::EmptyObject, Members},
    names,
    quantity::{self, Quantity},
    table::{Rule, RuleTable},
};

pub(super) const RESOURCE_QUOTA: StrategyRow = StrategyRow {
    delete_returns_object: true,
    status: Some(|| None),
    defaults: |object| edit::each(object, "spec|status.hard|used", &mut quantity::canonicalize),
    zeros: &[("", "spec", EmptyObject), ("", "status", EmptyObject)],
    table: QUOTA,
    status_table: &[("status.hard|used", &[Rule::Check(quota_amounts)])],
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        let (scopes, old_scopes) = (spec.at("scopes"), old.at("scopes"));
        let set =
            |list: &Cursor<'_>| list.items().map(|scope| scope.text().to_owned()).collect::<BTreeSet<_>>();
        if set(&scopes) != set(&old_scopes) {
            errors.push(scopes.invalid("field is immutable"));
        }
    },
    warnings: |object, old| if old.is_none() { quota_warnings(object) } else { Vec::new() },
    ..PLAIN
};

const QUOTA: RuleTable = &[
    ("spec.hard", &[Rule::Check(quota_amounts)]),
    ("spec", &[Rule::Check(scopes), Rule::Check(scope_selector)]),
];

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

/// The pairs of scopes that exclude each other.
const OPPOSITES: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

const COMPUTE: [&str; 6] =
    ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

fn quota_amounts(amounts: &Cursor<'_>, errors: &mut Errors) {
    for (name, amount) in amounts.entries() {
        resource_name::check_of_quota(name, &amount, errors);
        resource_name::check_amount(name, &amount, errors);
    }
}

/// Returns whether a quota with `scope` can count the resource `name`.
fn counts(scope: &str, name: &str) -> bool {
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => name == "pods" || COMPUTE.contains(&name),
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

/// Returns the number of resources of the quota that cannot be counted with `scope`.
fn uncountable(spec: &Cursor<'_>, scope: &str) -> usize {
    let hard = spec.at("hard");
    hard.entries().filter(|(name, _)| resource_name::is_standard_quota(name) && !counts(scope, name)).count()
}

fn conflicts(used: &BTreeSet<String>) -> usize {
    OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| used.contains(*scope))).count()
}

fn scopes(spec: &Cursor<'_>, errors: &mut Errors) {
    let scopes = spec.at("scopes");
    let mut used = BTreeSet::new();
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            errors.push(scopes.invalid("unsupported scope"));
        }
        for _ in 0..uncountable(spec, scope.text()) {
            errors.push(scopes.invalid("unsupported scope applied to resource"));
        }
        used.insert(scope.text().to_owned());
    }
    errors.extend((0..conflicts(&used)).map(|_| scopes.invalid("conflicting scopes")));
}

/// Checks the requirements on scopes. Paths of errors have no index.
fn scope_selector(spec: &Cursor<'_>, errors: &mut Errors) {
    let selector = spec.at("scopeSelector");
    let list = selector.at("matchExpressions");
    let at = |member: &str, value: &Cursor<'_>, detail: &str| {
        let mut error = list.at(member).invalid(detail);
        error.bad_value = Some(value.value.clone());
        error
    };
    let mut used = BTreeSet::new();
    for requirement in list.items() {
        let (scope, operator) = (requirement.at("scopeName"), requirement.at("operator"));
        let values = requirement.at("values");
        if !SCOPES.contains(&scope.text()) {
            errors.push(at("scopeName", &scope, "unsupported scope"));
        }
        for _ in 0..uncountable(spec, scope.text()) {
            errors.push(list.invalid("unsupported scope applied to resource"));
        }
        let has_classes = matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass");
        if SCOPES.contains(&scope.text()) && !has_classes && operator.text() != "Exists" {
            errors.push(at(
                "operator",
                &operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            ));
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(list.at("values").missing(
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                ));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(at(
                "values",
                &values,
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(at("operator", &operator, "not a valid selector operator")),
        }
        used.insert(scope.text().to_owned());
    }
    errors.extend((0..conflicts(&used)).map(|_| list.invalid("conflicting scopes")));
}

/// Returns the warnings about a quota whose amount for requests exceeds the one for limits, and so cannot be used up.
fn quota_warnings(object: &Value) -> Vec<String> {
    let hard = object.get("spec").and_then(|spec| spec.get("hard"));
    let amount = |name: &str| hard.and_then(|hard| hard.get(name)).and_then(Quantity::from_value);
    let mut warnings = Vec::new();
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (limit_name, mut request_name) = (format!("limits.{name}"), format!("requests.{name}"));
        let mut request = amount(&request_name);
        if request.is_none() && matches!(name, "cpu" | "memory") {
            request = amount(name);
            name.clone_into(&mut request_name);
        }
        if let (Some(request), Some(limit)) = (request, amount(&limit_name))
            && request > limit
        {
            let (request, limit) = (request.canonical(), limit.canonical());
            warnings.push(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
    warnings
}

pub(super) const LIMIT_RANGE: StrategyRow = StrategyRow {
    creates_on_update: true,
    defaults: |object| edit::each(object, "spec.limits[]", &mut limit_defaults),
    zeros: &[("", "spec", EmptyObject)],
    // A limit range without a name gets a random one.
    prepare_create: |object| {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(metadata) = edit::object(object, "metadata")
            && edit::text(metadata, "name").is_empty()
            && !uid.is_empty()
        {
            metadata.insert("name".to_owned(), uid.into());
        }
    },
    table: &[("spec.limits", &[Rule::Check(limits)])],
    ..PLAIN
};

fn limit_defaults(limit: &mut Members) {
    for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if let Some(Value::Object(amounts)) = limit.get_mut(list) {
            quantity::canonicalize(amounts);
        }
    }
    if edit::text(limit, "type") != "Container" {
        return;
    }
    for (target, sources) in [("default", &["max"][..]), ("defaultRequest", &["default", "min"][..])] {
        for source in sources {
            let Some(Value::Object(amounts)) = limit.get(*source).cloned() else { continue };
            let members = limit.entry(target).or_insert_with(|| json!({}));
            if let Value::Object(members) = members {
                for (name, amount) in amounts {
                    members.entry(name).or_insert(amount);
                }
            }
        }
    }
}

fn limits(limits: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for limit in limits.items() {
        let kind = limit.at("type");
        limit_type(&kind, errors);
        if !seen.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate());
        }
        let is_of_pods = kind.text() == "Pod";
        let mut resources = BTreeSet::new();
        for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            let amounts = limit.at(list);
            if is_of_pods && list.starts_with("default") {
                if !amounts.is_empty() {
                    errors.push(amounts.forbidden("may not be specified when `type` is 'Pod'"));
                }
                continue;
            }
            if list == "maxLimitRequestRatio" && kind.text() == "PersistentVolumeClaim" {
                storage_bounds(&limit, errors);
            }
            for (name, amount) in amounts.entries() {
                if matches!(kind.text(), "Pod" | "Container") {
                    resource_name::check_of_container(name, &amount, errors);
                } else {
                    resource_name::check(name, &amount, errors);
                }
                resources.insert(name.to_owned());
            }
        }
        for name in &resources {
            bounds(&limit, name, is_of_pods, errors);
        }
    }
}

fn limit_type(kind: &Cursor<'_>, errors: &mut Errors) {
    let wrong = names::qualified(kind.text());
    if !wrong.is_empty() {
        errors.extend(wrong.into_iter().map(|detail| kind.invalid(detail)));
    } else if !kind.text().contains('/')
        && !matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim")
    {
        errors.push(kind.invalid("must be a standard limit type or fully qualified"));
    }
}

fn storage_bounds(limit: &Cursor<'_>, errors: &mut Errors) {
    if !limit.at("min").key("storage").is_set() && !limit.at("max").key("storage").is_set() {
        errors.push(
            limit
                .at("limits")
                .missing("either minimum or maximum storage value is required, but neither was provided"),
        );
    }
}

/// The pairs of amounts of which the first must not exceed the second: the lists, the location of the error, and the names
/// in the error.
const ORDER: [(&str, &str, &str, &str, &str); 6] = [
    ("min", "max", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "min value", "default request value"),
    ("defaultRequest", "max", "defaultRequest", "default request value", "max value"),
    ("defaultRequest", "default", "defaultRequest", "default request value", "default limit value"),
    ("min", "default", "default", "min value", "default value"),
    ("default", "max", "default", "default value", "max value"),
];

fn bounds(limit: &Cursor<'_>, name: &str, is_of_pods: bool, errors: &mut Errors) {
    let amount = |list: &str| {
        let is_ignored = is_of_pods && list.starts_with("default");
        (!is_ignored).then(|| Quantity::from_value(limit.at(list).key(name).value)).flatten()
    };
    for (low, high, reported, low_name, high_name) in ORDER {
        if let (Some(low), Some(high)) = (amount(low), amount(high))
            && low > high
        {
            let detail =
                format!("{low_name} {} is greater than {high_name} {}", low.canonical(), high.canonical());
            errors.push(limit.at(reported).key(name).invalid(detail));
        }
    }
    let ratios = limit.at("maxLimitRequestRatio");
    let ratio_at = ratios.key(name);
    if let Some(ratio) = amount("maxLimitRequestRatio") {
        if ratio.to_f64() < 1.0 {
            errors.push(ratio_at.invalid(format!("ratio {} is less than 1", ratio.canonical())));
        }
        if let (Some(low), Some(high)) = (amount("min"), amount("max")) {
            let most = high.to_f64() / low.to_f64();
            if ratio.to_f64() > most {
                errors.push(
                    ratio_at
                        .invalid(format!("ratio {} is greater than max/min = {most:.6}", ratio.canonical())),
                );
            }
        }
    }
    if let (Some(default), Some(request)) = (amount("default"), amount("defaultRequest"))
        && !resource_name::is_overcommit_allowed(name)
        && default != request
    {
        let (default, request) = (default.canonical(), request.canonical());
        let detail =
            format!("default value {default} must equal to defaultRequest value {request} in {name}");
        errors.push(limit.at("defaultRequest").key(name).invalid(detail));
    }
}
