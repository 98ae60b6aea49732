//! The workload kinds of the group `apps`, and replication controllers.

mod daemon_set;
mod stateful_set;
mod status;
mod template;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub(super) use self::template::{SelectorMatch, report_mismatch, selector};
use super::{
    pod,
    row::{PLAIN, StatusMetadata, StrategyRow},
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, IntPtr, Null, Str},
        Fill,
    },
    table::{
        self,
        Rule::{AtLeast, AtMostAll, Check, Immutable, IntOrPercent, Required, Struct},
        RuleTable,
    },
};

/// Returns the row of a kind of the group `apps`.
pub(super) fn find(kind: &str) -> Option<StrategyRow> {
    Some(match kind {
        "Deployment" => DEPLOYMENT,
        "ReplicaSet" => REPLICA_SET,
        "DaemonSet" => daemon_set::DAEMON_SET,
        "StatefulSet" => stateful_set::STATEFUL_SET,
        "ControllerRevision" => CONTROLLER_REVISION,
        _ => return None,
    })
}

const WORKLOAD: StrategyRow = StrategyRow {
    generation: &["spec"],
    status: Some(|| None),
    gated: &[("spec.template.spec", pod::GATED_SPEC)],
    warnings: |object, old| pod::template_warnings(&["spec", "template"], object, old),
    ..PLAIN
};

const DEPLOYMENT: StrategyRow = StrategyRow {
    generation: &["spec", "metadata.annotations"],
    status_meta: StatusMetadata::ExceptLabels,
    defaults: |object| {
        edit::object(object, "spec");
        edit::fill_all(object, DEPLOYMENT_DEFAULTS);
        rolling(object, "strategy", &[("", "maxUnavailable", Str("25%")), ("", "maxSurge", Str("25%"))]);
        template_defaults(object);
    },
    zeros: &[("", "status", EmptyObject), CONDITION_TIMES, ("status.conditions[]", "lastUpdateTime", Null)],
    table: &[("spec", &[Struct(DEPLOYMENT_SPEC)])],
    status_table: &[("status", &[Struct(status::DEPLOYMENT)])],
    ..WORKLOAD
};

const DEPLOYMENT_SPEC: RuleTable = &[
    ("replicas", &[AtLeast(0)]),
    ("", &[Check(deployment_template)]),
    ("strategy", &[Check(strategy)]),
    ("minReadySeconds", &[AtLeast(0)]),
    ("revisionHistoryLimit", &[AtLeast(0)]),
    ("progressDeadlineSeconds", &[AtLeast(0)]),
    ("", &[Check(deadline)]),
    ("selector", &[Immutable]),
];

const REPLICA_SET: StrategyRow = StrategyRow {
    defaults: |object| {
        edit::object(object, "spec");
        edit::fill_all(object, &[("spec", "replicas", IntPtr(1))]);
        template_defaults(object);
    },
    zeros: &[("", "status", EmptyObject), ("status", "replicas", IntPtr(0)), CONDITION_TIMES],
    table: &[("spec", &[Struct(REPLICA_SET_SPEC)])],
    status_table: &[("status", &[Struct(status::REPLICA_SET)])],
    ..WORKLOAD
};

const REPLICA_SET_SPEC: RuleTable = &[
    ("replicas", &[AtLeast(0)]),
    ("minReadySeconds", &[AtLeast(0)]),
    // The detail mentions deployments upstream as well.
    ("", &[Check(deployment_template)]),
    ("selector", &[Immutable]),
];

const CONTROLLER_REVISION: StrategyRow = StrategyRow {
    zeros: &[("", "revision", IntPtr(0)), ("", "data", Null)],
    table: &[("revision", &[AtLeast(0)]), ("data", &[Immutable])],
    validate_create: |object, errors| {
        let data = object.at("data");
        match data.value {
            Value::Object(_) => {}
            Value::Null => errors.push(data.missing("data is mandatory")),
            _ => errors.push(data.missing("data must be a valid JSON object")),
        }
    },
    ..PLAIN
};

