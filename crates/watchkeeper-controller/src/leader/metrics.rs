//! Leader election metrics, named as in Kubernetes components.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::metrics::register;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabel {
    name: String,
}

/// The metrics of electors, labelled with the name of the lease.
///
/// `leader_election_master_status` is 1 while a replica leads. `leader_election_slowpath_total` counts
/// renewals for which the holder had to read the lease again.
#[derive(Debug, Clone, Default)]
pub struct LeaderMetrics {
    master_status: Family<LeaseLabel, Gauge>,
    slow_path: Family<LeaseLabel, Counter>,
}

/// The metrics of one lease.
#[derive(Debug, Clone)]
pub(super) struct LeaseSeries {
    pub(super) master_status: Gauge,
    pub(super) slow_path: Counter,
}

impl LeaderMetrics {
    /// Registers the metrics. Call this once per registry.
    pub fn register(registry: &mut Registry) -> Self {
        Self {
            master_status: register(
                registry,
                "leader_election_master_status",
                "Whether this replica leads (1) or is on standby (0)",
                Family::default(),
            ),
            slow_path: register(
                registry,
                "leader_election_slowpath",
                "Renewals that had to read the lease again",
                Family::default(),
            ),
        }
    }

    pub(super) fn lease(&self, name: &str) -> LeaseSeries {
        let label = LeaseLabel { name: name.to_owned() };
        LeaseSeries {
            master_status: self.master_status.get_or_create_owned(&label),
            slow_path: self.slow_path.get_or_create_owned(&label),
        }
    }
}
