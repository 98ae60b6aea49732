//! The common parts of the labs: a connection to an API server, logs, and an error that prints as a sentence.
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

/// The API server that a lab talks to: flattened into the arguments of labs that have more of them.
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
    /// The server, if it is in this process. It lives as long as this.
    server: Option<ApiServer>,
}

impl Connection {
    /// The connection that the arguments of the program ask for, if it has no others.
    ///
    /// # Errors
    /// If there is no such cluster.
    pub async fn from_arguments() -> Result<Self, Failure> {
        Arguments::parse().cluster.connect().await
    }

    /// Connects as the arguments of the program ask for, and builds a manager for controllers.
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

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The server, if it is in this process.
    pub fn server(&self) -> Option<&ApiServer> {
        self.server.as_ref()
    }
}

impl Cluster {
    /// Starts logging and connects.
    ///
    /// # Errors
    /// If the kubeconfig cannot be used, or the server in this process cannot be filled.
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

/// Logs to standard error what the directives let through.
fn log(directives: &str) {
    let filter = EnvFilter::new(directives);
    // A lab that connects twice logs already, and so does one with a manager.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

/// Why a lab ended early. Prints as a sentence when `main` returns it.
pub struct Failure(Box<dyn Error + Send + Sync>);

/// How a lab ends.
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
