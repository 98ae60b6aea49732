//! The status of a Job: valid values and transitions.

use std::collections::BTreeSet;

use super::super::condition;
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit,
    table::{self, Rule::AtLeast, RuleTable},
};

const COUNTS: RuleTable = &[
    ("active", &[AtLeast(0)]),
    ("succeeded", &[AtLeast(0)]),
    ("failed", &[AtLeast(0)]),
    ("ready", &[AtLeast(0)]),
    ("terminating", &[AtLeast(0)]),
];

/// A job status with its true conditions.
#[expect(clippy::struct_excessive_bools, reason = "one flag for each condition")]
struct ObservedStatus<'a> {
    status: Cursor<'a>,
    is_complete: bool,
    is_failed: bool,
    is_failure_target: bool,
    meets_criteria: bool,
}

impl<'a> ObservedStatus<'a> {
    fn of(object: &'a Cursor<'a>) -> Self {
        let status = object.at("status");
        let conditions = status.at("conditions");
        let [is_complete, is_failed, is_failure_target, meets_criteria] =
            ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"]
                .map(|kind| condition::is_true(&conditions, kind));
        Self { status, is_complete, is_failed, is_failure_target, meets_criteria }
    }

    fn is_finished(&self) -> bool {
        self.is_complete || self.is_failed
    }

    fn count(&self, member: &str) -> i64 {
        self.status.at(member).int().unwrap_or(0)
    }
}

/// Checks a write of the status. Most rules apply only if their fields change, so that a status which violated them before
/// can still be written.
pub(super) fn validate(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (new, before) = (ObservedStatus::of(object), ObservedStatus::of(old));
    table::check(COUNTS, &new.status, errors);
    uncounted_pods(&new.status.at("uncountedTerminatedPods"), errors);
    let spec = object.at("spec");
    conditions(&new, &before, errors);
    times(&new, &before, errors);
    finished(&spec, &new, &before, errors);
    indexes(&spec, &new, &before, errors);
    let changed = |member: &str| has_changed(&new, &before, member);
    let is_finished_changed = new.is_finished() != before.is_finished();
    if (is_finished_changed || changed("terminating")) && new.is_finished() && new.count("terminating") > 0 {
        errors.push(new.status.at("terminating").invalid("terminating>0 is invalid for finished job"));
    }
    if (changed("ready") || changed("active")) && new.count("ready") > new.count("active") {
        errors.push(new.status.at("ready").invalid("cannot set more ready pods than active"));
    }
    criteria(&spec, &new, errors);
    transition(&spec, &new, &before, errors);
}

fn has_changed(new: &ObservedStatus<'_>, before: &ObservedStatus<'_>, member: &str) -> bool {
    let (new, before) = (new.status.at(member), before.status.at(member));
    // An absent count is zero.
    let both_zero = new.int().unwrap_or(0) == 0
        && before.int().unwrap_or(0) == 0
        && !new.value.is_string()
        && !before.value.is_string()
        && !new.value.is_object()
        && !before.value.is_object();
    !both_zero && !edit::is_same(new.value, before.value)
}

fn uncounted_pods(pods: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in pods.at(list).items() {
            if uid.is_empty() {
                errors.push(uid.invalid("must not be empty"));
            } else if !seen.insert(uid.text().to_owned()) {
                errors.push(uid.duplicate());
            }
        }
    }
}

fn conditions(new: &ObservedStatus<'_>, before: &ObservedStatus<'_>, errors: &mut Errors) {
    let is_complete_changed = new.is_complete != before.is_complete;
    let list = new.status.at("conditions");
    let mut reject = |detail: &str| errors.push(list.invalid(detail));
    if (is_complete_changed || new.is_failed != before.is_failed) && new.is_complete && new.is_failed {
        reject("cannot set Complete=True and Failed=true conditions");
    }
    if (is_complete_changed || new.is_failure_target != before.is_failure_target)
        && new.is_complete
        && new.is_failure_target
    {
        reject("cannot set Complete=True and FailureTarget=true conditions");
    }
}

