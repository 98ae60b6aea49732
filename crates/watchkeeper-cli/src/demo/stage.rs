//! Where the demonstration plays: an API server in this process, or a namespace of its own on a cluster.

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

use super::narrator::{Narrator, Voice};
use crate::{
    cluster::{Cluster, ClusterArguments, Target},
    exit::Failure,
    files,
    sample::{self, Foo},
};

/// What is looked for on a cluster takes longer: images are pulled, pods are started.
const PATIENCE_EMBEDDED: Duration = Duration::from_secs(30);
const PATIENCE_CLUSTER: Duration = Duration::from_mins(3);

/// The place, and what has to be tidied up after it.
#[derive(Debug)]
pub(super) struct Stage {
    client: Client,
    target: Target,
    namespace: String,
    /// The server, if it is in this process.
    server: Option<ApiServer>,
    /// The definition was not there before.
    has_installed: bool,
}

impl Stage {
    /// Connects. Nothing is made yet.
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
        let place =
            if server.is_some() { "in this process".to_owned() } else { format!("at {}", target.server) };
        Narrator::part("A cluster, and a controller for Foos: each wants a Deployment")?;
        narrator.say(
            Voice::Cluster,
            &format!("API server {place}, Kubernetes {}", version.trim_start_matches('v')),
        )?;

        Ok(Self { client, target, namespace: "default".to_owned(), server, has_installed: false })
    }

    /// Makes a namespace on a cluster, and installs the definition of Foo.
    pub(super) async fn furnish(&mut self, narrator: &Narrator) -> Result<(), Failure> {
        if self.server.is_none() {
            let metadata =
                ObjectMeta { generate_name: Some("watchkeeper-demo-".to_owned()), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            let namespaces = self.client.resource::<Namespace>();
            let made = namespaces.create(&PostParams::default(), &namespace).await;
            self.namespace = made.map_err(|error| self.explain(&error))?.name_any();
            narrator.say(Voice::You, &format!("make namespace {}", self.namespace))?;
        }
        self.has_installed = sample::install(&self.client).await.map_err(|error| self.explain(&error))?;
        let name = Foo::crd_name();
        let what = if self.has_installed { "created" } else { "found" };
        narrator.say(Voice::You, &format!("{what} CustomResourceDefinition {name}"))?;
        let served = sample::await_served(&self.client, self.patience()).await;
        served.map_err(|error| self.explain(&error))?;
        narrator.say(Voice::Cluster, &format!("serves {name}"))?;
        Ok(())
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn patience(&self) -> Duration {
        if self.is_embedded() { PATIENCE_EMBEDDED } else { PATIENCE_CLUSTER }
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    pub(super) fn explain(&self, error: &watchkeeper::client::Error) -> Failure {
        Failure::of_request(error, &self.target)
    }

    /// Informers of this stage's namespace, by another client.
    pub(super) fn factory(&self, client: &Client) -> SharedInformerFactory {
        SharedInformerFactory::builder(client.clone()).scope(Scope::namespace(&self.namespace)).build()
    }

    /// Has the server in this process listen, and writes a kubeconfig for it.
    pub(super) async fn listen(&self, kubeconfig: &Path) -> Result<Option<Endpoint>, Failure> {
        let Some(server) = &self.server else { return Ok(None) };
        let endpoint = server.listen(([127, 0, 0, 1], 0).into()).await;
        let endpoint =
            endpoint.map_err(|error| Failure::Other(format!("cannot listen on 127.0.0.1: {error}")))?;
        files::write_private(kubeconfig, &endpoint.kubeconfig(None))?;
        Ok(Some(endpoint))
    }

    /// Leaves a cluster as it was found.
    pub(super) async fn clear(&self) -> Result<(), Failure> {
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
