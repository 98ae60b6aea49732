//! Which cluster is meant.

use std::{env, path::PathBuf};

use watchkeeper::client::{Client, config::Loader};

use crate::exit::Failure;

/// The arguments that name a cluster.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ClusterArguments {
    /// The kubeconfig, instead of $KUBECONFIG or ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A context other than the kubeconfig's current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
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
    /// Whether any of them was given.
    pub fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// The cluster they name, or without any of them the one that kubectl would talk to. Nothing is sent.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub fn connect(&self) -> Result<Cluster, Failure> {
        let mut loader = Loader::new();
        if let Some(file) = &self.kubeconfig {
            loader = loader.file(file);
        }
        if let Some(context) = &self.context {
            loader = loader.context(context);
        }
        let config = loader.load()?;
        let target = Target { server: config.server().to_string(), origin: self.origin() };
        Ok(Cluster { client: config.into_client()?, target })
    }

    fn origin(&self) -> String {
        let file = match (&self.kubeconfig, env::var("KUBECONFIG")) {
            (Some(file), _) => format!("kubeconfig {}", file.display()),
            (None, Ok(list)) if !list.is_empty() => format!("KUBECONFIG={list}"),
            (None, _) => "the default configuration".to_owned(),
        };
        match &self.context {
            Some(context) => format!("{file}, context {context}"),
            None => file,
        }
    }
}
