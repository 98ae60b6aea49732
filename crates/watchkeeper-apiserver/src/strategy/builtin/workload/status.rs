//! Rules of workload statuses: counts are not negative, and no part exceeds the total.

use crate::strategy::{
    cursor::{Cursor, Errors},
    table::{
        Rule::{AtLeast, Check, CheckChange},
        RuleTable,
    },
};

pub(super) const REPLICA_SET: RuleTable = &[
    ("replicas", &[AtLeast(0)]),
    ("fullyLabeledReplicas", &[AtLeast(0)]),
    ("readyReplicas", &[AtLeast(0)]),
    ("availableReplicas", &[AtLeast(0)]),
    ("observedGeneration", &[AtLeast(0)]),
    ("terminatingReplicas", &[AtLeast(0)]),
    (
        "",
        &[Check(|status, errors| {
            parts(
                status,
                &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
                "readyReplicas",
                errors,
            );
        })],
    ),
];

pub(super) const DEPLOYMENT: RuleTable = &[
    ("observedGeneration", &[AtLeast(0)]),
    ("replicas", &[AtLeast(0)]),
    ("updatedReplicas", &[AtLeast(0)]),
    ("readyReplicas", &[AtLeast(0)]),
    ("availableReplicas", &[AtLeast(0)]),
    ("unavailableReplicas", &[AtLeast(0)]),
    ("terminatingReplicas", &[AtLeast(0)]),
    ("collisionCount", &[AtLeast(0)]),
    (
        "",
        &[Check(|status, errors| {
            parts(
                status,
                &["updatedReplicas", "readyReplicas", "availableReplicas"],
                "readyReplicas",
                errors,
            );
        })],
    ),
    ("collisionCount", &[CheckChange(not_decremented)]),
];

pub(super) const STATEFUL_SET: RuleTable = &[
    ("replicas", &[AtLeast(0)]),
    ("readyReplicas", &[AtLeast(0)]),
    ("currentReplicas", &[AtLeast(0)]),
    ("updatedReplicas", &[AtLeast(0)]),
    ("availableReplicas", &[AtLeast(0)]),
    ("observedGeneration", &[AtLeast(0)]),
    ("collisionCount", &[AtLeast(0)]),
    (
        "",
        &[Check(|status, errors| {
            let members = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
            parts(status, &members, "status.readyReplicas", errors);
        })],
    ),
    ("collisionCount", &[CheckChange(not_decremented)]),
];

pub(super) const DAEMON_SET: RuleTable = &[
    ("currentNumberScheduled", &[AtLeast(0)]),
    ("numberMisscheduled", &[AtLeast(0)]),
    ("desiredNumberScheduled", &[AtLeast(0)]),
    ("numberReady", &[AtLeast(0)]),
    ("observedGeneration", &[AtLeast(0)]),
    ("updatedNumberScheduled", &[AtLeast(0)]),
    ("numberAvailable", &[AtLeast(0)]),
    ("numberUnavailable", &[AtLeast(0)]),
    ("collisionCount", &[AtLeast(0)]),
    ("collisionCount", &[CheckChange(not_decremented)]),
];

/// Rejects parts that exceed the number of replicas, and more available than ready replicas.
fn parts(status: &Cursor<'_>, members: &[&str], ready_name: &str, errors: &mut Errors) {
    let count = |member: &str| status.at(member).int().unwrap_or(0);
    for member in members.iter().filter(|member| count(member) > count("replicas")) {
        errors.push(status.at(member).invalid("cannot be greater than status.replicas"));
    }
    if count("availableReplicas") > count("readyReplicas") {
        let available = status.at("availableReplicas");
        errors.push(available.invalid(format!("cannot be greater than {ready_name}")));
    }
}

fn not_decremented(count: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    if old.int().is_some_and(|old| count.int().unwrap_or(0) < old || count.int().is_none()) {
        let mut error = count.invalid("cannot be decremented");
        error.bad_value = Some(count.int().unwrap_or(0).into());
        errors.push(error);
    }
}
