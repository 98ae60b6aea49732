//! Who leads, for everybody who wants to know.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::watch;
use watchkeeper_client::Client;

use super::fence;
use crate::time::Time;

/// What an elector makes known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) leads_until: Option<Duration>,
    pub(super) holder: String,
    pub(super) term: u32,
    pub(super) last_error: Option<Arc<str>>,
}

/// Who leads, as seen by this replica. Cheap to clone; knows as much after its elector has ended as it knew at the end.
///
/// [`is_leader`](Self::is_leader) is decided by the clock when it is asked, not by what somebody said some time ago: it is
/// false from the moment leading ends, though the elector may not have come round to noticing.
#[derive(Clone)]
pub struct Leadership {
    name: Arc<str>,
    identity: Arc<str>,
    state: watch::Receiver<State>,
    time: Time,
}

impl Leadership {
    pub(super) fn new(name: &str, identity: &str, state: watch::Receiver<State>, time: Time) -> Self {
        Self { name: name.into(), identity: identity.into(), state, time }
    }

    /// This replica leads now, and no other does.
    pub fn is_leader(&self) -> bool {
        self.leads_until().is_some()
    }

    /// When leading ends unless it is renewed, on the elector's clock; `None` when this replica does not lead now.
    pub fn leads_until(&self) -> Option<Duration> {
        self.state.borrow().leads_until.filter(|end| self.time.now() < *end)
    }

    /// The number of this leadership, while this replica leads: greater than that of each one before.
    pub fn term(&self) -> Option<u32> {
        let state = self.state.borrow();
        state.leads_until.filter(|end| self.time.now() < *end).map(|_| state.term)
    }

    /// Who held the lease when this replica last looked; empty when nobody did.
    pub fn holder(&self) -> String {
        self.state.borrow().holder.clone()
    }

    /// The name of this replica.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The name of the lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why the last request about the lease failed, until one succeeds.
    pub fn last_error(&self) -> Option<Arc<str>> {
        self.state.borrow().last_error.clone()
    }

    /// Waits until this replica leads. False if its elector ended before.
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

    /// Waits until somebody else than `holder` holds the lease, and says who; empty when nobody does. `None` if the elector
    /// ended before.
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
                // Nobody renews any more, so this end is the end.
                self.time.sleep_until(end).await;
            }
        }
    }

    /// The same client, except that it sends no write unless this replica leads at the moment of sending; the write fails
    /// with [`NotLeading`](super::NotLeading) instead. Reads pass.
    ///
    /// # Panics
    /// Outside a tokio runtime, as [`kube_client::Client::new`] does.
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
