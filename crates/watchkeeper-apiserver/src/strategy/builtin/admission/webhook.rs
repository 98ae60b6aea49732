//! Webhook configurations.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::row::{CLUSTER, StrategyRow},
    not_static,
    rule::{RULE_WITH_OPERATIONS, match_conditions},
    static_warnings,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr, Str},
    },
    names,
    table::{self, Rule, RuleTable},
};

pub(super) const VALIDATING: StrategyRow = StrategyRow {
    generation: &["webhooks"],
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    defaults,
    validate_create: |object, errors| {
        webhooks(object, None, errors);
        not_static(object, errors);
    },
    validate_update: |object, old, errors| webhooks(object, Some(old), errors),
    warnings: static_warnings,
    ..CLUSTER
};

pub(super) const MUTATING: StrategyRow = StrategyRow {
    defaults: |object| {
        defaults(object);
        edit::fill_all(object, &[("webhooks[]", "reinvocationPolicy", Str("Never"))]);
    },
    ..VALIDATING
};

fn defaults(object: &mut Value) {
    edit::fill_all(
        object,
        &[
            ("webhooks[]", "failurePolicy", Str("Fail")),
            ("webhooks[]", "matchPolicy", Str("Equivalent")),
            ("webhooks[]", "namespaceSelector", EmptyObject),
            ("webhooks[]", "objectSelector", EmptyObject),
            ("webhooks[]", "timeoutSeconds", IntPtr(10)),
            ("webhooks[].rules[]", "scope", Str("*")),
            ("webhooks[].clientConfig.service", "port", IntPtr(443)),
        ],
    );
}

const WEBHOOK: RuleTable = &[
    ("name", &[Rule::Required, Rule::Format(names::fully_qualified)]),
    ("rules[]", &[Rule::Struct(RULE_WITH_OPERATIONS)]),
    ("failurePolicy", &[Rule::OneOf(&["Fail", "Ignore"])]),
    ("matchPolicy", &[Rule::OneOf(&["Equivalent", "Exact"])]),
];

const WEBHOOK_AFTER_EFFECTS: RuleTable = &[
    (
        "timeoutSeconds",
        &[Rule::Check(|seconds, errors| {
            if seconds.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
                errors.push(seconds.invalid("the timeout value must be between 1 and 30 seconds"));
            }
        })],
    ),
    ("namespaceSelector", &[Rule::LabelSelector]),
    ("objectSelector", &[Rule::LabelSelector]),
    ("reinvocationPolicy", &[Rule::OneOf(&["IfNeeded", "Never"])]),
    ("clientConfig", &[Rule::Check(client_config)]),
];

const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Returns whether the webhooks have no side effects. Older configurations may have some.
fn has_no_side_effects(object: &Cursor<'_>) -> bool {
    object.at("webhooks").items().all(|webhook| NO_SIDE_EFFECTS.contains(&webhook.at("sideEffects").text()))
}

fn has_supported_review_version(object: &Cursor<'_>) -> bool {
    object.at("webhooks").items().all(|webhook| {
        let versions = webhook.at("admissionReviewVersions");
        versions.is_empty() || versions.items().any(|version| REVIEW_VERSIONS.contains(&version.text()))
    })
}

fn has_unique_names(object: &Cursor<'_>) -> bool {
    let mut seen = BTreeSet::new();
    object.at("webhooks").items().all(|webhook| seen.insert(webhook.at("name").text().to_owned()))
}

