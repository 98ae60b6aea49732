//! Selection of the cluster that a command uses.

use std::env;

use watchkeeper::{client::Client, controller::options::ClusterArgs};

use crate::exit::Failure;

/// The arguments that select a cluster.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(about = None, long_about = None)]
pub struct ClusterArguments {
    /// The flags for the kubeconfig, its context and its credential plugins.
    #[command(flatten)]
    pub flags: ClusterArgs,
}

/// An API server and the origin of its address, for messages.
#[derive(Debug, Clone)]
pub struct Target {
    /// The URL of the server.
    pub server: String,
    /// The kubeconfig and context that name the server.
    pub origin: String,
}

/// A cluster and a client for it.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The client for the cluster.
    pub client: Client,
    /// The server of the client.
    pub target: Target,
}

impl ClusterArguments {
    /// Returns whether a flag names a cluster.
    pub fn is_given(&self) -> bool {
        self.flags.kubeconfig.is_some() || self.flags.context.is_some()
    }

    /// Returns the cluster that the flags name, or by default the one that kubectl would use. No request is
    /// sent.
    ///
    /// # Errors
    /// Returns a [`Failure`] if the configuration cannot be used, or if the flags contradict each other.
    pub fn connect(&self) -> Result<Cluster, Failure> {
        let config = self.flags.client_config()?;
        let target = Target { server: config.server().to_string(), origin: self.origin() };
        Ok(Cluster { client: config.into_client()?, target })
    }

    fn origin(&self) -> String {
        let file = match (&self.flags.kubeconfig, env::var("KUBECONFIG")) {
            (Some(file), _) => format!("kubeconfig {}", file.display()),
            (None, Ok(list)) if !list.is_empty() => format!("KUBECONFIG={list}"),
            (None, _) => "the default configuration".to_owned(),
        };
        match &self.flags.context {
            Some(context) => format!("{file}, context {context}"),
            None => file,
        }
    }
}
