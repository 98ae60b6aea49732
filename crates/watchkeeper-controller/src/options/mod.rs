//! Options of a manager, in code and from the command line.

#[cfg(feature = "clap")]
mod args;
#[cfg(feature = "clap")]
mod cluster;
mod logging;

use std::{net::SocketAddr, time::Duration};

#[cfg(feature = "clap")]
pub use args::{ArgsError, BindAddress, LogLevel, ManagerArgs};
#[cfg(feature = "clap")]
pub use cluster::{ClusterArgs, CredentialPluginPolicy};
pub use logging::log_directives;
use watchkeeper_informer::MemoryPolicy;

/// The options of a manager.
///
/// The default listens on no address, which suits tests. Programs take their options from the command line
/// (`ManagerArgs`, behind the feature `clap`), where health probes default to port 8081 on every interface
/// and metrics to port 8080 on the loopback interface.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "HealthProbeBindAddress")]
pub struct ManagerOptions {
    /// The address of `/metrics`. Defaults to none. `/metrics` has no authentication.
    pub metrics_address: Option<SocketAddr>,
    /// The address of `/healthz`, `/livez` and `/readyz`. Defaults to none. One server serves both if this equals
    /// [`metrics_address`](Self::metrics_address).
    ///
    /// The kubelet probes the address of the pod, not the loopback address: use `[::]:8081`, which is every interface, IPv4 included.
    pub health_address: Option<SocketAddr>,
    /// The time limit of a shutdown. Defaults to 30 s, the grace period that Kubernetes gives a pod.
    #[doc(alias = "GracefulShutdownTimeout")]
    pub stop_within: Duration,
    /// The time limit for caches to sync. Defaults to two minutes.
    #[doc(alias = "CacheSyncTimeout")]
    pub prepare_within: Duration,
    /// The reaction to declared access that the API server denies. Defaults to a warning.
    pub access_check: AccessCheck,
    /// Whether the manager's client rejects writes unless this replica leads at the time of sending. Defaults
    /// to false, and has no effect without leader election. See
    /// [`Leadership::fence`](crate::leader::Leadership::fence).
    pub fences_writes: bool,
    /// The form in which the informers of the manager's factory keep objects, with one memory budget for all of them.
    /// Defaults to [`MemoryPolicy::Auto`].
    pub memory: MemoryPolicy,
}

/// The reaction to declared access that the API server denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AccessCheck {
    /// Access is not checked.
    Off,
    /// Missing access is logged, verb by verb.
    #[default]
    Warn,
    /// The manager does not start.
    Fail,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            metrics_address: None,
            health_address: None,
            stop_within: Duration::from_secs(30),
            prepare_within: Duration::from_mins(2),
            access_check: AccessCheck::default(),
            fences_writes: false,
            memory: MemoryPolicy::default(),
        }
    }
}