/// Checks the webhooks. Rules that a stored configuration already violates do not apply to its updates.
fn webhooks(object: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let needs_quiet = old.is_none_or(has_no_side_effects);
    let needs_supported_version = old.is_none_or(has_supported_review_version);
    let needs_unique_names = old.is_none_or(has_unique_names);
    let conditions = |object: &Cursor<'_>| {
        let webhooks = object.at("webhooks");
        webhooks.items().map(|webhook| webhook.at("matchConditions").value.clone()).collect::<Vec<Value>>()
    };
    let checks_conditions = old.is_none_or(|old| conditions(old) != conditions(object));
    let mut seen = BTreeSet::new();
    for webhook in object.at("webhooks").items() {
        table::check(WEBHOOK, &webhook, errors);
        let effects = webhook.at("sideEffects");
        let allowed: &[&str] = if needs_quiet { &NO_SIDE_EFFECTS } else { &EFFECTS };
        if !effects.is_set() {
            errors.push(effects.missing(format!("must specify one of {}", allowed.join(", "))));
        } else if !allowed.contains(&effects.text()) {
            errors.push(effects.unsupported(allowed));
        }
        table::check(WEBHOOK_AFTER_EFFECTS, &webhook, errors);
        if checks_conditions {
            match_conditions(&webhook.at("matchConditions"), false, errors);
        }
        review_versions(&webhook.at("admissionReviewVersions"), needs_supported_version, errors);
        let name = webhook.at("name");
        if needs_unique_names && !name.is_empty() && !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

fn review_versions(versions: &Cursor<'_>, needs_supported: bool, errors: &mut Errors) {
    if versions.is_empty() {
        errors.push(versions.missing("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if seen.insert(version.text().to_owned()) {
            let wrong = names::dns_1035_label(version.text());
            errors.extend(wrong.into_iter().map(|detail| version.invalid(detail)));
        } else {
            errors.push(version.invalid("duplicate version"));
        }
    }
    if needs_supported && !REVIEW_VERSIONS.iter().any(|known| seen.contains(*known)) {
        errors.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

fn client_config(config: &Cursor<'_>, errors: &mut Errors) {
    let (url, service) = (config.at("url"), config.at("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => webhook_url(&url, errors),
        (false, true) => table::check(SERVICE, &service, errors),
        _ => errors.push(config.missing("exactly one of url or service is required")),
    }
}

fn webhook_url(url: &Cursor<'_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let invalid_value = |value: &str, detail: String| {
        let mut error = url.invalid(detail);
        error.bad_value = Some(value.into());
        error
    };
    let text = url.text();
    let is_invalid = |byte: u8| byte.is_ascii_control() || byte == b' ';
    if text.bytes().any(is_invalid) || text.starts_with(':') {
        errors.push(url.missing(format!("url must be a valid URL: parse {text:?}{FORM}")));
        return;
    }
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if !scheme.contains('/') => (scheme, rest),
        _ => ("", text),
    };
    let authority = rest.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority.unwrap_or_default().rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority.unwrap_or_default()),
    };
    if !scheme.eq_ignore_ascii_case("https") {
        errors.push(invalid_value(scheme, format!("'https' is the only allowed URL scheme{FORM}")));
    }
    if host.is_empty() {
        errors.push(invalid_value(host, format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        errors.push(invalid_value(user, "user information is not permitted in the URL".to_owned()));
    }
    if !fragment.is_empty() {
        errors.push(invalid_value(fragment, "fragments are not permitted in the URL".to_owned()));
    }
    if !query.is_empty() {
        errors.push(invalid_value(query, "query parameters are not permitted in the URL".to_owned()));
    }
}

// Upstream passes name and namespace in the wrong order, so a missing one is reported as the other.
const SERVICE: RuleTable = &[
    (
        "",
        &[Rule::Check(|service, errors| {
            if service.at("namespace").is_empty() {
                errors.push(service.at("name").missing(""));
            }
            if service.at("name").is_empty() {
                errors.push(service.at("namespace").missing(""));
            }
        })],
    ),
    ("port", &[Rule::InRange(1, 65535)]),
    ("path", &[Rule::Check(path)]),
];

fn path(path: &Cursor<'_>, errors: &mut Errors) {
    let text = path.text();
    match text {
        "" | "/" => return,
        "//" => {
            errors.push(path.invalid("segment[0] may not be empty"));
            return;
        }
        _ if !text.starts_with('/') => errors.push(path.invalid("must start with a '/'")),
        _ => {}
    }
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            errors.push(path.invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        errors.extend(
            names::dns_subdomain(step)
                .into_iter()
                .map(|detail| path.invalid(format!("segment[{index}]: {detail}"))),
        );
    }
}
