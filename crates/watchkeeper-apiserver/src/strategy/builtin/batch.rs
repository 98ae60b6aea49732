//! Kinds whose pods end.

use serde_json::{Value, json};

use super::{
    pod,
    row::{PLAIN, Row},
};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self,
        Lit::{B, N, O, S, Z},
    },
    metadata,
};

/// The row of a kind of the group `batch`.
pub(super) fn find(kind: &str) -> Option<Row> {
    Some(match kind {
        "Job" => JOB,
        "CronJob" => CRON_JOB,
        _ => return None,
    })
}

const JOB: Row = Row {
    generation: &["spec"],
    status: Some(|| None),
    defaults: |object| {
        let labels = object.pointer("/spec/template/metadata/labels").and_then(Value::as_object).cloned();
        if let Some(spec) = object.get_mut("spec") {
            job_defaults(spec);
            edit::fill_all(spec, &[("", "manualSelector", B(false))]);
        }
        if let Some(labels) = labels.filter(|labels| !labels.is_empty())
            && let Some(own) = edit::object_at(object, &["metadata", "labels"])
            && own.is_empty()
        {
            own.extend(labels);
        }
    },
    zeros: &[
        ("", "status", O),
        ("status.conditions[]", "lastProbeTime", Z),
        ("status.conditions[]", "lastTransitionTime", Z),
    ],
    prepare_create: generate_selector,
    validate: |object, errors| {
        let spec = object.at("spec");
        let selector = spec.at("selector");
        if selector.is_set() {
            metadata::label_selector(&selector, errors);
        } else {
            errors.push(selector.missing(""));
        }
        let template = spec.at("template");
        let own = template.at("metadata");
        let labels = own.at("labels");
        if selector.is_set() && !metadata::selects(&selector, &labels) {
            errors.push(labels.invalid("`selector` does not match template `labels`"));
        }
        job_spec(&spec, errors);
    },
    validate_update: update_job,
    warnings: |object, old| pod::template_warnings(&["spec", "template"], object, old),
    ..PLAIN
};

const CRON_JOB: Row = Row {
    generation: &["spec"],
    status: Some(|| None),
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("spec", "concurrencyPolicy", S("Allow")),
                ("spec", "suspend", B(false)),
                ("spec", "successfulJobsHistoryLimit", N(3)),
                ("spec", "failedJobsHistoryLimit", N(1)),
                ("spec.jobTemplate", "metadata", O),
                ("spec.jobTemplate", "spec", O),
            ],
        );
        if let Some(template) = object.pointer_mut("/spec/jobTemplate/spec/template") {
            pod::template_defaults(template);
        }
    },
    zeros: &[("", "status", O)],
    validate: validate_cron_job,
    validate_create: |object, errors| {
        let metadata = object.at("metadata");
        let name = metadata.at("name");
        // Eleven characters are added to make names of jobs.
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

fn job_defaults(spec: &mut Value) {
    let has = |spec: &Value, member: &str| spec.get(member).is_some_and(|value| !value.is_null());
    if !has(spec, "completions") && !has(spec, "parallelism") {
        edit::fill_all(spec, &[("", "completions", N(1))]);
    }
    let limit = if has(spec, "backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    let replacement = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    edit::fill_all(
        spec,
        &[
            ("", "parallelism", N(1)),
            ("", "backoffLimit", N(limit)),
            ("", "completionMode", S("NonIndexed")),
            ("", "suspend", B(false)),
            ("", "podReplacementPolicy", S(replacement)),
            ("podFailurePolicy.rules[].onPodConditions[]", "status", S("True")),
        ],
    );
    if let Some(template) = spec.get_mut("template") {
        pod::template_defaults(template);
    }
}

/// A job selects its pods by its own uid, unless its author takes that on.
fn generate_selector(object: &mut Value) {
    if object.pointer("/spec/manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, uid) = (text("/metadata/name"), text("/metadata/uid"));
    if let Some(labels) = edit::object_at(object, &["spec", "template", "metadata", "labels"]) {
        for label in ["job-name", "batch.kubernetes.io/job-name"] {
            labels.entry(label).or_insert_with(|| json!(name));
        }
        for label in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
            labels.entry(label).or_insert_with(|| json!(uid));
        }
    }
    if let Some(labels) = edit::object_at(object, &["spec", "selector", "matchLabels"]) {
        labels.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| json!(uid));
    }
}

fn job_spec(spec: &At<'_>, errors: &mut Errors) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for number in numbers {
        spec.at(number).at_least(0, errors);
    }
    let mode = spec.at("completionMode");
    mode.one_of(&["NonIndexed", "Indexed"], errors);
    let is_indexed = mode.text() == "Indexed";
    if is_indexed && !spec.at("completions").is_set() {
        errors.push(spec.at("completions").missing("when completion mode is Indexed"));
    }
    for member in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
        let member = spec.at(member);
        if !is_indexed && member.is_set() {
            errors.push(member.invalid("requires indexed completion mode"));
        }
    }
    if spec.at("maxFailedIndexes").is_set() && !spec.at("backoffLimitPerIndex").is_set() {
        errors.push(spec.at("backoffLimitPerIndex").missing("when maxFailedIndexes is specified"));
    }
    let replacement = spec.at("podReplacementPolicy");
    if spec.at("podFailurePolicy").is_set() {
        replacement.one_of(&["Failed"], errors);
    } else {
        replacement.one_of(&["Failed", "TerminatingOrFailed"], errors);
    }
    let template = spec.at("template");
    pod::template(&template, errors);
    let pod = template.at("spec");
    let restart = pod.at("restartPolicy");
    match restart.text() {
        "OnFailure" if spec.at("podFailurePolicy").is_set() => {
            errors.push(restart.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
        }
        "OnFailure" | "Never" => {}
        "" | "Always" => errors.push(restart.missing("valid values: \"OnFailure\", \"Never\"")),
        _ => errors.push(restart.unsupported(&["OnFailure", "Never"])),
    }
}