fn times(new: &ObservedStatus<'_>, before: &ObservedStatus<'_>, errors: &mut Errors) {
    let changed = |member: &str| has_changed(new, before, member);
    let (start, completion) = (new.status.at("startTime"), new.status.at("completionTime"));
    if new.is_complete != before.is_complete || changed("completionTime") {
        if completion.is_set() && !new.is_complete {
            errors.push(
                completion.invalid("cannot set completionTime when there is no Complete=True condition"),
            );
        }
        if !completion.is_set() && new.is_complete {
            errors.push(completion.missing("completionTime is required for Complete jobs"));
        }
    }
    let time = |at: &Cursor<'_>| at.text().parse::<jiff::Timestamp>().ok();
    if (changed("startTime") || changed("completionTime"))
        && matches!((time(&start), time(&completion)), (Some(start), Some(end)) if end < start)
    {
        errors.push(completion.invalid("must be equal to or after `startTime`"));
    }
    let list = new.status.at("conditions");
    if (new.is_failed != before.is_failed || changed("failedIndexes"))
        && new.is_failed
        && !new.is_failure_target
    {
        errors
            .push(list.invalid("cannot set Failed=True condition without the FailureTarget=true condition"));
    }
    if (new.is_complete != before.is_complete || new.meets_criteria != before.meets_criteria)
        && new.is_complete
        && !new.meets_criteria
    {
        errors.push(
            list.invalid("cannot set Complete=True condition without the SuccessCriteriaMet=true condition"),
        );
    }
}

fn finished(spec: &Cursor<'_>, new: &ObservedStatus<'_>, before: &ObservedStatus<'_>, errors: &mut Errors) {
    let is_changed = new.is_finished() != before.is_finished();
    let changed = |member: &str| is_changed || has_changed(new, before, member);
    if !new.is_finished() {
        return;
    }
    let active = new.status.at("active");
    if changed("active") && new.count("active") > 0 {
        errors.push(active.invalid("active>0 is invalid for finished job"));
    }
    let start = new.status.at("startTime");
    let never_runs = spec.at("suspend").is_true() && spec.at("completions").int() == Some(0);
    if changed("startTime") && !never_runs && !start.is_set() {
        errors.push(start.missing("startTime is required for finished job"));
    }
    let pods = new.status.at("uncountedTerminatedPods");
    if changed("uncountedTerminatedPods")
        && ["succeeded", "failed"].iter().any(|list| !pods.at(list).is_empty())
    {
        errors.push(pods.invalid("must be empty for finished job"));
    }
}

