//! What every lab begins with: a connection to an API server, and an error that prints as a sentence.
//!
//! Without a flag the server is in the same process and has a few namespaces, nodes and pods in it. With `--kubeconfig`
//! or `--context` it is your cluster.

mod seed;

use std::{error::Error, fmt, path::PathBuf};

use clap::Parser;
use watchkeeper::{
    apiserver::ApiServer,
    client::config::{ConfigError, Loader},
    prelude::*,
};

/// Which API server a lab talks to: flattened into the arguments of labs that have more of them.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(about = None, long_about = None)]
pub struct Cluster {
    /// The kubeconfig of a cluster, instead of an API server in this process.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A context other than the current one; alone, of the kubeconfig kubectl would use.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    cluster: Cluster,
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
    /// Connects.
    ///
    /// # Errors
    /// If the kubeconfig cannot be used, or the server in this process cannot be filled.
    pub async fn connect(&self) -> Result<Connection, Failure> {
        if let Some(client) = self.client()? {
            return Ok(Connection { client, server: None });
        }
        let server = ApiServer::in_process();
        let client = Client::from(server.client());
        seed::fill(&client).await?;
        Ok(Connection { client, server: Some(server) })
    }

    fn client(&self) -> Result<Option<Client>, ConfigError> {
        let mut loader = match (&self.kubeconfig, &self.context) {
            (None, None) => return Ok(None),
            (Some(file), _) => Loader::new().file(file),
            (None, Some(_)) => Loader::new(),
        };
        if let Some(context) = &self.context {
            loader = loader.context(context);
        }
        loader.load()?.into_client().map(Some)
    }
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
