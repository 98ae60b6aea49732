//! Faults that are active, and their guards.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use tokio::sync::watch;

use super::{Fault, Requests, Shared, fault::Effect, requests::Target};

/// A fault that is active. Dropping the guard removes the fault.
#[must_use = "dropping the guard removes the fault"]
pub struct ActiveFault {
    count: Arc<watch::Sender<u64>>,
    shared: Weak<Shared>,
}

/// A fault with its state.
pub(super) struct Rule {
    requests: Requests,
    fault: Fault,
    matched: u64,
    count: Arc<watch::Sender<u64>>,
}

/// Returns a fault in its first state, and its guard.
pub(super) fn activate(requests: Requests, fault: Fault, shared: &Arc<Shared>) -> (Rule, ActiveFault) {
    let count = Arc::new(watch::Sender::new(0));
    let active = ActiveFault { count: Arc::clone(&count), shared: Arc::downgrade(shared) };
    (Rule { requests, fault, matched: 0, count }, active)
}

impl Rule {
    /// Returns the effect on the requests that the fault applies to.
    pub(super) fn effect(&self) -> &Effect {
        &self.fault.effect
    }

    /// Returns whether the fault applies to a request, and counts the request.
    pub(super) fn applies_to(&mut self, target: &Target) -> bool {
        let is_affected = self.fault.effect != Effect::CutWatches || target.is_watch();
        if !is_affected || !self.requests.contains(target) {
            return false;
        }
        self.matched += 1;
        if self.matched <= self.fault.skip || *self.count.borrow() >= self.fault.times {
            return false;
        }
        self.count.send_modify(|count| *count += 1);
        true
    }
}

impl ActiveFault {
    /// Returns the number of requests that were affected.
    pub fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Waits until the fault has affected at least `count` requests.
    ///
    /// The wait has no deadline of its own. It does not end if the fault cannot affect as many requests.
    pub async fn reached(&self, count: u64) {
        // The sender is in this guard, so the wait cannot fail.
        let _ = self.count.subscribe().wait_for(|affected| *affected >= count).await;
    }
}

impl Drop for ActiveFault {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.state.lock().rules.retain(|rule| !Arc::ptr_eq(&rule.count, &self.count));
        }
    }
}

impl fmt::Debug for ActiveFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveFault").field("count", &self.count()).finish_non_exhaustive()
    }
}
