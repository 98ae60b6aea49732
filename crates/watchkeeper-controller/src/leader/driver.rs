//! Runs the [`Elector`] state machine against the API server.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube_core::params::PostParams;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::{Client, Error, rest::ResourceClient};

use super::{
    LeaderElection, Leadership,
    elector::{Elector, ElectorAction, ObservedLease, RequestOutcome},
    leadership::ElectionState,
    metrics::{LeaderMetrics, LeaseSeries},
    record::LeaseRecord,
};
use crate::time::Time;

/// The reason that a leadership ended before a stop was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeadError {
    /// Another replica holds the lease, or the lease could not be renewed in time.
    #[error(
        "{identity} lost the lease {namespace}/{name} ({reason}); its work must stop; restart the process to compete for the lease again"
    )]
    Lost {
        /// The namespace of the lease.
        namespace: String,
        /// The name of the lease.
        name: String,
        /// The identity of this replica.
        identity: String,
        /// The current holder of the lease, or the last error.
        reason: String,
    },
}

/// A term of leadership, as passed to the work that runs while leading.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Term {
    /// The number of the term. It is greater than the number of every earlier term.
    pub number: u32,
    /// Cancelled when the work must end because a stop was requested or the lease was lost.
    /// [`Leadership::is_leader`] distinguishes the two cases.
    pub stop: CancellationToken,
}

/// A participant in leader election on behalf of one replica, with the guarantees of the [module](super).
///
/// An elector does nothing until it is run. [`lead`](Self::lead) runs the election together with the work to
/// do while leading; [`run`](Self::run) and [`release`](Self::release) are the two halves for callers that
/// run the work elsewhere.
#[derive(Debug)]
#[must_use = "an elector does nothing until it is run"]
pub struct LeaderElector {
    leases: ResourceClient<Lease>,
    election: LeaderElection,
    time: Time,
    elector: Elector,
    /// The lease as last read or written, so that a renewal preserves fields that others set.
    lease: Option<Lease>,
    state: watch::Sender<ElectionState>,
    metrics: LeaseSeries,
}

impl LeaderElector {
    /// Creates an elector that uses the system clocks.
    pub fn new(client: impl Into<Client>, election: LeaderElection) -> Self {
        Self::with(client, election, Time::system(), &LeaderMetrics::default())
    }

    /// Creates an elector that uses the given clocks and metrics.
    pub fn with(
        client: impl Into<Client>,
        election: LeaderElection,
        time: Time,
        metrics: &LeaderMetrics,
    ) -> Self {
        let leases = client.into().resource().namespace(&election.namespace);
        // Seeded by the identity: the jitter differs between replicas, and a run is reproducible.
        let seed = election.identity.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let elector = Elector::new(&election.identity, election.timing, seed);
        let metrics = metrics.lease(&election.name);
        metrics.master_status.set(0);
        Self { leases, election, time, elector, lease: None, state: watch::Sender::default(), metrics }
    }

    /// Returns a handle that reports who leads, as observed by this elector.
    pub fn leadership(&self) -> Leadership {
        let receiver = self.state.subscribe();
        Leadership::new(&self.election.name, &self.election.identity, receiver, self.time.clone())
    }

    /// Waits to acquire the lease, runs `work` until `stop` is cancelled, the lease is lost or the work
    /// returns, then releases the lease.
    ///
    /// The lease is renewed until the work has ended, and released only then. After the lease is lost, the
    /// work may run until another replica can acquire the lease; work that has not ended by then is dropped
    /// at its next await.
    ///
    /// The work runs in the task that renews the lease. Run code that blocks its thread in another task, or
    /// the lease is lost.
    ///
    /// # Errors
    /// Returns [`LeadError::Lost`] if the lease was lost.
    #[doc(alias = "LeaderCallbacks")]
    #[doc(alias = "RunOrDie")]
    #[doc(alias = "OnStartedLeading")]
    #[doc(alias = "OnStoppedLeading")]
    pub async fn lead<W, F>(mut self, stop: CancellationToken, work: W) -> Result<(), LeadError>
    where
        W: FnOnce(Term) -> F,
        F: Future<Output = ()>,
    {
        let mut leadership = self.leadership();
        let (has_ended, stop_work) = (CancellationToken::new(), stop.child_token());
        let margin = self.margin();
        let time = self.time.clone();
        let lost = CancellationToken::new();
        let working = async {
            tokio::select! {
                _ = leadership.acquired() => {}
                () = stop.cancelled() => return has_ended.cancel(),
                // The lease was acquired and lost before this task was polled.
                () = lost.cancelled() => return,
            }
            let term = Term { number: leadership.term().unwrap_or_default(), stop: stop_work.clone() };
            let expired = async {
                lost.cancelled().await;
                stop_work.cancel();
                time.sleep(margin).await;
            };
            tokio::select! {
                () = work(term) => {}
                () = expired => tracing::error!(lease = %leadership.name(), "work still running when the lost lease expired; dropped"),
            }
            has_ended.cancel();
        };
        let electing = async {
            let result = self.run(has_ended.clone()).await;
            if result.is_err() {
                lost.cancel();
            }
            result
        };
        let ((), result) = tokio::join!(working, electing);
        self.release().await;
        result
    }

