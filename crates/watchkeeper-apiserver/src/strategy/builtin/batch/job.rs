//! `Job`, and the job spec in a `CronJob`.

use serde_json::{Value, json};

use super::{
    super::{
        pod,
        row::{PLAIN, StrategyRow},
        workload::{SelectorMatch, report_mismatch, selector},
    },
    status,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{Bool, EmptyObject, IntPtr, Null, Str},
    },
    formats,
    gates::Gated,
    names,
    table::{
        self, FieldCondition,
        Rule::{
            AtLeast, AtMost, Check, EnumIfSet, EvenEmpty, Immutable, InvalidIfSet, MaxItems, MaxLength,
            OneOf, Present, RequiredAs, Struct, UniqueItems, When,
        },
        RuleTable,
    },
};

/// Fields of a job's spec behind disabled feature gates.
pub(super) const GATED: &[Gated] = &[("scheduling", "WorkloadWithJob")];

/// The number of completions above which a job that counts failures per index has stricter limits.
const SOFT_COMPLETIONS: i64 = 100_000;

const JOB_NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const CONTROLLER_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub(super) const JOB: StrategyRow = StrategyRow {
    generation: &["spec"],
    status: Some(|| None),
    gated: &[("spec", GATED), ("spec.template.spec", pod::GATED_SPEC)],
    defaults: |object| {
        edit::object(object, "spec");
        if let Some(spec) = object.get_mut("spec") {
            job_defaults(spec);
        }
    },
    zeros: &[
        ("", "status", EmptyObject),
        ("status.conditions[]", "lastProbeTime", Null),
        ("status.conditions[]", "lastTransitionTime", Null),
    ],
    prepare_create: |object| {
        generate_selector(object);
        labels_of_template(object);
    },
    prepare_update: |object, _| labels_of_template(object),
    table: &[("spec", &[Struct(SELECTED_JOB_SPEC)]), ("", &[Check(host_names)])],
    validate_create: generated_selector,
    validate_update: update_job,
    validate_status: status::validate,
    warnings: |object, old| pod::template_warnings(&["spec", "template"], object, old),
    ..PLAIN
};

const SELECTED_JOB_SPEC: RuleTable = &[("", &[Struct(JOB_SPEC)]), ("", &[Check(selects_template)])];

/// The rules of a job's spec, except for its selector.
pub(super) const JOB_SPEC: RuleTable = &[
    ("parallelism", &[AtLeast(0)]),
    ("completions", &[AtLeast(0)]),
    ("activeDeadlineSeconds", &[AtLeast(0)]),
    ("backoffLimit", &[AtLeast(0)]),
    ("ttlSecondsAfterFinished", &[AtLeast(0)]),
    ("backoffLimitPerIndex", &[AtLeast(0)]),
    ("maxFailedIndexes", &[AtLeast(0)]),
    (
        "",
        &[When(
            FieldCondition::Has("maxFailedIndexes"),
            &[("backoffLimitPerIndex", &[Present("when maxFailedIndexes is specified")])],
        )],
    ),
    ("managedBy", &[Check(managed_by), MaxLength(63)]),
    ("completionMode", &[EnumIfSet(&["NonIndexed", "Indexed"])]),
    (
        "",
        &[
            When(FieldCondition::Is("completionMode", "Indexed"), INDEXED),
            When(FieldCondition::Is("completionMode", "NonIndexed"), NOT_INDEXED),
            When(FieldCondition::Lacks("completionMode"), NOT_INDEXED),
        ],
    ),
    ("", &[Check(failure_policy)]),
    ("", &[Check(success_policy)]),
    (
        "",
        &[
            When(
                FieldCondition::Has("podFailurePolicy"),
                &[("podReplacementPolicy", &[EnumIfSet(&["Failed"])])],
            ),
            When(
                FieldCondition::Lacks("podFailurePolicy"),
                &[("podReplacementPolicy", &[EnumIfSet(&["Failed", "TerminatingOrFailed"])])],
            ),
        ],
    ),
    ("template", &[Check(pod::template)]),
    ("", &[Check(restart_policy)]),
];

const INDEXED: RuleTable = &[
    ("completions", &[Present("when completion mode is Indexed")]),
    ("parallelism", &[AtMost(100_000)]),
    ("", &[Check(failed_indexes_within_completions)]),
    ("maxFailedIndexes", &[AtMost(100_000)]),
    ("", &[Check(high_completions)]),
];

const NOT_INDEXED: RuleTable = &[
    ("backoffLimitPerIndex", &[InvalidIfSet("requires indexed completion mode")]),
    ("maxFailedIndexes", &[InvalidIfSet("requires indexed completion mode")]),
];

