//! Metrics under the names Kubernetes' own components have.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabel {
    name: String,
}

/// What electors count: `leader_election_master_status` is 1 where and while a replica leads, `leader_election_slowpath_total` how
/// often a holder had to read the lease again to renew it. Both are labelled with the lease's name.
#[derive(Debug, Clone, Default)]
pub struct LeaderMetrics {
    master_status: Family<LeaseLabel, Gauge>,
    slow_path: Family<LeaseLabel, Counter>,
}

/// The metrics of one lease.
#[derive(Debug, Clone)]
pub(super) struct OneLease {
    pub(super) master_status: Gauge,
    pub(super) slow_path: Counter,
}

impl LeaderMetrics {
    /// Registers the metrics. Once for each registry.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "leader_election_master_status",
            "Whether this replica leads: 1 if it does, 0 if it stands by",
            metrics.master_status.clone(),
        );
        registry.register(
            "leader_election_slowpath",
            "Renewals that needed the lease to be read again",
            metrics.slow_path.clone(),
        );
        metrics
    }

    pub(super) fn lease(&self, name: &str) -> OneLease {
        let label = LeaseLabel { name: name.to_owned() };
        OneLease {
            master_status: self.master_status.get_or_create_owned(&label),
            slow_path: self.slow_path.get_or_create_owned(&label),
        }
    }
}
