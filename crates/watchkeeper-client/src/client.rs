//! The client that everything else uses.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http::{Request, Response};
use kube_client::client::Body;
use kube_core::{DynamicObject, Resource};
use tower::{BoxError, Service};

use crate::{
    bounded,
    clientset::Clientset,
    config::{ClientConfig, ConfigError},
    discovery::DiscoveryClient,
    dynamic::GroupVersionResource,
    limits::Limits,
    rest::{Deadlines, KnownScope, ResourceClient, RestClient},
    transport::Credentials,
};

/// A client of one API server: transport, credentials, [`Limits`] and [`Deadlines`].
///
/// [`resource`](Self::resource) returns the verbs of a type, [`dynamic`](Self::dynamic) those of a type known only at run
/// time. All verbs return the same [`Error`](crate::Error). Cheap to clone; clones share the connection pool.
///
/// # Guarantees
///
/// - **Every request is bounded**: by a deadline, and by a limit on the size of its response.
/// - **Nothing is sent twice**, except reads with a [retry policy](crate::rest::RequestBuilder::retry) and a request that
///   was rejected with 401, which is sent once more with a new credential.
/// - **Credentials are sent to the configured server only.** Redirects are not followed.
/// - **No secret is printed**: `Debug` output and errors contain no credentials and no bodies.
///
/// # Example
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
/// use kube_core::params::{ListParams, PostParams};
/// use watchkeeper_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = watchkeeper_apiserver::ApiServer::in_process();
/// // In a program: Client::try_default().await?
/// let client = Client::from(server.client());
///
/// let mut settings = ConfigMap::default();
/// settings.metadata.name = Some("settings".into());
/// let maps = client.resource::<ConfigMap>().namespace("default");
/// maps.create(&PostParams::default(), &settings).await?;
/// assert!(maps.get("settings").await?.metadata.uid.is_some());
///
/// let namespaces = client.resource::<Namespace>().list(&ListParams::default()).await?;
/// assert!(namespaces.items.iter().any(|namespace| namespace.metadata.name.as_deref() == Some("default")));
/// # Ok(())
/// # }
/// ```
///
/// # Conversion from and to kube's client
///
/// [`kube_client::Client`] converts into a `Client` and back with `From`, and nothing is lost on the way: a
/// [`kube_client::Api`] over the converted client is subject to the same limits and deadlines, and a `Client` that is
/// converted to kube's type and back has its settings again. They are known from the first request on; until then
/// [`limits`](Self::limits), [`deadlines`](Self::deadlines) and [`host`](Self::host) return the defaults.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_client::{Client, rest::Deadlines};
///
/// fn patient(client: kube_client::Client) -> kube_client::Client {
///     let mut deadlines = Deadlines::default();
///     deadlines.request = Duration::from_secs(300);
///     Client::from(client).with_deadlines(deadlines).into()
/// }
/// ```
#[derive(Clone)]
pub struct Client {
    transport: kube_client::Client,
    /// `None` if not set on this client.
    limits: Option<Limits>,
    /// `None` if not set on this client.
    deadlines: Option<Deadlines>,
    credentials: Option<Arc<Credentials>>,
    host: Option<Arc<str>>,
    /// The client that `transport` was converted from, learned from the first request. Supplies the settings that are not
    /// set here.
    origin: Origin,
}

/// A client to be learned from the first request.
pub(crate) type Origin = Arc<OnceLock<Client>>;

/// Counters of the credentials of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CredentialCounts {
    /// The number of times a file, plugin or other source supplied a credential.
    pub loads: u64,
    /// The number of times a source failed. The last valid credential stays in use, and the reason is logged.
    pub failures: u64,
}