const EXIT_CODES: RuleTable =
    &[("operator", &[RequiredAs("valid values: [\"In\" \"NotIn\"]"), OneOf(&["In", "NotIn"])])];

const POD_CONDITION: RuleTable = &[
    ("type", &[EvenEmpty(names::qualified)]),
    (
        "status",
        &[RequiredAs("valid values: [\"False\" \"True\" \"Unknown\"]"), OneOf(&["False", "True", "Unknown"])],
    ),
];

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];

fn job_defaults(spec: &mut Value) {
    let has = |spec: &Value, member: &str| spec.get(member).is_some_and(|value| !value.is_null());
    if !has(spec, "completions") && !has(spec, "parallelism") {
        edit::fill_all(spec, &[("", "completions", IntPtr(1))]);
    }
    let limit = if has(spec, "backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    let replacement = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    edit::fill_all(
        spec,
        &[
            ("", "parallelism", IntPtr(1)),
            ("", "backoffLimit", IntPtr(limit)),
            ("", "completionMode", edit::DefaultValue::StrPtr("NonIndexed")),
            ("", "suspend", Bool(false)),
            ("", "podReplacementPolicy", edit::DefaultValue::StrPtr(replacement)),
            ("", "manualSelector", Bool(false)),
            ("podFailurePolicy.rules[].onPodConditions[]", "status", Str("True")),
            ("", "template", EmptyObject),
        ],
    );
    if let Some(template) = spec.get_mut("template") {
        pod::template_defaults(template);
    }
}

/// Sets the selector of a job by its uid, unless its author sets the selector.
fn generate_selector(object: &mut Value) {
    if object.pointer("/spec/manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, uid) = (text("/metadata/name"), text("/metadata/uid"));
    if let Some(labels) = edit::object_at(object, &["spec", "template", "metadata", "labels"]) {
        for label in JOB_NAME_LABELS {
            labels.entry(label).or_insert_with(|| json!(name));
        }
        for label in CONTROLLER_LABELS {
            labels.entry(label).or_insert_with(|| json!(uid));
        }
    }
    if let Some(labels) = edit::object_at(object, &["spec", "selector", "matchLabels"]) {
        labels.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| json!(uid));
    }
}

/// Copies the labels of the template, including generated ones, to a job without labels.
fn labels_of_template(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").and_then(Value::as_object).cloned();
    if let Some(labels) = labels.filter(|labels| !labels.is_empty())
        && let Some(own) = edit::object_at(object, &["metadata", "labels"])
        && own.is_empty()
    {
        own.extend(labels);
    }
}

/// Checks that generated labels were not given with other values.
fn generated_selector(object: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.at("metadata"), object.at("spec"));
    let selector = spec.at("selector");
    if spec.at("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    let (name, uid) = (metadata.at("name"), metadata.at("uid"));
    if uid.is_empty() {
        errors.push(uid.missing(""));
    }
    let template = spec.at("template");
    let own = template.at("metadata");
    let labels = own.at("labels");
    let [legacy_uid, prefixed_uid] = CONTROLLER_LABELS;
    let [legacy_name, prefixed_name] = JOB_NAME_LABELS;
    let expected = [(legacy_uid, &uid), (legacy_name, &name), (prefixed_uid, &uid), (prefixed_name, &name)];
    for (label, required) in expected {
        let given = labels.key(label);
        if !given.is_set() {
            errors.push(given.missing(format!("must be '{}'", required.text())));
        } else if given.text() != required.text() {
            errors.push(given.invalid(format!("must be '{}'", required.text())));
        }
    }
    let generated: serde_json::Map<String, Value> =
        expected.iter().map(|(label, value)| ((*label).to_owned(), value.value.clone())).collect();
    let generated = Value::Object(generated);
    if !crate::strategy::metadata::selects(&selector, &Cursor::root(&generated)) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

fn selects_template(spec: &Cursor<'_>, errors: &mut Errors) {
    let selector = spec.at("selector");
    if !selector.is_set() {
        errors.push(selector.missing(""));
    }
    let template = spec.at("template");
    let own = template.at("metadata");
    let labels = own.at("labels");
    if let SelectorMatch::Mismatch = self::selector(&selector, &labels, errors) {
        report_mismatch(&labels, errors);
    }
}

/// Checks the host names of an indexed job, which consist of the name of the job and an index.
fn host_names(object: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.at("metadata"), object.at("spec"));
    let completions = spec.at("completions").int().unwrap_or(0);
    if spec.at("completionMode").text() != "Indexed" || completions <= 0 {
        return;
    }
    let name = metadata.at("name");
    let longest = format!("{}-{}", name.text(), completions - 1);
    if !names::dns_label(&longest).is_empty() {
        errors.push(name.invalid(format!("will not able to create pod with invalid DNS label: {longest}")));
    }
}