/// Directives of scheduling may change while a job that never started is suspended.
const SCHEDULING: [&str; 4] = ["nodeSelector", "affinity", "tolerations", "schedulingGates"];

fn update_job(object: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    let is_elastic = spec.at("completionMode").text() == "Indexed"
        && spec.at("completions").value == spec.at("parallelism").value
        && old_spec.at("completions").value == old_spec.at("parallelism").value;
    if !is_elastic {
        spec.at("completions").immutable(&old_spec.at("completions"), errors);
    }
    for member in [
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        spec.at(member).immutable(&old_spec.at(member), errors);
    }
    let template = spec.at("template");
    let mut compared = template.value.clone();
    let never_started = old_spec.at("suspend").is_true() && !old.at("status").at("startTime").is_set();
    if never_started
        && let (Some(pod), Some(old_pod)) =
            (compared.get_mut("spec"), old_spec.at("template").value.get("spec"))
    {
        for member in SCHEDULING {
            edit::take_from(pod, old_pod, member);
        }
        let old_metadata = old_spec.at("template").value.get("metadata").cloned().unwrap_or_default();
        if let Some(metadata) = compared.get_mut("metadata") {
            edit::take_from(metadata, &old_metadata, "labels");
            edit::take_from(metadata, &old_metadata, "annotations");
        }
    }
    if compared != *old_spec.at("template").value {
        errors.push(template.invalid("field is immutable"));
    }
}

fn validate_cron_job(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let schedule = spec.at("schedule");
    if schedule.required(errors)
        && let Err(detail) = check_schedule(schedule.text())
    {
        errors.push(schedule.invalid(detail));
    }
    for number in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.at(number).at_least(0, errors);
    }
    let zone = spec.at("timeZone");
    if zone.is_set() {
        let is_zone = zone.text().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
        if zone.text().is_empty() {
            errors.push(zone.invalid("timeZone must be nil or non-empty string"));
        } else if zone.text().eq_ignore_ascii_case("local") {
            errors.push(zone.invalid(
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
            ));
        } else if !is_zone {
            errors.push(zone.invalid(format!("unknown time zone {}", zone.text())));
        }
    }
    spec.at("concurrencyPolicy").required_one_of(&["Allow", "Forbid", "Replace"], errors);
    let template = spec.at("jobTemplate");
    let job = template.at("spec");
    if job.at("manualSelector").is_true() {
        errors.push(job.at("manualSelector").unsupported(&["nil", "false"]));
    }
    job_spec(&job, errors);
}

/// Five fields of numbers, names, ranges and steps, or a word for them.
fn check_schedule(text: &str) -> Result<(), String> {
    const FIELDS: [(&str, u32, u32); 5] = [
        ("minute", 0, 59),
        ("hour", 0, 23),
        ("day of month", 1, 31),
        ("month", 1, 12),
        ("day of week", 0, 6),
    ];
    const WORDS: [&str; 7] =
        ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    let text = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(rest) => rest.split_once(' ').map(|(_, rest)| rest).unwrap_or_default(),
        None => text,
    };
    if WORDS.contains(&text) {
        return Ok(());
    }
    if let Some(every) = text.strip_prefix("@every ") {
        let is_duration = every.bytes().any(|byte| byte.is_ascii_digit())
            && every.bytes().all(|byte| byte.is_ascii_digit() || b".hmsun".contains(&byte));
        return if is_duration { Ok(()) } else { Err(format!("failed to parse duration {text}")) };
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: {fields:?}", fields.len()));
    }
    for (field, (name, least, most)) in fields.iter().zip(FIELDS) {
        for part in field.split(',') {
            check_range(part, name, least, most)?;
        }
    }
    Ok(())
}

fn check_range(part: &str, name: &str, least: u32, most: u32) -> Result<(), String> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let number = |text: &str| -> Result<u32, String> {
        let lower = text.to_lowercase();
        let named = match name {
            "month" => MONTHS.iter().position(|month| *month == lower).map(|place| place + 1),
            "day of week" => DAYS.iter().position(|day| *day == lower),
            _ => None,
        };
        let number = match named {
            Some(place) => u32::try_from(place).map_err(|error| error.to_string())?,
            None => text.parse().map_err(|_| format!("failed to parse int from {text}"))?,
        };
        if number < least {
            return Err(format!("beginning of range ({number}) below minimum ({least}): {part}"));
        }
        if number > most {
            return Err(format!("end of range ({number}) above maximum ({most}): {part}"));
        }
        Ok(number)
    };
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (part, None),
    };
    if let Some(step) = step
        && !step.parse::<u32>().is_ok_and(|step| step > 0)
    {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    match range.split_once('-') {
        _ if range == "*" || range == "?" => Ok(()),
        Some((from, to)) if number(from)? > number(to)? => {
            Err(format!("beginning of range ({from}) beyond end of range ({to}): {part}"))
        }
        Some(_) => Ok(()),
        None => number(range).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::check_schedule;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        for good in [
            "* * * * *",
            "*/5 0-6 1,15 jan-mar MON",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * 6",
            "TZ=UTC 0 0 * * *",
        ] {
            assert_eq!(check_schedule(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "x * * * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "@never",
            "@every x",
        ] {
            assert!(check_schedule(bad).is_err(), "{bad}");
        }
    }
}
