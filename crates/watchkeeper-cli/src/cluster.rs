//! The cluster that a command talks to.

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

/// An API server and where its address comes from, for messages.
#[derive(Debug, Clone)]
pub struct Target {
    /// The URL.
    pub server: String,
    /// The kubeconfig and context.
    pub origin: String,
}

/// A cluster to talk to.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The client.
    pub client: Client,
    /// What it is a client of.
    pub target: Target,
}

impl ClusterArguments {
    /// Whether a flag names a cluster.
    pub fn is_given(&self) -> bool {
        self.flags.kubeconfig.is_some() || self.flags.context.is_some()
    }

    /// Returns the cluster that the flags name, or by default the one that kubectl would use. Nothing is sent.
    ///
    /// # Errors
    /// If the configuration cannot be used, or if the flags contradict each other.
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
