//! Command-line flags of a controller program.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use clap::{Args, ValueEnum};
use watchkeeper_client::config::{ClientConfig, ConfigError};
use watchkeeper_informer::MemoryPolicy;

use super::{AccessCheck, ClusterArgs, ManagerOptions, log_directives};
use crate::{
    leader::{LeaderElection, Timing, TimingError},
    rbac::{Access, Manifests},
};

/// The usual command-line flags of a controller, named as in kubebuilder programs. Flatten this type into
/// your own arguments.
///
/// ```
/// use clap::Parser;
/// use watchkeeper_controller::options::ManagerArgs;
///
/// #[derive(Parser)]
/// struct Args {
///     #[command(flatten)]
///     manager: ManagerArgs,
///     /// A flag of your own.
///     #[arg(long)]
///     colour: Option<String>,
/// }
///
/// let args = Args::parse_from(["shop", "--leader-elect", "--leader-election-namespace=shop", "--metrics-bind-address=:8443"]);
/// let options = args.manager.options();
/// assert_eq!(options.metrics_address.map(|address| address.port()), Some(8443));
/// let election = args.manager.leader_election("shop.example.com", "default")?.expect("leader election is enabled");
/// assert_eq!((election.namespace.as_str(), election.name.as_str()), ("shop", "shop.example.com"));
/// # Ok::<(), watchkeeper_controller::options::ArgsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Args)]
// Without this, clap takes the documentation above for the description of the whole program.
#[command(next_help_heading = "Controller options", about = None, long_about = None)]
#[non_exhaustive]
#[doc(alias = "BindFlags")]
pub struct ManagerArgs {
    /// The cluster, and the credential plugins that may run.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Serve /metrics on this address; 0 disables it, :PORT is every interface. The default is unreachable
    /// from outside the pod because there is no authentication
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = bind_address)]
    pub metrics_bind_address: BindAddress,

    /// Serve /healthz, /livez and /readyz on this address; 0 disables it, :PORT is every interface. The
    /// kubelet probes the address of the pod
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", value_parser = bind_address)]
    pub health_probe_bind_address: BindAddress,

    /// Run controllers only while this replica leads, so that several replicas can run
    #[arg(long)]
    pub leader_elect: bool,

    /// Name of the lease that replicas share [default: the program's]
    #[arg(long, value_name = "NAME")]
    pub leader_election_id: Option<String>,

    /// Namespace of the lease [default: the one this program runs in]
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,

    /// Time for which a lease must be unchanged before another replica acquires it
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub leader_election_lease_duration: Duration,

    /// Time for which the leader continues without renewing the lease
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub leader_election_renew_deadline: Duration,

    /// Interval between attempts to acquire or renew the lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub leader_election_retry_period: Duration,

    /// Time limit of a graceful shutdown
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub graceful_shutdown_timeout: Duration,

    /// Fail to start if the API server denies access that the controllers declare
    #[arg(long)]
    pub require_access: bool,

    /// Keep cached objects decoded or encoded: auto, decoded, packed, or within a budget such as 512Mi, or 25% of the
    /// memory limit, for decoded objects
    #[arg(long, value_name = "POLICY", default_value = "auto", env = "CACHE_MEMORY")]
    pub cache_memory: MemoryPolicy,

    /// Log messages of this level and above
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,

    /// Refine --log-level by target, such as `watchkeeper_informer=debug`; a level alone replaces it
    #[arg(long, value_name = "DIRECTIVES", default_value = "", hide_default_value = true, env = "RUST_LOG")]
    pub log_filter: String,
}

/// An address to listen on, or none. `[::]` means every interface, including IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindAddress(pub Option<SocketAddr>);

/// The log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum LogLevel {
    /// Log errors only.
    Error,
    /// Log errors and warnings.
    Warn,
    /// Log normal operation too.
    Info,
    /// Log debugging details too.
    Debug,
    /// Log everything, including traces.
    Trace,
}

