//! What becomes of a key, by how its reconcile ended.

use std::time::Duration;

use crate::{ErrorClass, action::Action, action::Requeue};

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It worked.
    Worked(Action),
    /// It returned an error.
    Failed(ErrorClass),
    /// It panicked.
    Panicked,
    /// It took longer than it may.
    TimedOut,
    /// It was dropped, because the controller stops.
    Cancelled,
}

/// What becomes of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It leaves, and its failures are forgotten.
    Forget,
    /// It comes back, and its failures are forgotten.
    Requeue(Requeue),
    /// It comes back after its backoff, with one failure more.
    Retry,
    /// It comes back soon, as if nothing had been: not counted as a failure.
    PutBack(Duration),
    /// It leaves, because trying again is of no use.
    Abandon,
    /// It leaves, because it was tried often enough.
    GiveUp,
}

/// How long the first of several conflicts in a row waits; each further one twice as long.
const FIRST_CONFLICT: Duration = Duration::from_millis(10);
/// How long a conflict waits at most.
const LONGEST_CONFLICT: Duration = Duration::from_secs(30);

/// What becomes of a key that had failed `failures` times before this, and conflicted `conflicts` times in a row.
pub(crate) fn decide(outcome: Outcome, failures: u32, conflicts: u32, retry_limit: Option<u32>) -> Verdict {
    match outcome {
        Outcome::Worked(action) => action.requeue().map_or(Verdict::Forget, Verdict::Requeue),
        Outcome::Failed(ErrorClass::Terminal) => Verdict::Abandon,
        Outcome::Failed(ErrorClass::Conflict) => Verdict::PutBack(conflict_delay(conflicts)),
        Outcome::Failed(ErrorClass::Retry) | Outcome::Panicked | Outcome::TimedOut => {
            if retry_limit.is_some_and(|limit| failures >= limit) { Verdict::GiveUp } else { Verdict::Retry }
        }
        Outcome::Cancelled => Verdict::PutBack(Duration::ZERO),
    }
}

fn conflict_delay(conflicts: u32) -> Duration {
    FIRST_CONFLICT.saturating_mul(1 << conflicts.min(16)).min(LONGEST_CONFLICT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use watchkeeper_workqueue::Priority;

    use super::*;

    const RETRY: Outcome = Outcome::Failed(ErrorClass::Retry);

    #[test]
    fn each_outcome_has_its_verdict() {
        let later = Action::requeue_after(Duration::from_secs(5)).with_priority(Priority::LOW);
        let requeue = Requeue { after: Duration::from_secs(5), priority: Some(Priority::LOW) };
        let cases = [
            (Outcome::Worked(Action::done()), 3, None, Verdict::Forget),
            (Outcome::Worked(Action::done().with_priority(Priority::HIGH)), 3, Some(0), Verdict::Forget),
            (Outcome::Worked(later), 3, Some(1), Verdict::Requeue(requeue)),
            (RETRY, 0, None, Verdict::Retry),
            (RETRY, 1_000_000, None, Verdict::Retry),
            (RETRY, 4, Some(5), Verdict::Retry),
            (RETRY, 5, Some(5), Verdict::GiveUp),
            (RETRY, 0, Some(0), Verdict::GiveUp),
            (Outcome::Panicked, 4, Some(5), Verdict::Retry),
            (Outcome::Panicked, 5, Some(5), Verdict::GiveUp),
            (Outcome::TimedOut, 5, Some(5), Verdict::GiveUp),
            (Outcome::Failed(ErrorClass::Terminal), 0, None, Verdict::Abandon),
            (Outcome::Failed(ErrorClass::Conflict), 5, Some(5), Verdict::PutBack(Duration::from_millis(10))),
            (Outcome::Cancelled, 9, Some(5), Verdict::PutBack(Duration::ZERO)),
        ];
        for (outcome, failures, limit, verdict) in cases {
            assert_eq!(
                decide(outcome, failures, 0, limit),
                verdict,
                "{outcome:?} after {failures}, limit {limit:?}"
            );
        }
    }

    #[test]
    fn conflicts_in_a_row_wait_twice_as_long_each_up_to_a_bound() {
        let delays: Vec<_> = (0..4).map(|n| conflict_delay(n).as_millis()).collect();
        assert_eq!(delays, [10, 20, 40, 80]);
        assert_eq!(conflict_delay(u32::MAX), LONGEST_CONFLICT);
    }

    proptest! {
        #[test]
        fn a_key_that_always_fails_is_tried_once_and_then_as_often_as_the_limit_says(limit in 0..50_u32) {
            let tries = (0..).take_while(|&failures| decide(RETRY, failures, 0, Some(limit)) == Verdict::Retry);
            prop_assert_eq!(tries.count(), limit as usize);
        }
    }
}
