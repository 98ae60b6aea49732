//! The mapping from the outcome of a reconcile to the next queue operation.

use std::time::Duration;

use super::{Action, ErrorClass, Requeue};

/// The outcome of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The reconcile succeeded.
    Succeeded(Action),
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
pub(crate) enum Decision {
    /// Remove the key and reset its failures.
    Forget,
    /// Requeue the key and reset its failures.
    Requeue(Requeue),
    /// Requeue after the backoff of the key, with one more failure.
    Retry,
    /// Requeue the key after this delay without counting a failure.
    RequeueUncounted(Duration),
    /// Remove the key: the error is terminal.
    AbandonTerminal,
    /// Remove the key: its retries are exhausted.
    AbandonExhausted,
}

/// The delay after the first of several consecutive conflicts. The delay doubles with each further conflict.
const MIN_CONFLICT_DELAY: Duration = Duration::from_millis(10);
/// The maximum delay after a conflict.
const MAX_CONFLICT_DELAY: Duration = Duration::from_secs(30);

/// Returns the next queue operation for a key that had `failures` failures before, and `conflicts`
/// consecutive conflicts.
pub(crate) fn decide(outcome: Outcome, failures: u32, conflicts: u32, retry_limit: Option<u32>) -> Decision {
    match outcome {
        Outcome::Succeeded(action) => action.requeue().map_or(Decision::Forget, Decision::Requeue),
        Outcome::Failed(ErrorClass::Terminal) => Decision::AbandonTerminal,
        Outcome::Failed(ErrorClass::Conflict) => Decision::RequeueUncounted(conflict_delay(conflicts)),
        Outcome::Failed(ErrorClass::Retry) | Outcome::Panicked | Outcome::TimedOut => {
            if retry_limit.is_some_and(|limit| failures >= limit) {
                Decision::AbandonExhausted
            } else {
                Decision::Retry
            }
        }
        Outcome::Cancelled => Decision::RequeueUncounted(Duration::ZERO),
    }
}

fn conflict_delay(conflicts: u32) -> Duration {
    MIN_CONFLICT_DELAY.saturating_mul(1 << conflicts.min(16)).min(MAX_CONFLICT_DELAY)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use watchkeeper_workqueue::Priority;

    use super::*;

    const RETRY: Outcome = Outcome::Failed(ErrorClass::Retry);

    #[test]
    fn each_outcome_leads_to_one_decision() {
        let later = Action::requeue_after(Duration::from_secs(5)).with_priority(Priority::LOW);
        let requeue = Requeue { after: Duration::from_secs(5), priority: Some(Priority::LOW) };
        let cases = [
            (Outcome::Succeeded(Action::done()), 3, None, Decision::Forget),
            (Outcome::Succeeded(Action::done().with_priority(Priority::HIGH)), 3, Some(0), Decision::Forget),
            (Outcome::Succeeded(later), 3, Some(1), Decision::Requeue(requeue)),
            (RETRY, 0, None, Decision::Retry),
            (RETRY, 1_000_000, None, Decision::Retry),
            (RETRY, 4, Some(5), Decision::Retry),
            (RETRY, 5, Some(5), Decision::AbandonExhausted),
            (RETRY, 0, Some(0), Decision::AbandonExhausted),
            (Outcome::Panicked, 4, Some(5), Decision::Retry),
            (Outcome::Panicked, 5, Some(5), Decision::AbandonExhausted),
            (Outcome::TimedOut, 5, Some(5), Decision::AbandonExhausted),
            (Outcome::Failed(ErrorClass::Terminal), 0, None, Decision::AbandonTerminal),
            (
                Outcome::Failed(ErrorClass::Conflict),
                5,
                Some(5),
                Decision::RequeueUncounted(Duration::from_millis(10)),
            ),
            (Outcome::Cancelled, 9, Some(5), Decision::RequeueUncounted(Duration::ZERO)),
        ];
        for (outcome, failures, limit, decision) in cases {
            assert_eq!(
                decide(outcome, failures, 0, limit),
                decision,
                "{outcome:?} after {failures}, limit {limit:?}"
            );
        }
    }

    #[test]
    fn the_delay_doubles_with_each_consecutive_conflict_up_to_a_maximum() {
        let delays: Vec<_> = (0..4).map(|n| conflict_delay(n).as_millis()).collect();
        assert_eq!(delays, [10, 20, 40, 80]);
        assert_eq!(conflict_delay(u32::MAX), MAX_CONFLICT_DELAY);
    }

    proptest! {
        #[test]
        fn a_key_that_always_fails_is_retried_up_to_the_limit(limit in 0..50_u32) {
            let retries = (0..).take_while(|&failures| decide(RETRY, failures, 0, Some(limit)) == Decision::Retry);
            prop_assert_eq!(retries.count(), limit as usize);
        }
    }
}
