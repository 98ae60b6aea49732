//! The list-watch protocol of a wait, as a state machine.

use std::time::Duration;

use crate::{
    classify::{Decision, Failure, Next, Phase, Situation, classify},
    rest::{Backoff, Retry},
};

/// The next request of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// List the object, at the newest state.
    List,
    /// Watch the object from this version.
    Watch { from: Option<String> },
}

/// The list-watch protocol for one object: the next request, and the delay before it.
#[derive(Debug)]
pub(super) struct Follower {
    step: Step,
    version: Option<String>,
    /// The recovery from the last failure, until there is progress.
    tried: Option<Next>,
    backoff: Backoff,
}

impl Follower {
    pub(super) fn new() -> Self {
        // The deadline of the wait ends the attempts, not their number.
        let backoff = Retry::reads().attempts(u32::MAX).backoff();
        Self { step: Step::List, version: None, tried: None, backoff }
    }

    pub(super) fn step(&self) -> Step {
        self.step.clone()
    }

    /// Returns the version of the last observation.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Records a list at `version`. A list is not progress, because its watch may fail at once.
    pub(super) fn listed(&mut self, version: Option<String>) {
        self.step = Step::Watch { from: version.clone() };
        self.version = version;
    }

    /// Records an event of the watch, which is progress.
    pub(super) fn progressed(&mut self, version: Option<&str>) {
        if let Some(version) = version {
            self.version = Some(version.to_owned());
        }
        self.tried = None;
        self.backoff.reset();
    }

    /// Records a failed request. Returns the delay before the next step, or `None` if a retry cannot succeed.
    pub(super) fn failed(&mut self, phase: Phase, failure: Failure) -> Option<Duration> {
        let situation = Situation::at(phase);
        let situation = self.tried.map_or(situation, |tried| situation.after(tried));
        let decision = classify(situation, failure).decision;
        let wait = match decision {
            Decision::Resume | Decision::Relist | Decision::RelistFromScratch => Duration::ZERO,
            Decision::BackOff { retry_after, .. } => self.backoff.next_wait(retry_after)?,
            Decision::GiveUp { .. } => return None,
        };
        self.tried = Some(decision.next());
        self.step = match decision.next() {
            Next::Resume => Step::Watch { from: self.version.clone() },
            Next::Relist | Next::RelistFromScratch => Step::List,
        };
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        classify::Reason,
        error::{ApiReason, TransportKind},
    };

    fn watch(version: &str) -> Step {
        Step::Watch { from: Some(version.to_owned()) }
    }

    #[test]
    fn a_failure_leads_to_a_resume_a_list_or_the_end() {
        let (reset, expired) = (Reason::Transport(TransportKind::Reset), Reason::Api(ApiReason::Expired));
        let unavailable = Reason::Api(ApiReason::Unavailable);
        // The step and whether it comes at once; `None` for the end.
        let cases = [
            (Phase::WatchStream, Reason::Closed, Some((watch("7"), true))),
            (Phase::WatchStream, Reason::ClosedEarly, Some((watch("7"), false))),
            (Phase::WatchStream, reset, Some((watch("7"), true))),
            (Phase::WatchStart, reset, Some((watch("7"), false))),
            (Phase::WatchStream, expired, Some((Step::List, true))),
            (Phase::WatchStart, expired, Some((Step::List, true))),
            (Phase::List, unavailable, Some((Step::List, false))),
            (Phase::WatchStart, unavailable, Some((watch("7"), false))),
            (Phase::List, Reason::Api(ApiReason::Forbidden), None),
            (Phase::WatchStart, Reason::Api(ApiReason::Unauthorized), None),
            (Phase::List, Reason::Api(ApiReason::NotFound), None),
        ];
        for (phase, reason, expected) in cases {
            let mut follower = Follower::new();
            assert_eq!(follower.step(), Step::List);
            follower.listed(Some("5".to_owned()));
            assert_eq!(follower.step(), watch("5"));
            follower.progressed(Some("7"));
            let wait = follower.failed(phase, Failure::new(reason));
            let next = wait.map(|wait| (follower.step(), wait.is_zero()));
            assert_eq!(next, expected, "{phase:?} {reason}");
        }
    }

    #[test]
    fn without_progress_the_same_failure_escalates_with_growing_delays() {
        let mut follower = Follower::new();
        follower.listed(Some("5".to_owned()));
        let early = Failure::closed(false);
        follower.failed(Phase::WatchStream, early).unwrap();
        assert_eq!(follower.step(), watch("5"));
        let first = follower.failed(Phase::WatchStream, early).unwrap();
        assert_eq!(follower.step(), Step::List, "the resumed position may be the cause");
        follower.listed(Some("6".to_owned()));
        let mut last = first;
        for _ in 0..4 {
            last = follower.failed(Phase::WatchStream, early).unwrap();
        }
        assert!(last > first, "{last:?} after {first:?}");
        follower.progressed(Some("8"));
        let after_progress = follower.failed(Phase::WatchStream, early).unwrap();
        assert!(after_progress < last, "{after_progress:?} after progress");
        assert_eq!(follower.step(), watch("8"));
    }

    #[test]
    fn the_wait_that_the_server_requests_is_kept() {
        let mut follower = Follower::new();
        let busy = Failure::new(Reason::Api(ApiReason::TooManyRequests)).after(Duration::from_secs(3));
        assert!(follower.failed(Phase::List, busy).unwrap() >= Duration::from_secs(3));
    }
}