    /// Acquires the lease and renews it until `stop` is cancelled or the lease is lost.
    ///
    /// Cancel `stop` when the work has ended, then call [`release`](Self::release). Run an elector only once.
    ///
    /// # Errors
    /// Returns [`LeadError::Lost`] if this replica led and lost the lease.
    pub async fn run(&mut self, stop: CancellationToken) -> Result<(), LeadError> {
        let mut has_led = false;
        while !stop.is_cancelled() {
            let mut action = Some(self.elector.next(self.time.moment()));
            while let Some(request) = action.take() {
                let is_leading = self.publish();
                if has_led && !is_leading {
                    return Err(self.lost());
                }
                has_led |= is_leading;
                action = match request {
                    ElectorAction::Done => return Ok(()),
                    ElectorAction::WaitUntil(at) => {
                        tokio::select! {
                            () = self.time.sleep_until(at) => {}
                            () = stop.cancelled() => {}
                        }
                        None
                    }
                    request => self.send_while_leading(request, &stop).await,
                };
            }
        }
        Ok(())
    }

    /// Releases the lease if this replica holds it, so that another replica can acquire it immediately. If
    /// the API server cannot be reached, the attempt is abandoned after a while and the lease expires.
    pub async fn release(&mut self) {
        if !self.election.is_released {
            self.elector.release();
            self.publish();
            return;
        }
        self.elector.release();
        self.publish();
        let (time, timeout) = (self.time.clone(), self.request_timeout());
        // Boxed because the requests make this future large, and every caller that ends an elector contains
        // it.
        let steps = Box::pin(self.release_steps());
        let is_done = time.within(timeout, steps).await.is_some();
        if !is_done {
            tracing::warn!(
                lease = %self.election.name, identity = %self.election.identity, error = self.last_error(),
                "lease not released; it will expire"
            );
        }
        self.publish();
    }

    async fn release_steps(&mut self) {
        loop {
            match self.elector.next(self.time.moment()) {
                ElectorAction::Done => return,
                ElectorAction::WaitUntil(at) => self.time.sleep_until(at).await,
                request => {
                    let outcome = self.send(&request).await;
                    // While releasing, no request has to be sent immediately.
                    let _ = self.elector.outcome(self.time.moment(), outcome);
                }
            }
        }
    }

    /// Returns the time between the end of this replica's leadership and the earliest start of another's.
    pub(crate) fn margin(&self) -> Duration {
        let timing = &self.election.timing;
        timing.lease_duration().saturating_sub(timing.renew_deadline())
    }

    /// Returns the timeout of a request: half the renew deadline, so that one request that hangs leaves time
    /// for a second.
    fn request_timeout(&self) -> Duration {
        (self.election.timing.renew_deadline() / 2).max(Duration::from_secs(1))
    }

