//! The flags of a controller program.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueEnum};
use watchkeeper_client::config::{ClientConfig, ConfigError, Loader};

use super::{AccessCheck, ManagerOptions};
use crate::leader::{LeaderElection, Timing, TimingError};

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
    /// Read this kubeconfig, instead of KUBECONFIG, ~/.kube/config or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Use this context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Serve /metrics here; 0 for nowhere, :PORT for every interface
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = bind_address)]
    pub metrics_bind_address: BindAddress,

    /// Serve /healthz, /livez and /readyz here; 0 for nowhere, :PORT for every interface
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = bind_address)]
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

    /// How much is logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,
}

/// An address to listen on, or none.
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
    /// How the manager runs.
    pub fn options(&self) -> ManagerOptions {
        ManagerOptions {
            metrics_address: self.metrics_bind_address.0,
            health_address: self.health_probe_bind_address.0,
            stop_within: self.graceful_shutdown_timeout,
            access_check: if self.require_access { AccessCheck::Fail } else { AccessCheck::Warn },
            ..ManagerOptions::default()
        }
    }

    /// The cluster: `--kubeconfig` and `--context` before what the surroundings say.
    ///
    /// # Errors
    /// If there is none, or it cannot be used.
    pub fn client_config(&self) -> Result<ClientConfig, ArgsError> {
        let mut loader = Loader::new();
        if let Some(file) = &self.kubeconfig {
            loader = loader.file(file);
        }
        if let Some(context) = &self.context {
            loader = loader.context(context);
        }
        Ok(loader.load()?)
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
        let namespace = self.leader_election_namespace.as_deref().unwrap_or(namespace);
        let id = self.leader_election_id.as_deref().unwrap_or(id);
        Ok(Some(LeaderElection::new(namespace, id).timing(timing)))
    }
}

/// `HOST:PORT`, `:PORT`, or `0` and nothing for nowhere.
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
    fn without_flags_a_program_listens_on_loopback_and_elects_nobody() {
        let args = parse(&[]).unwrap();
        let options = args.options();
        assert!(options.metrics_address.unwrap().ip().is_loopback());
        assert!(options.health_address.unwrap().ip().is_loopback());
        assert_eq!(options.stop_within, Duration::from_secs(30));
        assert!(args.leader_election("x", "y").unwrap().is_none());
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
    fn a_kubeconfig_that_is_named_must_exist() {
        let args = parse(&["--kubeconfig=/nowhere/at/all"]).unwrap();
        assert!(matches!(args.client_config(), Err(ArgsError::Config(ConfigError::Missing { .. }))));
    }
}
