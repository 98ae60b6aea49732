//! Configuration of leader election: the lease, the identity of the replica and the timing.

use std::collections::BTreeMap;

use super::Timing;

/// Leader election settings: the lease that replicas share, the identity of this replica, and the timing.
#[doc(alias = "LeaderElectionConfig")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeaderElection {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease, the same for all replicas; by convention `<project>.<domain>`.
    pub name: String,
    /// The identity of this replica, which must be unique. Defaults to the host name and a random suffix, so
    /// that a restarted container is not mistaken for its predecessor.
    pub identity: String,
    /// The duration of the lease and the renewal intervals.
    pub timing: Timing,
    /// Whether the lease is released when the work has ended, so that the next replica does not wait for it
    /// to expire. Defaults to true.
    pub is_released: bool,
    /// Labels of the lease, set if this replica creates it.
    pub labels: BTreeMap<String, String>,
}

impl LeaderElection {
    /// Creates the settings for the lease `name` in `namespace`, with default timing.
    #[doc(alias = "LeaseLock")]
    #[doc(alias = "NewResourceLock")]
    #[doc(alias = "LeaderElectionID")]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: format!("{}_{:016x}", host_name(), fastrand::u64(..)),
            timing: Timing::default(),
            is_released: true,
            labels: BTreeMap::new(),
        }
    }

    /// Sets the identity of this replica, which must be unique among the replicas. Defaults to the host name with a
    /// random suffix.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Sets the lease duration, renew deadline and retry period. Defaults to 15 s, 10 s and 2 s.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Sets whether the lease is released at the end (`true`) or left to expire. Defaults to true.
    #[doc(alias = "ReleaseOnCancel")]
    #[must_use]
    #[doc(alias = "LeaderElectionReleaseOnCancel")]
    pub fn release(mut self, is_released: bool) -> Self {
        self.is_released = is_released;
        self
    }

    /// Adds a label to the lease, set if this replica creates it.
    #[must_use]
    #[doc(alias = "LeaderLabels")]
    #[doc(alias = "LeaderElectionLabels")]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }
}

/// Returns the host name, which in a pod is the pod's name.
pub(crate) fn host_name() -> String {
    let name = hostname::get().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