fn managed_by(manager: &Cursor<'_>, errors: &mut Errors) {
    if manager.is_set() && manager.required(errors) {
        manager.format(formats::domain_prefixed_path, errors);
    }
}

fn failed_indexes_within_completions(spec: &Cursor<'_>, errors: &mut Errors) {
    let failed = spec.at("maxFailedIndexes");
    if let (Some(most), Some(completions)) = (failed.int(), spec.at("completions").int())
        && most > completions
    {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
}

fn high_completions(spec: &Cursor<'_>, errors: &mut Errors) {
    let is_high = spec.at("completions").int().is_some_and(|count| count > SOFT_COMPLETIONS);
    if !is_high || !spec.at("backoffLimitPerIndex").is_set() {
        return;
    }
    let (parallelism, failed) = (spec.at("parallelism"), spec.at("maxFailedIndexes"));
    if !failed.is_set() {
        errors
            .push(failed.missing(format!("must be specified when completions is above {SOFT_COMPLETIONS}")));
    }
    for (field, most) in [(&parallelism, 10_000), (&failed, 10_000)] {
        if field.int().is_some_and(|number| number > most) {
            errors.push(field.invalid(format!(
                "must be less than or equal to {most} when completions are above {SOFT_COMPLETIONS} and used with backoff limit per index"
            )));
        }
    }
}

fn failure_policy(spec: &Cursor<'_>, errors: &mut Errors) {
    let policy = spec.at("podFailurePolicy");
    if !policy.is_set() {
        return;
    }
    let rules = policy.at("rules");
    table::check(&[("rules", &[MaxItems(20)])], &policy, errors);
    for rule in rules.items() {
        failure_rule(spec, &rule, errors);
    }
}

fn failure_rule(spec: &Cursor<'_>, rule: &Cursor<'_>, errors: &mut Errors) {
    let action = rule.at("action");
    match action.text() {
        "" => errors.push(action.missing(format!("valid values: {ACTIONS:?}"))),
        "FailIndex" if !spec.at("backoffLimitPerIndex").is_set() => {
            errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
        }
        _ => action.one_of(ACTIONS, errors),
    }
    let (codes, conditions) = (rule.at("onExitCodes"), rule.at("onPodConditions"));
    if codes.is_set() {
        exit_codes(spec, &codes, errors);
    }
    table::check(
        &[("onPodConditions", &[MaxItems(20)]), ("onPodConditions[]", &[Struct(POD_CONDITION)])],
        rule,
        errors,
    );
    match (codes.is_set(), !conditions.is_empty()) {
        (true, true) => {
            errors.push(rule.invalid("specifying both OnExitCodes and OnPodConditions is not supported"));
        }
        (false, false) => {
            errors.push(rule.invalid("specifying one of OnExitCodes and OnPodConditions is required"));
        }
        _ => {}
    }
}

fn exit_codes(spec: &Cursor<'_>, codes: &Cursor<'_>, errors: &mut Errors) {
    table::check(EXIT_CODES, codes, errors);
    let container = codes.at("containerName");
    let template = spec.at("template");
    let pod = template.at("spec");
    let is_known = ["containers", "initContainers"]
        .iter()
        .any(|list| pod.at(list).items().any(|known| known.at("name").text() == container.text()));
    if container.is_set() && !is_known {
        errors.push(
            container.invalid("must be one of the container or initContainer names in the pod template"),
        );
    }
    let values = codes.at("values");
    if values.is_empty() {
        errors.push(values.invalid("at least one value is required"));
    }
    table::check(&[("values", &[MaxItems(255), UniqueItems])], codes, errors);
    let mut last = i64::MIN;
    let mut is_ordered = true;
    for value in values.items() {
        let number = value.int().unwrap_or(0);
        if codes.at("operator").text() == "In" && number == 0 {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        is_ordered &= last <= number;
        last = number;
    }
    if !is_ordered {
        errors.push(values.invalid("must be ordered"));
    }
}

fn success_policy(spec: &Cursor<'_>, errors: &mut Errors) {
    const POLICY: RuleTable = &[(
        "rules",
        &[
            RequiredAs("at least one rules must be specified when the successPolicy is specified"),
            MaxItems(20),
        ],
    )];
    let policy = spec.at("successPolicy");
    if !policy.is_set() {
        return;
    }
    if spec.at("completionMode").text() != "Indexed" {
        errors.push(policy.invalid("requires indexed completion mode"));
        return;
    }
    table::check(POLICY, &policy, errors);
    let completions = spec.at("completions").int().unwrap_or(0);
    for rule in policy.at("rules").items() {
        success_rule(&rule, completions, errors);
    }
}

fn success_rule(rule: &Cursor<'_>, completions: i64, errors: &mut Errors) {
    let (count, indexes) = (rule.at("succeededCount"), rule.at("succeededIndexes"));
    if !count.is_set() && !indexes.is_set() {
        errors.push(rule.missing("at least one of succeededCount or succeededIndexes must be specified"));
    }
    let mut total = 0;
    if indexes.is_set() {
        table::check(&[("succeededIndexes", &[MaxLength(64 * 1024)])], rule, errors);
        match status::count_indexes(indexes.text(), completions) {
            Ok(found) => total = found,
            Err(detail) => errors.push(indexes.invalid(format!("error parsing succeededIndexes: {detail}"))),
        }
    }
    let Some(required) = count.int() else { return };
    count.at_least(0, errors);
    if required > completions {
        errors.push(count.invalid(format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        )));
    }
    if indexes.is_set() && required > total {
        errors.push(count.invalid(format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        )));
    }
}