    /// Sends a request and waits for the response until it times out, leadership ends or `stop` is cancelled.
    async fn send_while_leading(
        &mut self,
        request: ElectorAction,
        stop: &CancellationToken,
    ) -> Option<ElectorAction> {
        let leads_until = self.elector.leads_until();
        if leads_until.is_some() && request == ElectorAction::Read {
            self.metrics.slow_path.inc();
        }
        let time = self.time.clone();
        let end = async {
            match leads_until {
                Some(end) => time.sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        let outcome = tokio::select! {
            biased;
            outcome = self.send(&request) => outcome,
            () = end => {
                self.set_last_error(Some("no response to the lease request before leadership ended"));
                RequestOutcome::Failed
            }
            // The response is not needed: a release reads the lease first.
            () = stop.cancelled() => return None,
        };
        self.elector.outcome(self.time.moment(), outcome)
    }

    async fn send(&mut self, request: &ElectorAction) -> RequestOutcome {
        let timeout = self.request_timeout();
        let (time, params) = (self.time.clone(), PostParams::default());
        let result = match request {
            ElectorAction::Read => {
                time.within(timeout, self.leases.get_opt(&self.election.name)).await.map(|result| {
                    result.map(|lease| {
                        lease
                            .map_or(RequestOutcome::Absent, |lease| self.observe(lease, RequestOutcome::Read))
                    })
                })
            }
            ElectorAction::Create(record) => {
                let lease = self.lease_of(record, None);
                let create = self.leases.create(&params, &lease);
                let result = time.within(timeout, create).await;
                result.map(|result| self.written(result, Error::is_already_exists))
            }
            ElectorAction::Update { record, over } => {
                let lease = self.lease_of(record, Some(over));
                let update = self.leases.update(&params, &lease);
                let result = time.within(timeout, update).await;
                result.map(|result| self.written(result, Error::is_conflict))
            }
            ElectorAction::WaitUntil(_) | ElectorAction::Done => Some(Ok(RequestOutcome::Failed)),
        };
        match result {
            Some(Ok(outcome)) => {
                self.set_last_error(None);
                outcome
            }
            Some(Err(error)) => {
                tracing::warn!(lease = %self.election.name, %error, "lease request failed");
                self.set_last_error(Some(&error.to_string()));
                RequestOutcome::Failed
            }
            None => {
                tracing::warn!(lease = %self.election.name, ?timeout, "lease request timed out");
                self.set_last_error(Some("lease request timed out"));
                RequestOutcome::Failed
            }
        }
    }

    fn written(
        &mut self,
        result: Result<Lease, Error>,
        is_conflict: impl Fn(&Error) -> bool,
    ) -> Result<RequestOutcome, Error> {
        match result {
            Ok(lease) => Ok(self.observe(lease, RequestOutcome::Written)),
            Err(error) if is_conflict(&error) => Ok(RequestOutcome::Conflict),
            Err(error) if error.is_object_not_found() => Ok(RequestOutcome::Absent),
            Err(error) => Err(error),
        }
    }

    fn observe(
        &mut self,
        lease: Lease,
        outcome: impl FnOnce(ObservedLease) -> RequestOutcome,
    ) -> RequestOutcome {
        let record = LeaseRecord::parse(lease.spec.as_ref());
        let uid = lease.metadata.uid.clone().unwrap_or_default();
        let resource_version = lease.metadata.resource_version.clone().unwrap_or_default();
        self.lease = Some(lease);
        outcome(ObservedLease { record, uid, resource_version })
    }

    /// Returns the lease to write. Fields that others set are preserved, except when the lease is created.
    fn lease_of(&self, record: &LeaseRecord, over: Option<&str>) -> Lease {
        let mut lease = self.lease.clone().filter(|_| over.is_some()).unwrap_or_default();
        lease.metadata.name = Some(self.election.name.clone());
        lease.metadata.namespace = Some(self.election.namespace.clone());
        lease.metadata.resource_version = over.map(str::to_owned);
        lease.metadata.managed_fields = None;
        if over.is_none() && !self.election.labels.is_empty() {
            lease.metadata.labels = Some(self.election.labels.clone());
        }
        record.write_to(lease.spec.get_or_insert_with(LeaseSpec::default));
        lease
    }

    /// Publishes the state of the elector and returns whether this replica leads.
    fn publish(&self) -> bool {
        let is_leading = self.elector.is_leader(self.time.now());
        self.metrics.master_status.set(i64::from(is_leading));
        self.state.send_if_modified(|state| {
            let was_leading = state.leads_until.is_some();
            let leads_until = self.elector.leads_until().filter(|_| is_leading);
            let next = ElectionState {
                leads_until,
                holder: self.elector.holder().to_owned(),
                term: self.elector.term(),
                last_error: state.last_error.clone(),
            };
            if is_leading != was_leading {
                tracing::info!(
                    lease = %self.election.name, identity = %self.election.identity, term = next.term, is_leading,
                    "leadership changed"
                );
            }
            let has_changed = *state != next;
            *state = next;
            has_changed
        });
        is_leading
    }

    fn set_last_error(&self, error: Option<&str>) {
        self.state.send_if_modified(|state| {
            let error: Option<Arc<str>> = error.map(Into::into);
            let has_changed = state.last_error != error;
            state.last_error = error;
            has_changed
        });
    }

    fn last_error(&self) -> String {
        self.state.borrow().last_error.as_deref().unwrap_or_default().to_owned()
    }

    fn lost(&self) -> LeadError {
        let holder = self.elector.holder();
        let reason = if holder != self.election.identity && !holder.is_empty() {
            format!("{holder} holds the lease")
        } else if let Some(error) = &self.state.borrow().last_error {
            error.to_string()
        } else {
            "another client changed the lease".to_owned()
        };
        LeadError::Lost {
            namespace: self.election.namespace.clone(),
            name: self.election.name.clone(),
            identity: self.election.identity.clone(),
            reason,
        }
    }
}
