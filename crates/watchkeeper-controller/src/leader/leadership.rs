//! The observable state of leader election.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::watch;
use watchkeeper_client::Client;

use super::fence;
use crate::time::Time;

/// The state that an elector publishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ElectionState {
    pub(super) leads_until: Option<Duration>,
    pub(super) holder: String,
    pub(super) term: u32,
    pub(super) last_error: Option<Arc<str>>,
}

/// A handle that reports who leads, as observed by this replica.
///
/// The handle is cheap to clone. After the elector has ended it keeps reporting the final state.
///
/// [`is_leader`](Self::is_leader) compares the clock with the end of the leadership at the time of the call.
/// It therefore returns false from the moment leadership ends, even if the elector has not been polled since.
#[derive(Clone)]
pub struct Leadership {
    name: Arc<str>,
    identity: Arc<str>,
    state: watch::Receiver<ElectionState>,
    time: Time,
}

impl Leadership {
    pub(super) fn new(name: &str, identity: &str, state: watch::Receiver<ElectionState>, time: Time) -> Self {
        Self { name: name.into(), identity: identity.into(), state, time }
    }

    /// Returns whether this replica, and no other, leads now.
    pub fn is_leader(&self) -> bool {
        self.leads_until().is_some()
    }

    /// Returns the time, on the elector's clock, at which leadership ends unless renewed; `None` if this
    /// replica does not lead.
    pub fn leads_until(&self) -> Option<Duration> {
        self.state.borrow().leads_until.filter(|end| self.time.now() < *end)
    }

    /// Returns the number of the current term while this replica leads. It is greater than the number of
    /// every earlier term.
    pub fn term(&self) -> Option<u32> {
        let state = self.state.borrow();
        state.leads_until.filter(|end| self.time.now() < *end).map(|_| state.term)
    }

    /// Returns the last observed holder of the lease; empty if the lease was free.
    #[doc(alias = "GetLeader")]
    #[doc(alias = "LeaderElectionRecord")]
    pub fn holder(&self) -> String {
        self.state.borrow().holder.clone()
    }

    /// Returns the identity of this replica.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the name of the lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the error of the last lease request, or `None` if that request succeeded.
    #[doc(alias = "HealthzAdaptor")]
    pub fn last_error(&self) -> Option<Arc<str>> {
        self.state.borrow().last_error.clone()
    }

    /// Waits until this replica leads. Returns false if the elector ended first.
    pub async fn acquired(&mut self) -> bool {
        loop {
            if self.is_leader() {
                return true;
            }
            if self.state.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Waits until the holder of the lease differs from `holder`, and returns the new holder (empty if the
    /// lease is free). Returns `None` if the elector ended first.
    #[doc(alias = "OnNewLeader")]
    pub async fn holder_other_than(&mut self, holder: &str) -> Option<String> {
        self.state.wait_for(|state| state.holder != holder).await.ok().map(|state| state.holder.clone())
    }

    /// Waits until this replica does not lead.
    pub async fn lost(&mut self) {
        while let Some(end) = self.leads_until() {
            let is_renewed = tokio::select! {
                changed = self.state.changed() => changed.is_ok(),
                () = self.time.sleep_until(end) => true,
            };
            if !is_renewed {
                // The elector has ended, so the current deadline is final.
                self.time.sleep_until(end).await;
            }
        }
    }

    /// Returns a client that rejects writes unless this replica leads at the time of sending. A rejected
    /// write fails with [`NotLeading`](super::NotLeading). Reads are not affected.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, as [`watchkeeper_client::kube_client::Client::new`] does.
    pub fn fence(&self, client: &Client) -> Client {
        fence::fence(client, self.clone())
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("name", &self.name)
            .field("identity", &self.identity)
            .field("is_leader", &self.is_leader())
            .field("holder", &self.state.borrow().holder)
            .finish_non_exhaustive()
    }
}
