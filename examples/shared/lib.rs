//! The common parts of the labs: the connection to an API server, logs, and the error type.
//!
//! By default the server is in the same process and has a few namespaces, nodes and pods. With `--kubeconfig` or
//! `--context` it is your cluster. Logs are written to standard error; `RUST_LOG` filters them.

mod seed;

use std::{error::Error, fmt};

use clap::Parser;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};
use watchkeeper::{
    apiserver::ApiServer,
    controller::{
        manager::Manager,
        options::{ClusterArgs, ManagerArgs, log_directives},
    },
    prelude::*,
};

/// The arguments that select the API server of a lab.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(about = None, long_about = None)]
pub struct Cluster {
    /// The flags. Without `--kubeconfig` and `--context` the server is in this process.
    #[command(flatten)]
    pub flags: ClusterArgs,
}

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    cluster: Cluster,
}

#[derive(Debug, Parser)]
struct ManagerArguments {
    #[command(flatten)]
    manager: ManagerArgs,
}

/// A connection to an API server.
#[derive(Debug, Clone)]
pub struct Connection {
    client: Client,
    /// The embedded server. None on a cluster.
    server: Option<ApiServer>,
}

impl Connection {
    /// Connects to the server that the arguments of the program select, for labs without other arguments.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be used.
    pub async fn from_arguments() -> Result<Self, Failure> {
        Arguments::parse().cluster.connect().await
    }

    /// Connects to the server that the arguments of the program select, and builds a manager for controllers.
    ///
    /// On a cluster the lab is a controller program like any other: it logs to standard error, serves probes and metrics, and takes the
    /// flags for both and for leader election, whose lease is called `name`. Without a cluster it runs alone and listens nowhere.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be used, or if flags contradict each other.
    pub async fn with_manager(name: &str) -> Result<(Self, Manager), Failure> {
        let args = ManagerArguments::parse().manager;
        log(&args.log_directives());
        let connection = Cluster { flags: args.cluster.clone() }.connect().await?;
        let mut builder = Manager::builder(connection.client.clone());
        if connection.server.is_none() {
            let election = args.leader_election(name, connection.client.default_namespace())?;
            builder = builder.options(args.options()).leader_election(election);
        }
        Ok((connection, builder.build()))
    }

    /// Returns the client of the API server.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the embedded server. None on a cluster.
    pub fn server(&self) -> Option<&ApiServer> {
        self.server.as_ref()
    }
}

impl Cluster {
    /// Starts logging and connects.
    ///
    /// # Errors
    /// Returns an error if the kubeconfig cannot be used, or if the objects of the embedded server cannot be created.
    pub async fn connect(&self) -> Result<Connection, Failure> {
        let filter = std::env::var("RUST_LOG").unwrap_or_default();
        log(&log_directives(LevelFilter::INFO, &filter));
        if self.flags.kubeconfig.is_some() || self.flags.context.is_some() {
            let client = self.flags.client_config()?.into_client()?;
            return Ok(Connection { client, server: None });
        }
        let server = ApiServer::in_process();
        let client = Client::from(server.client());
        seed::fill(&client).await?;
        Ok(Connection { client, server: Some(server) })
    }
}

/// Starts logging to standard error with these filter directives.
fn log(directives: &str) {
    let filter = EnvFilter::new(directives);
    // An error means that logging was started before.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

/// The failure of a lab. `main` prints it as a sentence.
pub struct Failure(Box<dyn Error + Send + Sync>);

/// The result of a lab.
pub type Outcome = Result<(), Failure>;

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
