//! Events and service accounts.

use serde_json::{Value, json};

use super::row::{PLAIN, StrategyRow};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        edit::{
            self,
            DefaultValue::{EmptyObject, Null, Str},
        },
        names::{self, NameRule},
    },
};

const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) const SERVICE_ACCOUNT: StrategyRow = StrategyRow {
    delete_returns_object: true,
    prepare_create: keep_secret_names_only,
    prepare_update: |object, _| keep_secret_names_only(object),
    warnings: |object, old| {
        let has = |object: &Value| {
            let annotations = object.pointer("/metadata/annotations");
            annotations.is_some_and(|annotations| annotations.get(MOUNTABLE_SECRETS).is_some())
        };
        if has(object) && !old.is_some_and(has) {
            return vec![format!(
                "metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
            )];
        }
        Vec::new()
    },
    ..PLAIN
};

/// Removes everything but the names from the secret references of a service account.
fn keep_secret_names_only(object: &mut Value) {
    edit::each(object, "secrets[]", &mut |secret| secret.retain(|member, _| member == "name"));
}

pub(super) const EVENT: StrategyRow = StrategyRow {
    names: NameRule::PathSegment,
    creates_on_update: true,
    qualifies_finalizers: false,
    zeros: &[
        ("", "involvedObject", EmptyObject),
        ("", "source", EmptyObject),
        ("", "firstTimestamp", Null),
        ("", "lastTimestamp", Null),
        ("", "eventTime", Null),
        ("", "reportingComponent", Str("")),
        ("", "reportingInstance", Str("")),
    ],
    validate: |object, errors| event(object, &EVENT_FIELDS, errors),
    ..PLAIN
};

pub(super) const NEW_EVENT: StrategyRow = StrategyRow {
    names: NameRule::Subdomain,
    qualifies_finalizers: true,
    zeros: &[
        ("", "eventTime", Null),
        ("", "deprecatedSource", EmptyObject),
        ("", "deprecatedFirstTimestamp", Null),
        ("", "deprecatedLastTimestamp", Null),
        ("", "regarding", EmptyObject),
    ],
    validate: |object, errors| event(object, &NEW_EVENT_FIELDS, errors),
    validate_create: create_new_event,
    validate_update: update_new_event,
    ..EVENT
};

/// The members of the new form of events, and their names in errors. A change of any is rejected.
const CONSTANT: [(&str, &str); 13] = [
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

/// The members of the old form that the new form must not have.
const UNSET: [(&str, &str); 4] = [
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
];

/// Returns an error of an event without the value, as events do.
fn without_value(path: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, path, Some("".into()), detail)
}

fn create_new_event(object: &Cursor<'_>, errors: &mut Errors) {
    series(object, errors);
    let time = object.at("eventTime");
    if !time.is_set() {
        errors.push(time.missing(""));
    }
    let kind = object.at("type").text();
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(without_value("type", format!("has invalid value: {kind}")));
    }
    for (member, reported) in UNSET {
        let value = object.at(member);
        let is_zero = value.is_empty() || value.int() == Some(0);
        if !is_zero {
            errors.push(without_value(reported, "needs to be unset"));
        }
    }
}

fn series(object: &Cursor<'_>, errors: &mut Errors) {
    let series = object.at("series");
    if !series.is_set() {
        return;
    }
    if series.at("count").int().unwrap_or(0) < 2 {
        errors.push(without_value("series.count", "should be at least 2"));
    }
    let observed = series.at("lastObservedTime");
    if !observed.is_set() {
        errors.push(observed.missing(""));
    }
}

fn update_new_event(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    if object.at("series").value != old.at("series").value {
        series(object, errors);
    }
    for (member, reported) in CONSTANT {
        let start = errors.len();
        object.at(member).immutable(&old.at(member), errors);
        for error in errors.iter_mut().skip(start) {
            reported.clone_into(&mut error.path);
        }
    }
}

/// The names of members that differ between the two forms of events.
struct EventFields {
    about: &'static str,
    controller: &'static str,
    note: &'static str,
}

const EVENT_FIELDS: EventFields =
    EventFields { about: "involvedObject", controller: "reportingComponent", note: "message" };
const NEW_EVENT_FIELDS: EventFields =
    EventFields { about: "regarding", controller: "reportingController", note: "note" };

fn event(object: &Cursor<'_>, fields: &EventFields, errors: &mut Errors) {
    let metadata = object.at("metadata");
    let home = metadata.at("namespace").text();
    let about = object.at(fields.about);
    let namespace = about.at("namespace");
    let has_time = object.at("eventTime").is_set();
    let fits = match namespace.text() {
        "" if has_time => matches!(home, "default" | "kube-system"),
        "" => matches!(home, "" | "default"),
        // New events may refer to another namespace than their own.
        other => has_time || other == home,
    };
    if !fits {
        let mut error = namespace.invalid("does not match event.namespace");
        // Both forms report the path of the old one.
        "involvedObject.namespace".clone_into(&mut error.path);
        error.bad_value = Some(json!(namespace.text()));
        errors.push(error);
    }
    if !has_time {
        return;
    }
    let controller = object.at(fields.controller);
    if controller.is_empty() {
        errors.push(controller.missing(""));
    }
    errors.extend(names::qualified(controller.text()).into_iter().map(|detail| controller.invalid(detail)));
    for member in ["reportingInstance", "action", "reason"] {
        let text = object.at(member);
        text.required(errors);
        if text.text().len() > 128 {
            errors.push(without_value(member, "can have at most 128 characters"));
        }
    }
    if object.at(fields.note).text().len() > 1024 {
        errors.push(without_value("message", "can have at most 1024 characters"));
    }
}
