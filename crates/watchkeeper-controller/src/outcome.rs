//! The mapping from the outcome of a reconcile to the next queue operation.

use std::time::Duration;

use crate::{ErrorClass, action::Action, action::Requeue};

/// The outcome of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The reconcile succeeded.
    Worked(Action),
    /// The reconcile returned an error.
    Failed(ErrorClass),
    /// The reconcile panicked.
    Panicked,
    /// The reconcile timed out.
    TimedOut,
    /// The reconcile was dropped because the controller is stopping.
    Cancelled,
}

/// The next queue operation on the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Remove the key and reset its failures.
    Forget,
    /// Requeue the key and reset its failures.
    Requeue(Requeue),
    /// Requeue after the backoff of the key, with one more failure.
    Retry,
    /// Requeue the key after this delay; the reconcile does not count as a failure.
    PutBack(Duration),
    /// Remove the key: the error is terminal.
    Abandon,
    /// Remove the key: its retries are exhausted.
    GiveUp,
}

/// The delay after the first of several consecutive conflicts; it doubles with each further one.
const FIRST_CONFLICT: Duration = Duration::from_millis(10);
/// The maximum delay after a conflict.
const LONGEST_CONFLICT: Duration = Duration::from_secs(30);

/// Returns the next queue operation for a key that had `failures` failures before, and `conflicts`
/// consecutive conflicts.
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
