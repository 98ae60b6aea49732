//! `DaemonSet`.

use serde_json::Value;

use super::{
    super::row::StrategyRow, CONDITION_TIMES, WORKLOAD, rolling, status, template, template_defaults,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr},
    },
    table::{
        self,
        Rule::{AtLeast, AtMostAll, Check, Immutable, IntOrPercent, Struct},
        RuleTable,
    },
};

/// The annotation that counts changes of the template. Clients cannot set it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) const DAEMON_SET: StrategyRow = StrategyRow {
    defaults: |object| {
        edit::object(object, "spec");
        edit::fill_all(
            object,
            &[("spec", "updateStrategy", EmptyObject), ("spec", "revisionHistoryLimit", IntPtr(10))],
        );
        rolling(object, "updateStrategy", &[("", "maxUnavailable", IntPtr(1)), ("", "maxSurge", IntPtr(0))]);
        template_defaults(object);
        // The annotation is part of the API form of the object, so the writer of the object manages it.
        let given = template_generation(object).unwrap_or(0);
        set_template_generation(object, given);
    },
    zeros: &[
        ("", "status", EmptyObject),
        ("status", "currentNumberScheduled", IntPtr(0)),
        ("status", "numberMisscheduled", IntPtr(0)),
        ("status", "desiredNumberScheduled", IntPtr(0)),
        ("status", "numberReady", IntPtr(0)),
        CONDITION_TIMES,
    ],
    prepare_create: |object| {
        let given = template_generation(object).unwrap_or(0);
        set_template_generation(object, given.max(1));
    },
    prepare_update: |object, old| {
        let pointer = "/spec/template";
        let [new_template, old_template] =
            [&*object, old].map(|object| object.pointer(pointer).unwrap_or(&Value::Null));
        let is_changed = !edit::is_same(new_template, old_template);
        let generation = template_generation(old).unwrap_or(0);
        set_template_generation(object, generation + i64::from(is_changed));
    },
    prepare_status: |object, old| set_template_generation(object, template_generation(old).unwrap_or(0)),
    table: &[("spec", &[Struct(SPEC)])],
    status_table: &[("status", &[Struct(status::DAEMON_SET)])],
    ..WORKLOAD
};

const SPEC: RuleTable = &[
    ("selector", &[Immutable]),
    ("", &[Check(selected_template)]),
    ("minReadySeconds", &[AtLeast(0)]),
    ("updateStrategy", &[Check(strategy)]),
    ("revisionHistoryLimit", &[AtLeast(0)]),
];

const PACE: RuleTable = &[
    ("maxUnavailable", &[IntOrPercent]),
    ("maxSurge", &[IntOrPercent]),
    ("maxUnavailable", &[AtMostAll]),
    ("maxSurge", &[AtMostAll]),
    ("", &[Check(one_of_unavailable_and_surge)]),
];

fn template_generation(object: &Value) -> Option<i64> {
    object.get("metadata")?.get("annotations")?.get(TEMPLATE_GENERATION)?.as_str()?.parse().ok()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(annotations) = edit::object_at(object, &["metadata", "annotations"]) {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

/// Checks the selector, which upstream does not require, and the template.
fn selected_template(spec: &Cursor<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    let own = template.at("metadata");
    let labels = own.at("labels");
    if let template::SelectorMatch::Mismatch = template::selector(&selector, &labels, errors) {
        template::report_mismatch(&labels, errors);
    }
    if template::is_empty(&selector) {
        errors.push(selector.invalid("empty selector is invalid for daemonset"));
    }
    super::pod::template(&template, errors);
    template::always_running(&template, "DaemonSet", errors);
}

fn strategy(strategy: &Cursor<'_>, errors: &mut Errors) {
    let update = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if !update.is_set() => errors.push(update.missing("")),
        "RollingUpdate" => table::check(PACE, &update, errors),
        _ => errors.push(strategy.unsupported(&["RollingUpdate", "OnDelete"])),
    }
}

/// Checks that exactly one of `maxUnavailable` and `maxSurge` is not zero.
fn one_of_unavailable_and_surge(update: &Cursor<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (update.at("maxUnavailable"), update.at("maxSurge"));
    match (table::number_or_percent(&unavailable) != 0, table::number_or_percent(&surge) != 0) {
        (true, true) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
        (false, false) => errors.push(unavailable.missing("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}