pub(super) const REPLICATION_CONTROLLER: StrategyRow = StrategyRow {
    defaults: |object| {
        edit::object(object, "spec");
        edit::fill_all(object, &[("spec", "replicas", IntPtr(1))]);
        let labels = object.pointer("/spec/template/metadata/labels").cloned();
        if let Some(labels) =
            labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        {
            for path in [&["spec", "selector"], &["metadata", "labels"]] {
                if let Some(members) = edit::object_at(object, path)
                    && members.is_empty()
                {
                    members.extend(labels.as_object().cloned().unwrap_or_default());
                }
            }
        }
        if let Some(template) = object.pointer_mut("/spec/template").filter(|template| !template.is_null()) {
            pod::template_defaults(template);
        }
    },
    zeros: &[("", "status", EmptyObject), ("status", "replicas", IntPtr(0)), CONDITION_TIMES],
    table: &[("spec", &[Struct(CONTROLLER_SPEC)])],
    status_table: &[("status", &[Struct(status::REPLICA_SET)])],
    ..WORKLOAD
};

const CONTROLLER_SPEC: RuleTable = &[
    ("minReadySeconds", &[AtLeast(0)]),
    ("selector", &[Required]),
    ("replicas", &[AtLeast(0)]),
    ("", &[Check(template::of_replication_controller)]),
];

const CONDITION_TIMES: Fill = ("status.conditions[]", "lastTransitionTime", Null);

const DEPLOYMENT_DEFAULTS: &[Fill] = &[
    ("spec", "replicas", IntPtr(1)),
    ("spec", "strategy", EmptyObject),
    ("spec", "revisionHistoryLimit", IntPtr(10)),
    ("spec", "progressDeadlineSeconds", IntPtr(600)),
];

/// Sets the defaults of the template, which upstream adds if it is absent.
fn template_defaults(object: &mut Value) {
    edit::object_at(object, &["spec", "template"]);
    if let Some(template) = object.pointer_mut("/spec/template") {
        pod::template_defaults(template);
    }
}

/// Sets the defaults of a rolling update from `table`, unless the strategy has another type.
fn rolling(object: &mut Value, member: &str, table: &[Fill]) {
    let Some(strategy) = object.get_mut("spec").and_then(|spec| spec.get_mut(member)) else { return };
    edit::fill_all(strategy, &[("", "type", Str("RollingUpdate"))]);
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
        edit::object(strategy, "rollingUpdate");
        if let Some(update) = strategy.get_mut("rollingUpdate") {
            edit::fill_all(update, table);
        }
    }
}

fn deployment_template(spec: &Cursor<'_>, errors: &mut Errors) {
    template::selected(spec, "deployment", "ReplicaSet", errors);
}

fn strategy(strategy: &Cursor<'_>, errors: &mut Errors) {
    let update = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" if update.is_set() => {
            errors.push(update.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "Recreate" => {}
        "RollingUpdate" if !update.is_set() => {
            errors.push(update.missing("this should be defaulted and never be nil"));
        }
        "RollingUpdate" => table::check(PACE, &update, errors),
        _ => errors.push(strategy.unsupported(&["Recreate", "RollingUpdate"])),
    }
}

const PACE: RuleTable = &[
    ("maxUnavailable", &[IntOrPercent]),
    ("maxSurge", &[IntOrPercent]),
    ("", &[Check(unavailable_or_surge)]),
    ("maxUnavailable", &[AtMostAll]),
];

fn unavailable_or_surge(update: &Cursor<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (update.at("maxUnavailable"), update.at("maxSurge"));
    if table::number_or_percent(&unavailable) == 0 && table::number_or_percent(&surge) == 0 {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
}

fn deadline(spec: &Cursor<'_>, errors: &mut Errors) {
    let deadline = spec.at("progressDeadlineSeconds");
    let ready = spec.at("minReadySeconds").int().unwrap_or(0);
    if deadline.int().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}