impl Client {
    /// Returns a client configured from `KUBECONFIG`, `~/.kube/config` or the service account of the pod, in this order.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if no configuration is found, or it is invalid.
    #[expect(
        clippy::unused_async,
        reason = "loading a configuration may become asynchronous; kube's is async too"
    )]
    #[doc(alias = "GetConfig")]
    #[doc(alias = "UseExistingCluster")]
    pub async fn try_default() -> Result<Self, ConfigError> {
        ClientConfig::infer()?.into_client()
    }

    /// Returns a client over any HTTP service: an API server in the same process, a mock, a custom stack. Requests are
    /// passed to the service unchanged.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, as [`kube_client::Client::new`] does.
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

    /// Returns this client with other limits. [`Limits::header_bytes`] has an effect only in [`ClientConfig::limits`], which
    /// is read when connections are made.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Returns this client with other deadlines.
    #[must_use]
    pub fn with_deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = Some(deadlines);
        self
    }

    /// Returns this client with another transport, such as one that counts or rejects requests before it passes them to the
    /// [`transport`](Self::transport) of this client. Limits and deadlines stay.
    #[must_use]
    #[doc(alias = "NewClient")]
    pub fn with_transport(self, transport: kube_client::Client) -> Self {
        // A new cell: the transport may contain this very client, which must not become its own origin.
        let origin = self.origin.get().cloned().map_or_else(OnceLock::new, OnceLock::from);
        Self { transport, origin: Arc::new(origin), ..self }
    }

    pub(crate) fn with_credentials(mut self, credentials: Arc<Credentials>) -> Self {
        self.credentials = Some(credentials);
        self
    }

    pub(crate) fn with_host(mut self, host: &str) -> Self {
        self.host = Some(host.into());
        self
    }

    /// Returns the host that requests are sent to, with its port if one was configured. `None` for a client that was not
    /// made from a [`ClientConfig`].
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref().or_else(|| self.origin.get()?.host())
    }

    /// Returns a `kube` client with the limits and deadlines of this client, for code written against kube-rs. The same as
    /// `kube_client::Client::from(client)`.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, as [`kube_client::Client::new`] does.
    pub fn kube(&self) -> kube_client::Client {
        bounded::kube_client(self)
    }

    /// Returns the HTTP stack that requests are sent through, without limits and deadlines. For services that wrap it; see
    /// [`with_transport`](Self::with_transport).
    pub fn transport(&self) -> &kube_client::Client {
        &self.transport
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the limits on the memory that one response may use.
    pub fn limits(&self) -> &Limits {
        static DEFAULT: Limits = Limits::DEFAULT;
        let inherited = || self.origin.get().map_or(&DEFAULT, Self::limits);
        self.limits.as_ref().unwrap_or_else(inherited)
    }

    /// Returns the deadlines of requests that do not set their own.
    pub fn deadlines(&self) -> Deadlines {
        self.known_deadlines().unwrap_or_default()
    }

    /// Returns the deadlines, or `None` if they may still be learned from the first request.
    pub(crate) fn known_deadlines(&self) -> Option<Deadlines> {
        self.deadlines.or_else(|| self.origin.get().map(Self::deadlines))
    }

    /// Returns the namespace of [`ResourceClient::default_namespace`]: the one in the kubeconfig context, or that of the pod.
    pub fn default_namespace(&self) -> &str {
        self.transport.default_namespace()
    }

    /// Returns a client for the objects of type `K`: cluster-wide, or in all namespaces until
    /// [`namespace`](ResourceClient::namespace) selects one.
    ///
    /// `K` is a type of `k8s_openapi`, a `#[derive(CustomResource)]` type, or kube's `PartialObjectMeta<K>` for metadata
    /// alone. Sends no request.
    ///
    /// ```
    /// # use watchkeeper_client::Client;
    /// # use k8s_openapi::api::core::v1::{Node, Pod};
    /// # fn example(client: &Client) {
    /// let nodes = client.resource::<Node>();
    /// let all_pods = client.resource::<Pod>();
    /// let pods = client.resource::<Pod>().namespace("default");
    /// # }
    /// ```
    #[doc(alias = "Api")]
    #[doc(alias = "CoreV1")]
    #[doc(alias = "get_metadata")]
    #[doc(alias = "Pods")]
    pub fn resource<K>(&self) -> ResourceClient<K>
    where
        K: Resource<Scope: KnownScope>,
        K::DynamicType: Default,
    {
        self.resource_with(&K::DynamicType::default())
    }

    /// Returns a client for the objects of a type whose resource is known only at run time, such as a `DynamicObject` or an
    /// [`ObjectMetadata`](crate::decode::ObjectMetadata). Sends no request.
    ///
    /// Whether the resource is namespaced is not known either: a request for a single object is sent to the namespace that
    /// [`namespace`](ResourceClient::namespace) selected or that the object carries, else to the cluster scope.
    #[doc(alias = "all_with")]
    pub fn resource_with<K>(&self, dynamic_type: &K::DynamicType) -> ResourceClient<K>
    where
        K: Resource<Scope: KnownScope>,
    {
        ResourceClient::new(self, dynamic_type)
    }

    /// Returns a client for the resource `resource`, known only by its name: built-in, custom, or of an aggregated server.
    /// Sends no request.
    ///
    /// Objects are kube's `DynamicObject`: typed metadata, everything else as JSON. The group, the version and the plural
    /// name are enough, since objects carry their kind. Where only the kind is known, a
    /// [`RestMapper`](crate::discovery::RestMapper) finds the resource.
    ///
    /// ```no_run
    /// # async fn example(client: watchkeeper_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_core::params::ListParams;
    ///
    /// let widgets = client.dynamic(&"example.com/v1/widgets".parse()?).namespace("default");
    /// for widget in widgets.list_all(&ListParams::default()).await?.items {
    ///     println!("{:?}: {}", widget.metadata.name, widget.data["spec"]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "DynamicClient")]
    #[doc(alias = "Resource")]
    pub fn dynamic(&self, resource: &GroupVersionResource) -> ResourceClient<DynamicObject> {
        self.resource_with(&resource.into())
    }

    /// Returns the REST client, for paths that no typed resource covers and for responses that are read as bytes.
    #[doc(alias = "RESTClient")]
    #[doc(alias = "RESTClientForGVK")]
    #[doc(alias = "NewRESTClient")]
    pub fn rest(&self) -> RestClient {
        RestClient::new(self.clone())
    }

    /// Returns the typed clients of all built-in kinds, by group, version and resource name as in client-go.
    #[doc(alias = "NewForConfig")]
    #[doc(alias = "kubeClient")]
    pub fn clientset(&self) -> Clientset {
        Clientset::new(self)
    }

    /// Returns a client that reads the resources the server serves. Each one has its own cache; keep it.
    pub fn discovery(&self) -> DiscoveryClient {
        DiscoveryClient::new(self)
    }

    /// Returns the counters of the credentials. Zero for a client that was not made from a [`ClientConfig`].
    pub fn credential_counts(&self) -> CredentialCounts {
        match (&self.credentials, self.origin.get()) {
            (Some(credentials), _) => {
                let (loads, failures) = credentials.counts();
                CredentialCounts { loads, failures }
            }
            (None, Some(origin)) => origin.credential_counts(),
            (None, None) => CredentialCounts::default(),
        }
    }
}

impl From<kube_client::Client> for Client {
    fn from(transport: kube_client::Client) -> Self {
        Self {
            transport,
            limits: None,
            deadlines: None,
            credentials: None,
            host: None,
            origin: Origin::default(),
        }
    }
}

impl From<Client> for kube_client::Client {
    fn from(client: Client) -> Self {
        client.kube()
    }
}

impl From<&Client> for kube_client::Client {
    fn from(client: &Client) -> Self {
        client.kube()
    }
}

impl From<&Self> for Client {
    fn from(client: &Self) -> Self {
        client.clone()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("default_namespace", &self.default_namespace())
            .field("limits", self.limits())
            .field("deadlines", &self.deadlines())
            .finish_non_exhaustive()
    }
}
