//! Leases for leader election.

use super::row::{PLAIN, StrategyRow};
use crate::strategy::{edit::DefaultValue::EmptyObject, table::Rule};

pub(super) const LEASE: StrategyRow = StrategyRow {
    creates_on_update: true,
    takes_unconditional_update: false,
    qualifies_finalizers: false,
    zeros: &[("", "spec", EmptyObject)],
    gated: &[(
        "spec",
        &[("strategy", "CoordinatedLeaderElection"), ("preferredHolder", "CoordinatedLeaderElection")],
    )],
    table: &[
        (
            "spec.leaseDurationSeconds",
            &[Rule::Check(|seconds, errors| {
                if seconds.int().is_some_and(|seconds| seconds <= 0) {
                    errors.push(seconds.invalid("must be greater than 0"));
                }
            })],
        ),
        ("spec.leaseTransitions", &[Rule::AtLeast(0)]),
    ],
    ..PLAIN
};
