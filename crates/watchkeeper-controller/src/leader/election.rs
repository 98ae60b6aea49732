//! Which lease, by whom, how fast.

use std::collections::BTreeMap;

use super::Timing;

/// Which lease replicas share, what this one is called, and how fast it goes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeaderElection {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease, the same for all replicas; by convention `<project>.<domain>`.
    pub name: String,
    /// The name of this replica, which no other may have. Unless given, the host's and a random part, so that a
    /// container that was started again is not taken for the one before.
    pub identity: String,
    /// How long the lease lasts and how often it is renewed.
    pub timing: Timing,
    /// Lets the lease go when the work has ended, so that the next replica need not wait. On unless said otherwise.
    pub is_released: bool,
    /// Labels of the lease, if this replica is the one that makes it.
    pub labels: BTreeMap<String, String>,
}

impl LeaderElection {
    /// The lease `name` in `namespace`, with the usual timing.
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

    /// Another name for this replica.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Other durations.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Lets the lease go at the end, or leaves it to run out.
    #[must_use]
    pub fn release(mut self, is_released: bool) -> Self {
        self.is_released = is_released;
        self
    }

    /// A label of the lease, if this replica is the one that makes it.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }
}

/// The name of the host, which in a pod is the pod's.
pub(crate) fn host_name() -> String {
    let name = hostname::get().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
