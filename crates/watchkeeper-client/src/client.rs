//! The client every other client is made from.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use kube_client::client::Body;
use tower::{BoxError, Service};

use crate::{
    clientset::Clientset,
    config::{ClientConfig, ConfigError},
    discovery::DiscoveryClient,
    dynamic::DynamicClient,
    limits::Limits,
    rest::RestClient,
    transport::Credentials,
};

/// A connection to one API server: kube's client, and the bounds we put around it.
///
/// Cheap to clone; clones share the connection pool.
#[derive(Clone)]
pub struct Client {
    kube: kube_client::Client,
    limits: Arc<Limits>,
    credentials: Option<Arc<Credentials>>,
    host: Option<Arc<str>>,
}

/// How the credentials of a client are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CredentialCounts {
    /// How often a file, plugin or other source gave a credential.
    pub loads: u64,
    /// How often one did not, and the last good credential was kept if there was one. The log says why.
    pub failures: u64,
}

impl Client {
    /// A client for what `KUBECONFIG`, `~/.kube/config` or the pod says, in this order.
    ///
    /// # Errors
    /// If there is no configuration, or if it cannot be used.
    #[expect(
        clippy::unused_async,
        reason = "finding a configuration may come to need it; kube's is async too"
    )]
    pub async fn try_default() -> Result<Self, ConfigError> {
        ClientConfig::infer()?.into_client()
    }

    /// A client over any service that takes requests and gives responses: an API server in the same process, a
    /// mock, a stack of one's own. Nothing is added to requests.
    ///
    /// # Panics
    /// Outside a tokio runtime, as [`kube_client::Client::new`] does.
    pub fn from_service<S, B>(service: S, default_namespace: impl Into<String>) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        kube_client::Client::new(service, default_namespace).into()
    }

    /// The same client with other bounds. The bound on a response head is set when connections are made, by
    /// [`ClientConfig::limits`], and stays.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Arc::new(limits);
        self
    }

    /// The same client with other services underneath, such as ones that count or refuse requests before they hand them to
    /// the [`kube`](Self::kube) client of this one.
    #[must_use]
    pub fn with_kube(mut self, kube: kube_client::Client) -> Self {
        self.kube = kube;
        self
    }

    pub(crate) fn with_credentials(mut self, credentials: Arc<Credentials>) -> Self {
        self.credentials = Some(credentials);
        self
    }

    pub(crate) fn with_host(mut self, host: &str) -> Self {
        self.host = Some(host.into());
        self
    }

    /// The host requests go to, with its port if it was given one. Unknown for a client that was not made from a
    /// [`ClientConfig`].
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The `kube` client underneath, for code written against kube-rs.
    pub fn kube(&self) -> &kube_client::Client {
        &self.kube
    }

    /// The bounds on what one response may cost.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The namespace of requests that name none.
    pub fn default_namespace(&self) -> &str {
        self.kube.default_namespace()
    }

    /// The REST client over this one.
    pub fn rest(&self) -> RestClient {
        RestClient::new(self.clone())
    }

    /// The clients of every built-in kind, and of custom types known at compile time.
    pub fn clientset(&self) -> Clientset {
        Clientset::new(self)
    }

    /// The client of resources known only at run time.
    pub fn dynamic(&self) -> DynamicClient {
        DynamicClient::new(self)
    }

    /// The client that asks the server what it serves. Each one has a cache of its own; keep it.
    pub fn discovery(&self) -> DiscoveryClient {
        DiscoveryClient::new(self)
    }

    /// How often credentials were loaded, and how often that failed. Zero for a client that was not made from a
    /// [`ClientConfig`].
    pub fn credential_counts(&self) -> CredentialCounts {
        let (loads, failures) = self.credentials.as_ref().map_or((0, 0), |credentials| credentials.counts());
        CredentialCounts { loads, failures }
    }
}

impl From<kube_client::Client> for Client {
    fn from(kube: kube_client::Client) -> Self {
        Self { kube, limits: Arc::new(Limits::default()), credentials: None, host: None }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("default_namespace", &self.default_namespace())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
