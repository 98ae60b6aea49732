//! The flags of a controller program.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use clap::{Args, ValueEnum};
use watchkeeper_client::config::{ClientConfig, ConfigError};

use super::{AccessCheck, ClusterArgs, ManagerOptions, log_directives};
use crate::{
    access::Access,
    leader::{LeaderElection, Timing, TimingError},
    rbac::Manifests,
};

/// The flags people expect of a controller, by the names kubebuilder's programs have; flatten it into your own.
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
/// let election = args.manager.leader_election("shop.example.com", "default")?.expect("it was asked for");
/// assert_eq!((election.namespace.as_str(), election.name.as_str()), ("shop", "shop.example.com"));
/// # Ok::<(), watchkeeper_controller::options::ArgsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Args)]
// Without this the page above would be what `--help` says of the program it is flattened into.
#[command(next_help_heading = "Controller options", about = None, long_about = None)]
#[non_exhaustive]
pub struct ManagerArgs {
    /// The cluster, and the credential plugins that may run.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Serve /metrics here; 0 for nowhere, :PORT for every interface. There is no authentication, so the default is not
    /// reachable from outside the pod
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = bind_address)]
    pub metrics_bind_address: BindAddress,

    /// Serve /healthz, /livez and /readyz here; 0 for nowhere, :PORT for every interface. The kubelet probes the address of the
    /// pod
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", value_parser = bind_address)]
    pub health_probe_bind_address: BindAddress,

    /// Work only while leading, so that several replicas can run
    #[arg(long)]
    pub leader_elect: bool,

    /// The name of the lease replicas share [default: the program's]
    #[arg(long, value_name = "NAME")]
    pub leader_election_id: Option<String>,

    /// The namespace of the lease [default: the one this runs in]
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,

    /// How long a lease must stand still before another replica takes it
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub leader_election_lease_duration: Duration,

    /// How long the leader goes on without having renewed the lease
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub leader_election_renew_deadline: Duration,

    /// How often the lease is renewed and looked at
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub leader_election_retry_period: Duration,

    /// How long everything may take to end once it was asked to
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub graceful_shutdown_timeout: Duration,

    /// Do not start when the server does not allow what the controllers declare
    #[arg(long)]
    pub require_access: bool,

    /// Log messages of this level and above
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,

    /// Refine --log-level by target, such as `watchkeeper_informer=debug`; a level alone replaces it
    #[arg(long, value_name = "DIRECTIVES", default_value = "", hide_default_value = true, env = "RUST_LOG")]
    pub log_filter: String,
}

/// An address to listen on, or none. `[::]` is every interface, IPv4 included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindAddress(pub Option<SocketAddr>);

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Failures, and what may become one.
    Warn,
    /// What is done.
    Info,
    /// How it is done.
    Debug,
    /// Everything.
    Trace,
}

/// Flags that cannot be used together, or that lead to no cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// The durations of leader election do not work together.
    #[error("--leader-election-...: {0}")]
    Timing(#[from] TimingError),
    /// There is no cluster, or it cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy for credential plugins is Allowlist, and there is no allow-list.
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
            access_check: if self.require_access { AccessCheck::Fail } else { AccessCheck::Warn },
            ..ManagerOptions::default()
        }
    }

    /// Loads the configuration of the cluster, as [`ClusterArgs::client_config`] does.
    ///
    /// # Errors
    /// If there is no configuration, if it cannot be used, or if the flags contradict each other.
    pub fn client_config(&self) -> Result<ClientConfig, ArgsError> {
        self.cluster.client_config()
    }

    /// Returns the directives for the log filter (`EnvFilter` of tracing-subscriber) that `--log-level` and
    /// `--log-filter` or `RUST_LOG` ask for. See [`log_directives`].
    pub fn log_directives(&self) -> String {
        log_directives(tracing::Level::from(self.log_level).into(), &self.log_filter)
    }

    /// The election, if `--leader-elect` asks for it: of the lease `id` unless a flag names another, in the namespace a flag names or else
    /// `namespace`, which is best the client's default.
    ///
    /// # Errors
    /// If the durations do not work together.
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

    /// Returns the service account `name` in `namespace`, where the program runs, and the roles for every way in which these flags can
    /// run it: the `declared` access ([`Manager::access`](crate::manager::Manager::access)), and the lease of leader election.
    ///
    /// The lease is included whether or not `--leader-elect` is given, so that the flag can be turned on without new roles. Its role is in
    /// the namespace of the lease: `--leader-election-namespace`, or else `namespace`.
    ///
    /// ```
    /// use clap::Parser;
    /// use watchkeeper_controller::{access::{Access, Verb}, options::ManagerArgs};
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

    /// The namespace of the lease, for a program that runs in `namespace`.
    fn lease_namespace<'a>(&'a self, namespace: &'a str) -> &'a str {
        self.leader_election_namespace.as_deref().unwrap_or(namespace)
    }
}

/// Parses `HOST:PORT`, `:PORT` for every interface, or `0` or the empty string for nowhere.
fn bind_address(text: &str) -> Result<BindAddress, String> {
    if matches!(text, "" | "0") {
        return Ok(BindAddress(None));
    }
    let wrong = || format!("{text:?} is no address; say HOST:PORT with an IP address as host, :PORT, or 0");
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

/// A duration as Go programs take it: numbers with units, such as `1m30s` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; say it as 15s, 1m30s or 500ms");
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
    fn without_flags_the_kubelet_reaches_the_probes_and_only_the_pod_itself_the_metrics() {
        let args = parse(&[]).unwrap();
        let options = args.options();
        assert_eq!(options.health_address, Some("[::]:8081".parse().unwrap()));
        assert_eq!(options.metrics_address, Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(options.stop_within, Duration::from_secs(30));
        assert!(args.leader_election("x", "y").unwrap().is_none());
    }

    #[test]
    fn probes_can_be_moved_and_turned_off() {
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
    fn the_help_of_a_program_says_of_itself_what_it_says_and_nothing_of_ours() {
        #[derive(Debug, clap::Parser)]
        struct Silent {
            #[command(flatten)]
            _manager: ManagerArgs,
        }
        /// Sells things.
        #[derive(Debug, clap::Parser)]
        struct Shop {
            #[command(flatten)]
            _manager: ManagerArgs,
        }
        assert_eq!(Silent::command().get_about().map(ToString::to_string), None);
        assert_eq!(Shop::command().get_about().map(ToString::to_string).as_deref(), Some("Sells things"));
    }

    #[test]
    fn addresses_are_read_as_go_programs_read_them() {
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
    fn durations_are_read_as_go_programs_read_them() {
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
    fn durations_of_an_election_that_cannot_work_are_refused_with_the_reason() {
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
    fn the_log_filter_of_the_flags_refines_their_level() {
        let directives = |flags: &[&str]| parse(flags).unwrap().log_directives();
        assert_eq!(directives(&["--log-filter="]), "info");
        assert_eq!(directives(&["--log-level=warn", "--log-filter=shop=trace"]), "warn,shop=trace");
    }
}