/// A combination of flags that is invalid, or that selects no usable cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// The durations of leader election cannot be combined.
    #[error(
        "{0}; change --leader-election-lease-duration, --leader-election-renew-deadline or --leader-election-retry-period"
    )]
    Timing(#[from] TimingError),
    /// The cluster is not configured, or its configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy for credential plugins is Allowlist, but the allow-list is empty.
    #[error(
        "--credential-plugin-policy=Allowlist allows nothing without --credential-plugin-allowlist; name the programs, or use DenyAll"
    )]
    NoAllowlist,
    /// The allow-list for credential plugins has no effect, because the policy is not Allowlist.
    #[error(
        "--credential-plugin-allowlist has no effect without --credential-plugin-policy=Allowlist; add the policy, or remove the list"
    )]
    UnusedAllowlist,
}

impl From<LogLevel> for tracing::Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

impl ManagerArgs {
    /// Returns the options of the manager.
    pub fn options(&self) -> ManagerOptions {
        ManagerOptions {
            metrics_address: self.metrics_bind_address.0,
            health_address: self.health_probe_bind_address.0,
            stop_within: self.graceful_shutdown_timeout,
            memory: self.cache_memory,
            access_check: if self.require_access { AccessCheck::Fail } else { AccessCheck::Warn },
            ..ManagerOptions::default()
        }
    }

    /// Loads the configuration of the cluster, as [`ClusterArgs::client_config`] does.
    ///
    /// # Errors
    /// Returns an [`ArgsError`] if no configuration exists, if it cannot be used, or if the flags contradict
    /// each other.
    pub fn client_config(&self) -> Result<ClientConfig, ArgsError> {
        self.cluster.client_config()
    }

    /// Returns the directives for the log filter (`EnvFilter` of tracing-subscriber) that `--log-level` and
    /// `--log-filter` or `RUST_LOG` select. See [`log_directives`].
    pub fn log_directives(&self) -> String {
        log_directives(tracing::Level::from(self.log_level).into(), &self.log_filter)
    }

    /// Returns the leader election settings if `--leader-elect` is given.
    ///
    /// The lease is named `id` unless a flag names another. It is in the namespace that a flag names, or else
    /// in `namespace`, which should be the client's default.
    ///
    /// # Errors
    /// Returns [`ArgsError::Timing`] if the durations cannot be combined.
    pub fn leader_election(&self, id: &str, namespace: &str) -> Result<Option<LeaderElection>, ArgsError> {
        if !self.leader_elect {
            return Ok(None);
        }
        let timing = Timing::new(
            self.leader_election_lease_duration,
            self.leader_election_renew_deadline,
            self.leader_election_retry_period,
        )?;
        let namespace = self.lease_namespace(namespace);
        let id = self.leader_election_id.as_deref().unwrap_or(id);
        Ok(Some(LeaderElection::new(namespace, id).timing(timing)))
    }

    /// Returns the manifests of the service account `name` in `namespace`, where the program runs, with roles
    /// for every way in which these flags can run it: the `declared` access
    /// ([`Manager::access`](crate::manager::Manager::access)), and the lease of leader election.
    ///
    /// The lease is included even without `--leader-elect`, so that the flag can be enabled without new
    /// roles. Its role is in the namespace of the lease: `--leader-election-namespace`, or else `namespace`.
    ///
    /// ```
    /// use clap::Parser;
    /// use watchkeeper_controller::{options::ManagerArgs, rbac::{Access, Verb}};
    ///
    /// #[derive(Parser)]
    /// struct Args {
    ///     #[command(flatten)]
    ///     manager: ManagerArgs,
    /// }
    ///
    /// let args = Args::parse_from(["shop"]);
    /// let declared = vec![Access::new("apps", "deployments", Verb::READ)];
    /// let manifests = args.manager.manifests("shop-operator", "shop", declared);
    /// let (role, _binding) = &manifests.namespaces[0];
    /// assert_eq!(role.metadata.namespace.as_deref(), Some("shop"));
    /// assert_eq!(role.rules.as_ref().unwrap()[0].resources, Some(vec!["leases".to_owned()]));
    /// ```
    pub fn manifests(&self, name: &str, namespace: &str, mut declared: Vec<Access>) -> Manifests {
        declared.push(Access::leader_election(self.lease_namespace(namespace)));
        Manifests::new(name, namespace, &declared)
    }