fn restart_policy(spec: &Cursor<'_>, errors: &mut Errors) {
    let template = spec.at("template");
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

/// The fields of a template that may change while no pod of a suspended job runs.
const SCHEDULING: [&str; 3] = ["nodeSelector", "tolerations", "schedulingGates"];

const FIXED: RuleTable = &[
    ("completionMode", &[Immutable]),
    ("podFailurePolicy", &[Immutable]),
    ("backoffLimitPerIndex", &[Immutable]),
    ("managedBy", &[Immutable]),
    ("successPolicy", &[Immutable]),
];

fn update_job(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    let (completions, old_completions) = (spec.at("completions"), old_spec.at("completions"));
    if spec.at("completionMode").text() != "Indexed" {
        completions.immutable(&old_completions, errors);
    } else if completions.is_set()
        && completions.value != old_completions.value
        && completions.value != spec.at("parallelism").value
    {
        errors.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
    }
    spec.at("selector").immutable(&old_spec.at("selector"), errors);
    template_update(&spec, old, errors);
    table::check_change(FIXED, &spec, &old_spec, errors);
}

fn template_update(spec: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (old_spec, old_status) = (old.at("spec"), old.at("status"));
    let template = spec.at("template");
    let is_paused = old_status.at("startTime").value.is_null()
        || super::super::condition::is_true(&old_status.at("conditions"), "Suspended");
    let is_mutable =
        old_spec.at("suspend").is_true() && is_paused && old_status.at("active").int().unwrap_or(0) == 0;
    let mut allowed = old_spec.at("template").value.clone();
    if !is_mutable {
        if !edit::is_same(template.value, &allowed) {
            errors.push(template.invalid("field is immutable"));
        }
        return;
    }
    if let (Some(pod), Some(new_pod)) = (allowed.get_mut("spec"), template.value.get("spec")) {
        for member in SCHEDULING {
            edit::take_from(pod, new_pod, member);
        }
        take_node_affinity(pod, new_pod);
        take_resources(pod, new_pod);
        // Labels and annotations of the template may change as well.
        if !edit::is_same(new_pod, pod) {
            let mut error = template.at("spec").invalid("field is immutable");
            error.path = format!("{}.spec", template.path());
            errors.push(error);
        }
    }
}

fn take_node_affinity(pod: &mut Value, new: &Value) {
    let node_affinity = new.pointer("/affinity/nodeAffinity").cloned();
    let Some(members) = pod.as_object_mut() else { return };
    let affinity = members.entry("affinity").or_insert_with(|| json!({}));
    if affinity.is_null() {
        *affinity = json!({});
    }
    if let Some(affinity) = affinity.as_object_mut() {
        match node_affinity {
            Some(node_affinity) => affinity.insert("nodeAffinity".to_owned(), node_affinity),
            None => affinity.remove("nodeAffinity"),
        };
    }
    let is_left_out = new.get("affinity").is_none_or(Value::is_null);
    if is_left_out
        && members.get("affinity").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty)
    {
        members.remove("affinity");
    }
}

fn take_resources(pod: &mut Value, new: &Value) {
    for list in ["containers", "initContainers"] {
        let Some(old_containers) = pod.get_mut(list).and_then(Value::as_array_mut) else { continue };
        let new_containers = new.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if old_containers.len() != new_containers.len() {
            continue;
        }
        for (old, new) in old_containers.iter_mut().zip(new_containers) {
            if old.get("name") == new.get("name") {
                edit::take_from(old, new, "resources");
            }
        }
    }
}
