//! The environment of the demonstration: an API server in this process, or a new namespace of a cluster.

use std::{path::Path, time::Duration};

use watchkeeper::{
    apiserver::{ApiServer, Endpoint},
    k8s_openapi::{
        api::core::v1::Namespace,
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube_core::{CustomResourceExt as _, ObjectMeta},
    prelude::*,
};

use super::narrator::{Actor, Narrator};
use crate::{
    cluster::{Cluster, ClusterArguments, Target},
    exit::Failure,
    files,
    sample::{self, Foo},
};

/// The timeout of each step on the embedded server.
const TIMEOUT_EMBEDDED: Duration = Duration::from_secs(30);

/// The timeout of each step on a cluster, which has to pull images and start pods.
const TIMEOUT_CLUSTER: Duration = Duration::from_mins(3);

/// An API server, and the objects to remove from it at the end.
#[derive(Debug)]
pub(super) struct Environment {
    client: Client,
    target: Target,
    namespace: String,
    /// The embedded server; none on a cluster.
    server: Option<ApiServer>,
    /// Whether the custom resource definition was created by this program.
    has_installed: bool,
}

impl Environment {
    /// Connects to the cluster, or starts the embedded server. Creates no object.
    pub(super) async fn connect(cluster: &ClusterArguments, narrator: &Narrator) -> Result<Self, Failure> {
        let (server, Cluster { client, target }) = if cluster.is_given() {
            (None, cluster.connect()?)
        } else {
            let server = ApiServer::in_process();
            let client = Client::from(server.client());
            let target =
                Target { server: "in this process".to_owned(), origin: "the demonstration".to_owned() };
            (Some(server), Cluster { client, target })
        };
        let version = client.discovery().server_version().await;
        let version = version.map_err(|error| Failure::of_request(&error, &target))?.git_version;
        let location =
            if server.is_some() { "in this process".to_owned() } else { format!("at {}", target.server) };
        Narrator::part("Start a controller that creates a Deployment for each Foo")?;
        narrator.say(
            Actor::Cluster,
            &format!("API server {location}, Kubernetes {}", version.trim_start_matches('v')),
        )?;

        Ok(Self { client, target, namespace: "default".to_owned(), server, has_installed: false })
    }

    /// Creates a namespace if this is a cluster, and installs the definition of Foo.
    pub(super) async fn prepare(&mut self, narrator: &Narrator) -> Result<(), Failure> {
        if self.server.is_none() {
            let metadata =
                ObjectMeta { generate_name: Some("watchkeeper-demo-".to_owned()), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            let namespaces = self.client.resource::<Namespace>();
            let created = namespaces.create(&PostParams::default(), &namespace).await;
            self.namespace = created.map_err(|error| self.explain(&error))?.name_any();
            narrator.say(Actor::You, &format!("create Namespace {}", self.namespace))?;
        }
        self.has_installed = sample::install(&self.client).await.map_err(|error| self.explain(&error))?;
        let name = Foo::crd_name();
        let what = if self.has_installed { "create" } else { "use existing" };
        narrator.say(Actor::You, &format!("{what} CustomResourceDefinition {name}"))?;
        let served = sample::await_served(&self.client, self.timeout()).await;
        served.map_err(|error| self.explain(&error))?;
        narrator.say(Actor::Cluster, &format!("resource {name} is served"))?;
        Ok(())
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the timeout of each step.
    pub(super) fn timeout(&self) -> Duration {
        if self.is_embedded() { TIMEOUT_EMBEDDED } else { TIMEOUT_CLUSTER }
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    pub(super) fn explain(&self, error: &watchkeeper::client::Error) -> Failure {
        Failure::of_request(error, &self.target)
    }

    /// Returns a factory of informers for the scenario's namespace.
    pub(super) fn factory(&self, client: &Client) -> SharedInformerFactory {
        SharedInformerFactory::builder(client.clone()).scope(Scope::namespace(&self.namespace)).build()
    }

    /// Lets the embedded server listen, and writes a kubeconfig for it. Returns `None` on a cluster.
    pub(super) async fn listen(&self, kubeconfig: &Path) -> Result<Option<Endpoint>, Failure> {
        let Some(server) = &self.server else { return Ok(None) };
        let endpoint = server.listen(([127, 0, 0, 1], 0).into()).await;
        let endpoint =
            endpoint.map_err(|error| Failure::Other(format!("cannot listen on 127.0.0.1: {error}")))?;
        files::write_private(kubeconfig, &endpoint.kubeconfig(None))?;
        Ok(Some(endpoint))
    }

    /// Stops the embedded server, or removes what the demonstration created on a cluster.
    pub(super) async fn clean_up(&self) -> Result<(), Failure> {
        if let Some(server) = &self.server {
            server.shutdown().await;
            return Ok(());
        }
        let now = DeleteParams::default();
        if self.has_installed {
            let definitions = self.client.resource::<CustomResourceDefinition>();
            definitions.delete(Foo::crd_name(), &now).await.map_err(|error| self.explain(&error))?;
        }
        if self.namespace != "default" {
            let namespaces = self.client.resource::<Namespace>();
            namespaces.delete(&self.namespace, &now).await.map_err(|error| self.explain(&error))?;
        }
        Ok(())
    }
}
