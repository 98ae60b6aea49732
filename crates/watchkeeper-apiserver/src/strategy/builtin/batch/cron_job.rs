//! `CronJob`.

use serde_json::Value;

use super::{
    super::{
        pod,
        row::{PLAIN, StrategyRow},
    },
    job, schedule,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{Bool, EmptyObject, IntPtr, Str},
    },
    table::{
        Rule::{AtLeast, Check, CheckWith, InvalidIfSet, OneOf, Required, Struct},
        RuleTable,
    },
};

pub(super) const CRON_JOB: StrategyRow = StrategyRow {
    generation: &["spec"],
    status: Some(|| None),
    gated: &[("spec.jobTemplate.spec", job::GATED), ("spec.jobTemplate.spec.template.spec", pod::GATED_SPEC)],
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "spec", EmptyObject),
                ("spec", "concurrencyPolicy", Str("Allow")),
                ("spec", "suspend", Bool(false)),
                ("spec", "successfulJobsHistoryLimit", IntPtr(3)),
                ("spec", "failedJobsHistoryLimit", IntPtr(1)),
                ("spec", "jobTemplate", EmptyObject),
                ("spec.jobTemplate", "metadata", EmptyObject),
                ("spec.jobTemplate", "spec", EmptyObject),
                ("spec.jobTemplate.spec", "template", EmptyObject),
                ("spec.jobTemplate.spec.podFailurePolicy.rules[].onPodConditions[]", "status", Str("True")),
            ],
        );
        if let Some(template) = object.pointer_mut("/spec/jobTemplate/spec/template") {
            pod::template_defaults(template);
        }
    },
    zeros: &[("", "status", EmptyObject)],
    table: &[("spec", &[Struct(SPEC)])],
    validate_create: |object, errors| {
        let metadata = object.at("metadata");
        let name = metadata.at("name");
        // The controller appends eleven characters for the names of jobs.
        if name.text().len() > 52 {
            errors.push(name.invalid("must be no more than 52 characters"));
        }
    },
    warnings: |object, old| {
        let path = ["spec", "jobTemplate", "spec", "template"];
        let mut warnings = pod::template_warnings(&path, object, old);
        if object
            .pointer("/spec/schedule")
            .and_then(Value::as_str)
            .is_some_and(|schedule| schedule.contains("TZ"))
        {
            warnings
                .push("spec.schedule: cannot use TZ or CRON_TZ in schedule, use timeZone instead".to_owned());
        }
        warnings
    },
    ..PLAIN
};

const SPEC: RuleTable = &[
    ("", &[CheckWith(schedule::schedule)]),
    ("startingDeadlineSeconds", &[AtLeast(0)]),
    ("timeZone", &[CheckWith(changed_time_zone)]),
    ("concurrencyPolicy", &[Required, OneOf(&["Allow", "Forbid", "Replace"])]),
    ("jobTemplate.spec", &[Struct(job::JOB_SPEC)]),
    ("jobTemplate.spec.selector", &[InvalidIfSet("`selector` will be auto-generated")]),
    ("jobTemplate.spec.manualSelector", &[Check(no_manual_selector)]),
    ("successfulJobsHistoryLimit", &[AtLeast(0)]),
    ("failedJobsHistoryLimit", &[AtLeast(0)]),
];

fn changed_time_zone(zone: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    if old.is_none_or(|old| old.value != zone.value) {
        schedule::time_zone(zone, errors);
    }
}

fn no_manual_selector(manual: &Cursor<'_>, errors: &mut Errors) {
    if manual.is_true() {
        errors.push(manual.unsupported(&["nil", "false"]));
    }
}