    /// Returns the namespace of the lease, for a program that runs in `namespace`.
    fn lease_namespace<'a>(&'a self, namespace: &'a str) -> &'a str {
        self.leader_election_namespace.as_deref().unwrap_or(namespace)
    }
}

/// Parses `HOST:PORT`, `:PORT` for every interface, or `0` or the empty string for no address.
fn bind_address(text: &str) -> Result<BindAddress, String> {
    if matches!(text, "" | "0") {
        return Ok(BindAddress(None));
    }
    let wrong = || format!("invalid address {text:?}; use HOST:PORT with an IP address as host, :PORT, or 0");
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let every = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        return Ok(BindAddress(Some(SocketAddr::new(every, port))));
    }
    if let Some(port) = text.strip_prefix("localhost:") {
        let port: u16 = port.parse().map_err(|_| wrong())?;
        return Ok(BindAddress(Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))));
    }
    text.parse().map(|address| BindAddress(Some(address))).map_err(|_| wrong())
}

/// Parses a duration in Go's syntax: numbers with units, such as `1m30s` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("invalid duration {text:?}; use a number with a unit, such as 15s, 1m30s or 500ms");
    let mut rest = text;
    let mut sum = Duration::ZERO;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, unit_on) = rest.split_at(end);
        let unit_end = unit_on.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit_on.len());
        let (unit, next) = unit_on.split_at(unit_end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        sum = sum.checked_add(part).ok_or_else(wrong)?;
        rest = next;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        manager: ManagerArgs,
    }

    fn parse(flags: &[&str]) -> Result<ManagerArgs, clap::Error> {
        Program::try_parse_from(std::iter::once("program").chain(flags.iter().copied())).map(|it| it.manager)
    }

    #[test]
    fn by_default_probes_are_on_every_interface_and_metrics_on_loopback() {
        let args = parse(&[]).unwrap();
        let options = args.options();
        assert_eq!(options.health_address, Some("[::]:8081".parse().unwrap()));
        assert_eq!(options.metrics_address, Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(options.stop_within, Duration::from_secs(30));
        assert!(args.leader_election("x", "y").unwrap().is_none());
    }

    #[test]
    fn the_probe_address_can_be_changed_and_disabled() {
        for (flag, expected) in [
            ("--health-probe-bind-address=0", None),
            ("--health-probe-bind-address=127.0.0.1:9", Some("127.0.0.1:9")),
            ("--health-probe-bind-address=:9", Some("[::]:9")),
        ] {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(parse(&[flag]).unwrap().options().health_address, expected, "{flag}");
        }
    }

    #[test]
    fn the_help_of_a_program_contains_only_its_own_description() {
        #[derive(Debug, clap::Parser)]
        struct Silent {
            #[command(flatten)]
            _manager: ManagerArgs,
        }
        /// An online shop
        #[derive(Debug, clap::Parser)]
        struct Shop {
            #[command(flatten)]
            _manager: ManagerArgs,
        }
        assert_eq!(Silent::command().get_about().map(ToString::to_string), None);
        assert_eq!(Shop::command().get_about().map(ToString::to_string).as_deref(), Some("An online shop"));
    }

    #[test]
    fn addresses_have_the_syntax_of_go_programs() {
        for (text, expected) in [
            ("0", None),
            ("", None),
            (":8080", Some("[::]:8080")),
            ("127.0.0.1:9", Some("127.0.0.1:9")),
            ("localhost:9", Some("127.0.0.1:9")),
            ("[::1]:9", Some("[::1]:9")),
        ] {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(bind_address(text), Ok(BindAddress(expected)), "{text}");
        }
        for text in ["8080", ":", ":99999", "example.com:80", "127.0.0.1"] {
            assert!(bind_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_memory_of_caches_is_automatic_unless_a_flag_sets_it() {
        for (flags, expected) in [
            (&[][..], MemoryPolicy::Auto),
            (&["--cache-memory=auto"], MemoryPolicy::Auto),
            (&["--cache-memory=decoded"], MemoryPolicy::Decoded),
            (&["--cache-memory=packed"], MemoryPolicy::Packed),
            (&["--cache-memory=512Mi"], MemoryPolicy::Budget(512 << 20)),
            (&["--cache-memory=25%"], MemoryPolicy::Share(25)),
        ] {
            assert_eq!(parse(flags).unwrap().options().memory, expected, "{flags:?}");
        }
        let command = Program::command();
        let flag = command.get_arguments().find(|flag| flag.get_id() == "cache_memory").unwrap();
        assert_eq!(flag.get_env(), Some("CACHE_MEMORY".as_ref()));
    }

    #[test]
    fn an_invalid_memory_of_caches_is_rejected_with_the_flag_and_the_remedy() {
        for (value, remedy) in [
            ("", "such as 512Mi"),
            ("much", "auto, decoded or packed"),
            ("1.5Gi", "1536Mi"),
            ("512MB", "Ki, Mi, Gi, Ti"),
            ("101%", "at most 100%"),
        ] {
            let error = parse(&[&format!("--cache-memory={value}")]).unwrap_err().to_string();
            assert!(error.contains("--cache-memory") && error.contains(remedy), "{value:?}: {error}");
        }
    }

    #[test]
    fn durations_have_the_syntax_of_go_programs() {
        for (text, millis) in
            [("15s", 15_000), ("1m30s", 90_000), ("500ms", 500), ("1.5h", 5_400_000), ("0s", 0)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "15", "s", "-1s", "1x", "1e400s", "1..2s", "99999999999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_of_an_election_that_cannot_be_combined_are_rejected_with_the_reason() {
        let args = parse(&["--leader-elect", "--leader-election-lease-duration=5s"]).unwrap();
        let error = args.leader_election("x", "y").unwrap_err();
        assert!(
            matches!(error, ArgsError::Timing(TimingError::LeaseNotLongerThanDeadline { .. })),
            "{error}"
        );
    }

    #[test]
    fn roles_cover_the_lease_in_its_own_namespace_whether_or_not_the_flag_is_given() {
        let cases: [(&[&str], &str); 4] = [
            (&[], "shop"),
            (&["--leader-elect"], "shop"),
            (&["--leader-election-namespace=locks"], "locks"),
            (&["--leader-elect", "--leader-election-namespace=locks"], "locks"),
        ];
        for (flags, lease_namespace) in cases {
            let args = parse(flags).unwrap();
            let declared = vec![Access::events()];
            let Manifests { cluster, namespaces, service_account, .. } =
                args.manifests("shop-operator", "shop", declared);
            assert_eq!(service_account.metadata.namespace.as_deref(), Some("shop"), "{flags:?}");
            let [(role, binding)] = namespaces.as_slice() else { panic!("{flags:?}: {namespaces:?}") };
            for metadata in [&role.metadata, &binding.metadata] {
                assert_eq!(metadata.namespace.as_deref(), Some(lease_namespace), "{flags:?}");
            }
            let subject = &binding.subjects.as_ref().unwrap()[0];
            let (name, namespace) = (subject.name.as_str(), subject.namespace.as_deref());
            assert_eq!((name, namespace), ("shop-operator", Some("shop")), "{flags:?}");
            let rule = &role.rules.as_ref().unwrap()[0];
            assert_eq!(rule.resources, Some(vec!["leases".to_owned()]), "{flags:?}");
            assert_eq!(rule.verbs, ["get", "create", "update"], "{flags:?}");
            let everywhere = cluster.unwrap().0.rules.unwrap();
            assert!(
                everywhere.iter().all(|rule| rule.resources != Some(vec!["leases".to_owned()])),
                "{flags:?}"
            );
        }
    }

    #[test]
    fn the_log_filter_refines_the_log_level() {
        let directives = |flags: &[&str]| parse(flags).unwrap().log_directives();
        assert_eq!(directives(&["--log-filter="]), "info");
        assert_eq!(directives(&["--log-level=warn", "--log-filter=shop=trace"]), "warn,shop=trace");
    }
}