fn indexes(spec: &Cursor<'_>, new: &ObservedStatus<'_>, before: &ObservedStatus<'_>, errors: &mut Errors) {
    let (completed, failed) = (new.status.at("completedIndexes"), new.status.at("failedIndexes"));
    let [completed_changed, failed_changed] =
        ["completedIndexes", "failedIndexes"].map(|member| has_changed(new, before, member));
    let completions = spec.at("completions").int();
    let counts_by_index = spec.at("backoffLimitPerIndex").is_set();
    if let (true, Some(completions)) = (completed_changed, completions)
        && let Err(detail) = count_indexes(completed.text(), completions)
    {
        errors.push(completed.invalid(format!("error parsing completedIndexes: {detail}")));
    }
    if let (true, true, true, Some(completions)) =
        (failed_changed, counts_by_index, failed.is_set(), completions)
        && let Err(detail) = count_indexes(failed.text(), completions)
    {
        errors.push(failed.invalid(format!("error parsing failedIndexes: {detail}")));
    }
    if completed_changed && !completed.is_empty() && spec.at("completionMode").text() != "Indexed" {
        errors.push(
            completed.invalid("cannot set non-empty completedIndexes when non-indexed completion mode"),
        );
    }
    if failed_changed && failed.is_set() && !counts_by_index {
        errors.push(failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null"));
    }
    if let (true, true, Some(completions)) =
        (failed_changed || completed_changed, failed.is_set(), completions)
        && let Some(index) = overlap(completed.text(), failed.text(), completions)
    {
        errors.push(failed.invalid(format!("failedIndexes and completedIndexes overlap at index: {index}")));
    }
}

fn criteria(spec: &Cursor<'_>, new: &ObservedStatus<'_>, errors: &mut Errors) {
    let list = new.status.at("conditions");
    let mut reject = |detail: &str| errors.push(list.invalid(detail));
    if new.meets_criteria && new.is_failed {
        reject("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if new.meets_criteria && new.is_failure_target {
        reject("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if spec.at("successPolicy").is_set() && !new.meets_criteria && new.is_complete {
        reject("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
    }
}

/// Rejects transitions that revert reported progress.
fn transition(spec: &Cursor<'_>, new: &ObservedStatus<'_>, before: &ObservedStatus<'_>, errors: &mut Errors) {
    let list = new.status.at("conditions");
    let terminal = [
        ("Failed", before.is_failed, new.is_failed),
        ("Complete", before.is_complete, new.is_complete),
        ("FailureTarget", before.is_failure_target, new.is_failure_target),
    ];
    for (name, was, is) in terminal {
        if was && !is {
            errors.push(list.invalid(format!("cannot disable the terminal {name}=True condition")));
        }
    }
    if new.count("failed") < before.count("failed") {
        errors.push(new.status.at("failed").invalid("cannot decrease the failed counter"));
    }
    let can_shrink = spec.at("completionMode").text() == "Indexed"
        && spec.at("completions").value == spec.at("parallelism").value;
    if !can_shrink && new.count("succeeded") < before.count("succeeded") {
        errors.push(new.status.at("succeeded").invalid("cannot decrease the succeeded counter"));
    }
    let (completion, old_completion) = (new.status.at("completionTime"), before.status.at("completionTime"));
    if completion.is_set() && old_completion.is_set() && completion.value != old_completion.value {
        errors.push(completion.invalid("field is immutable"));
    }
    let (start, old_start) = (new.status.at("startTime"), before.status.at("startTime"));
    let is_suspended = |facts: &ObservedStatus<'_>, status: &str| {
        facts.status.at("conditions").items().any(|condition| {
            condition.at("type").text() == "Suspended" && condition.at("status").text() == status
        })
    };
    let is_resuming = is_suspended(before, "True") && is_suspended(new, "False");
    if !is_resuming && old_start.is_set() && start.value != old_start.value && !spec.at("suspend").is_true() {
        errors.push(start.invalid("field is immutable for unsuspended job once set"));
    }
    if before.meets_criteria && !new.meets_criteria {
        errors.push(list.invalid("cannot disable the SuccessCriteriaMet=True condition"));
    }
    if before.is_complete && !before.meets_criteria && new.meets_criteria {
        errors.push(
            list.invalid("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"),
        );
    }
}

/// Parses an interval of indexes, `3` or `3-5`, below `completions`.
fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = text.split('-').collect();
    if parts.len() > 2 {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let read = |part: &str| {
        let index: i64 =
            part.parse().map_err(|_| format!("cannot convert string to integer for index: {part:?}"))?;
        if index >= completions { Err(format!("too large index: {part:?}")) } else { Ok(index) }
    };
    let first = read(parts.first().copied().unwrap_or_default())?;
    let Some(last) = parts.get(1) else { return Ok((first, first)) };
    let last = read(last)?;
    if first >= last {
        return Err(format!("non-increasing order, previous: {first}, current: {last}"));
    }
    Ok((first, last))
}

/// Counts the indexes of a list of intervals such as `1,3-5`.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// Returns the first index that two sorted lists of intervals share. Malformed intervals are skipped.
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (completed, failed) = (intervals(completed), intervals(failed));
    let (mut left, mut right) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some((first, last)), Some((from, to))) = (left.peek(), right.peek()) {
        if first <= to && from <= last {
            return Some(*first.max(from));
        }
        if first <= from {
            left.next();
        } else {
            right.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{count_indexes, overlap};

    #[test]
    fn index_lists_are_ordered_intervals_below_completions() {
        for (text, expected) in [("", 0), ("0", 1), ("1,3-5,7", 5)] {
            assert_eq!(count_indexes(text, 8), Ok(expected), "{text}");
        }
        for text in ["8", "1-9", "x", "3,1", "5-3", "1-2-3", "1,,2"] {
            assert!(count_indexes(text, 8).is_err(), "{text}");
        }
    }

    #[test]
    fn an_index_that_is_both_completed_and_failed_is_rejected() {
        assert_eq!(overlap("0,2-4", "1,4", 8), Some(4));
        assert_eq!(overlap("0,2-4", "1,5-6", 8), None);
        assert_eq!(overlap("", "1", 8), None);
    }
}
