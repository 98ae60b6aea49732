//! The server: creation, in-process use, listening and shutdown.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use kube_client::Client;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::Service;

use crate::{
    Clock, TokioClock,
    auth::{
        service_account::TokenIssuer,
        stored::Authorization,
        tokens::{TokenFileError, Tokens},
    },
    controllers::{Background, ControllerOptions},
    faults::Faults,
    http::{
        AllowedHosts, Api, ConnectionLimits, Endpoint, ListenOptions, Listener, Protection, ResponseBody,
        TlsIdentity,
    },
    kinds::Registry,
    rest::{EventExpiry, Rest},
    storage::{HistoryWindow, MemoryStore, Storage},
};

/// The time after the grace period for aborted connections and controllers to end.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(1);

/// A Kubernetes API server in this process.
///
/// The objects are in memory and live as long as the server. [`ApiServer::client`] returns a client that needs no socket;
/// [`ApiServer::listen`] serves the same objects to other processes. Clones are handles to the same server. Dropping the
/// last handle ends every watch.
///
/// # Guarantees
///
/// - **One history.** All writes, of whatever resource, receive versions from one increasing sequence, as with etcd.
/// - **All clients see the same objects**, in process and over sockets.
/// - **A watch misses no event.** A watch from a version within the [history window](ApiServerBuilder::history) receives
///   every later event in order. A watch from an older version receives 410 `Expired`.
/// - **Reproducible.** With an injected [clock](ApiServerBuilder::clock) and [seed](ApiServerBuilder::seed), times, names
///   and uids are reproducible.
///
/// Objects are not written to disk, and no pod is run: the server has no scheduler and no kubelet.
///
/// # Examples
///
/// ```
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube_client::{Api, api::ListParams};
/// use watchkeeper_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube_client::Error> {
/// let server = ApiServer::in_process();
/// let namespaces: Api<Namespace> = Api::all(server.client());
/// let names: Vec<_> =
///     namespaces.list(&ListParams::default()).await?.items.into_iter().filter_map(|item| item.metadata.name).collect();
/// assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    api: Arc<Api>,
    background: Arc<Background>,
    shutdown: watch::Sender<bool>,
    listening: ListenOptions,
    listeners: Mutex<Vec<Listener>>,
}

/// The default of [`ApiServerBuilder::history_bytes`].
const HISTORY_BYTES: usize = 64 * 1024 * 1024;

/// A builder for an [`ApiServer`] with options.
///
/// # Examples
///
/// A server with RBAC, one user and reproducible names and uids:
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_apiserver::ApiServer;
///
/// # fn main() -> Result<(), watchkeeper_apiserver::TokenFileError> {
/// let server = ApiServer::builder()
///     .tokens("s3cret,ann,uid-1,\"developers\"")?
///     .rbac(true)
///     .history(1_000, Duration::from_secs(60))
///     .seed(7)
///     .build();
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct ApiServerBuilder {
    clock: Option<Arc<dyn Clock>>,
    history: HistoryWindow,
    bookmark_interval: Duration,
    seed: Option<u64>,
    tokens: Tokens,
    has_control: bool,
    is_rbac: bool,
    has_controllers: bool,
    allowed_hosts: Vec<String>,
    listening: ListenOptions,
}

impl Default for ApiServerBuilder {
    fn default() -> Self {
        Self {
            clock: None,
            history: HistoryWindow { events: 10_000, age: Duration::from_mins(5), bytes: HISTORY_BYTES },
            bookmark_interval: Duration::from_mins(1),
            seed: None,
            tokens: Tokens::default(),
            has_control: false,
            is_rbac: false,
            has_controllers: true,
            allowed_hosts: Vec::new(),
            listening: ListenOptions {
                limits: ConnectionLimits::default(),
                shutdown_grace: Duration::from_secs(5),
            },
        }
    }
}

impl ApiServerBuilder {
    /// Sets the clock. Defaults to a [`TokioClock`] that starts at the current date.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use watchkeeper_apiserver::{ApiServer, TokioClock};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    /// let server = ApiServer::builder().clock(TokioClock::starting_at(date)).build();
    /// # drop(server);
    /// # }
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets the history window of each resource: at most `events` events, none older than `age`. Defaults to 10,000 events
    /// and 5 minutes.
    ///
    /// [`history_bytes`](Self::history_bytes) also limits the memory of the history.
    #[must_use]
    pub fn history(mut self, events: usize, age: Duration) -> Self {
        self.history = HistoryWindow { events, age, ..self.history };
        self
    }

    /// Limits the memory of the history of all resources together, in bytes. Defaults to 64 MiB.
    ///
    /// The limit counts the objects of all retained events. Resources with the longest history lose their oldest events
    /// first. A watch or list that needs a dropped event receives a 410. The stored objects themselves take their own size
    /// in addition.
    #[must_use]
    pub fn history_bytes(mut self, bytes: usize) -> Self {
        self.history.bytes = bytes;
        self
    }

    /// Sets the interval between bookmarks of a watch that requests them. Defaults to 1 minute.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.bookmark_interval = interval;
        self
    }

    /// Sets the seed of generated names, uids and jitter, so that they are reproducible. Defaults to a random seed.
    ///
    /// On a current-thread runtime the order of requests is reproducible too: expensive requests run inline instead of on a
    /// blocking thread.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the bearer tokens of users, one line of `token,user,uid,"group1,group2"` per token. Defaults to none.
    ///
    /// With RBAC, requests without a token are anonymous. Without RBAC, requests without a token on a socket are rejected
    /// with 401, because authentication is then the only protection of the server.
    ///
    /// # Errors
    /// Returns [`TokenFileError`] if a line is malformed, or if `csv` contains no token.
    ///
    /// # Examples
    ///
    /// ```
    /// use watchkeeper_apiserver::{ApiServer, TokenFileError};
    ///
    /// assert!(ApiServer::builder().tokens("s3cret,ann,uid-1,\"developers\"").is_ok());
    ///
    /// let error = ApiServer::builder().tokens("s3cret,ann").unwrap_err();
    /// assert!(matches!(error, TokenFileError::TooFewColumns { line: 1, columns: 2 }));
    /// ```
    #[doc(alias = "AddUser")]
    pub fn tokens(mut self, csv: &str) -> Result<Self, TokenFileError> {
        self.tokens = Tokens::parse(csv)?;
        Ok(self)
    }

    /// Sets whether stored roles and bindings authorize requests. Defaults to false: every request is allowed.
    ///
    /// Without [`tokens`](Self::tokens), requests on a socket are those of `system:anonymous`. Requests through
    /// [`ApiServer::client`] and [`ApiServer::service`] are then those of an administrator, because code that holds the
    /// server needs no credentials.
    #[must_use]
    pub fn rbac(mut self, is_enabled: bool) -> Self {
        self.is_rbac = is_enabled;
        self
    }

    /// Sets whether the server serves `/-/control`, the endpoint with which tests compact the history. Defaults to false.
    ///
    /// A request needs the same credentials as the API, and permission to `post` to this path.
    ///
    /// # Examples
    ///
    /// A watch from a version before the compaction ends with an error frame:
    ///
    /// ```
    /// use http::Request;
    /// use watchkeeper_apiserver::ApiServer;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ApiServer::builder().control(true).build();
    /// let client = server.client();
    /// let compact = Request::post("/-/control").body(br#"{"action": "compact"}"#.to_vec())?;
    /// client.request_text(compact).await?;
    ///
    /// let watch = Request::get("/api/v1/namespaces?watch=1&resourceVersion=1").body(Vec::new())?;
    /// let frame = client.request_text(watch).await?;
    /// assert!(frame.contains(r#""type":"ERROR""#) && frame.contains(r#""code":410"#), "{frame}");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn control(mut self, is_enabled: bool) -> Self {
        self.has_control = is_enabled;
        self
    }

    /// Sets additional host names that a server without authentication accepts in requests. Defaults to none.
    ///
    /// Any web page could otherwise use an unauthenticated server on the machine of its reader. Such a server therefore
    /// rejects requests for hosts other than loopback names and addresses, the addresses it listens on, and these names. It
    /// also rejects requests of pages of other sites (`Origin`, `Sec-Fetch-Site`). A server with [`tokens`](Self::tokens) or
    /// [`rbac`](Self::rbac) accepts every host.
    #[must_use]
    pub fn allowed_hosts(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_hosts = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether the server runs the controllers of a cluster's control plane. Defaults to true.
    ///
    /// The controllers are garbage collection, namespace deletion, the default service account of each namespace, and the
    /// aggregation of cluster roles. Without them, dependents outlive their owners, a deleted namespace remains until its
    /// finalizers are removed, and aggregated roles show no rules, although authorization follows their selectors. The
    /// system namespaces and the clean-up of custom resource definitions are part of the API server and always active.
    #[must_use]
    pub fn controllers(mut self, is_enabled: bool) -> Self {
        self.has_controllers = is_enabled;
        self
    }

    /// Sets the connection limits of a listening server. Defaults to [`ConnectionLimits::default`].
    #[must_use]
    pub fn connection_limits(mut self, limits: ConnectionLimits) -> Self {
        self.listening.limits = limits;
        self
    }

    /// Sets how long [`ApiServer::shutdown`] waits for open connections before it aborts them. Defaults to 5 s.
    #[must_use]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.listening.shutdown_grace = grace;
        self
    }

    /// Creates the server.
    pub fn build(self) -> ApiServer {
        let (shutdown, is_down) = watch::channel(false);
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::starting_now()));
        let store: Arc<dyn Storage> = Arc::new(MemoryStore::new(self.history));
        let rest = Rest {
            store,
            registry: Arc::new(Registry::new()),
            clock,
            random: Mutex::new(self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)),
            services: Arc::default(),
            advertised: Mutex::default(),
            events: EventExpiry::default(),
            definitions: Mutex::default(),
            issuer: TokenIssuer::default(),
            shutdown: is_down,
            bookmark_interval: self.bookmark_interval,
        };
        let options = ControllerOptions { has_cluster_controllers: self.has_controllers };
        let background = Arc::new(Background::new(options, shutdown.subscribe()));
        rest.create_system_namespaces();
        if self.is_rbac {
            rest.create_default_roles();
        }
        rest.publish();
        let guards = Protection {
            hosts: AllowedHosts::new(self.allowed_hosts),
            is_deterministic: self.seed.is_some(),
        };
        let authorization = Authorization::new(self.is_rbac);
        let api = Arc::new(Api::new(rest, self.tokens, authorization, self.has_control, guards));
        let listeners = Mutex::new(Vec::new());
        let listening = self.listening;
        ApiServer { inner: Arc::new(Inner { api, background, shutdown, listening, listeners }) }
    }
}

impl ApiServer {
    /// Creates a server with default options.
    ///
    /// # Examples
    ///
    /// ```
    /// use watchkeeper_apiserver::ApiServer;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), kube_client::Error> {
    /// let client = ApiServer::in_process().client();
    /// assert_eq!(client.apiserver_version().await?.major, "1");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "NewFakeClient")]
    #[doc(alias = "NewClientBuilder")]
    pub fn in_process() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for a server with other options.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder::default()
    }

    /// Returns a client of this server that needs no socket. The default namespace of the client is `default`.
    pub fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    /// Returns the server as a tower service, for clients with their own middleware.
    pub fn service(&self) -> ApiService {
        ApiService { api: Arc::clone(&self.inner.api), background: Arc::clone(&self.inner.background) }
    }

    /// Returns the faults that tests inject into the requests of all clients, in process and on sockets.
    ///
    /// # Examples
    ///
    /// The server is unavailable until the guard is dropped:
    ///
    /// ```
    /// use watchkeeper_apiserver::{ApiServer, faults::{Fault, Requests}};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ApiServer::in_process();
    /// let outage = server.faults().inject(Requests::all(), Fault::unavailable());
    /// assert!(server.client().apiserver_version().await.is_err());
    /// drop(outage);
    /// assert!(server.client().apiserver_version().await.is_ok());
    /// # }
    /// ```
    pub fn faults(&self) -> Faults {
        self.inner.api.faults.clone()
    }

    /// Removes the history before the newest version, as a compaction of etcd does.
    ///
    /// Watches and continued lists that need an older version then receive a 410. Running watches have what they need and
    /// continue; combine this method with [`Fault::cut_watches`](crate::faults::Fault::cut_watches) to make a client list
    /// again.
    pub fn expire_history(&self) {
        self.inner.api.rest.store.compact();
    }

    /// Serves plain HTTP on `address` until the server is shut down. Port 0 selects a free port.
    ///
    /// The protocol is HTTP/1.1, or HTTP/2 for clients that start with HTTP/2.
    ///
    /// # Errors
    /// Returns an I/O error if the server cannot bind to the address.
    ///
    /// # Examples
    ///
    /// ```
    /// use watchkeeper_apiserver::ApiServer;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ApiServer::in_process();
    /// let endpoint = server.listen(([127, 0, 0, 1], 0).into()).await?;
    /// assert!(endpoint.url().starts_with("http://127.0.0.1:"));
    ///
    /// // Write this to a file for kubectl: `kubectl --kubeconfig FILE get namespaces`.
    /// let kubeconfig = endpoint.kubeconfig(None);
    /// assert!(kubeconfig.contains(&endpoint.url()));
    ///
    /// server.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Endpoint> {
        self.start(address, None).await
    }

    /// Serves HTTPS on `address` with a generated certificate. Clients trust the certificate of [`Endpoint::authority`].
    ///
    /// # Errors
    /// Returns an I/O error if the server cannot bind to the address or cannot generate a certificate.
    #[doc(alias = "SecureServing")]
    pub async fn listen_tls(&self, address: SocketAddr) -> io::Result<Endpoint> {
        self.start(address, Some(TlsIdentity::new(address.ip())?)).await
    }

    async fn start(&self, address: SocketAddr, identity: Option<TlsIdentity>) -> io::Result<Endpoint> {
        let is_down = self.inner.shutdown.subscribe();
        let (acceptor, authority) = identity.map(|identity| (identity.acceptor, identity.authority)).unzip();
        self.inner.background.start(&self.inner.api);
        if let Some(authority) = &authority {
            self.inner.background.trust(authority);
        }
        let api = Arc::clone(&self.inner.api);
        let listener = Listener::start(api, address, acceptor, self.inner.listening, is_down).await?;
        self.inner.api.add_address(listener.address().ip());
        self.inner.api.rest.advertise(listener.address());
        let endpoint = Endpoint::new(listener.address(), authority);
        self.inner.api.rest.issuer.publish_at(&endpoint.url());
        self.inner.listeners.lock().push(listener);
        Ok(endpoint)
    }

    /// Returns the API behind the sockets.
    #[cfg(test)]
    pub(crate) fn api(&self) -> Arc<Api> {
        Arc::clone(&self.inner.api)
    }

    /// Ends every watch, closes every socket and waits until all connections and controllers have ended.
    ///
    /// Requests in progress may complete. Connections that are still open after the grace period
    /// ([`ApiServerBuilder::shutdown_grace`]) are aborted, whatever their clients do, so this method returns shortly after
    /// the grace period.
    pub async fn shutdown(&self) {
        self.inner.shutdown.send_replace(true);
        let listeners = std::mem::take(&mut *self.inner.listeners.lock());
        let all = async {
            for listener in listeners {
                listener.join().await;
            }
            self.inner.background.join().await;
        };
        let deadline = self.inner.listening.shutdown_grace.saturating_add(SHUTDOWN_MARGIN);
        if tokio::time::timeout(deadline, all).await.is_err() {
            tracing::warn!("shutdown grace period ended; leaving unfinished tasks behind");
        }
    }
}

/// The server as a tower service. Returned by [`ApiServer::service`].
///
/// Its calls fail only if a [fault](crate::faults) loses the request or the response.
#[derive(Debug, Clone)]
pub struct ApiService {
    api: Arc<Api>,
    background: Arc<Background>,
}

impl<B> Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.background.start(&self.api);
        let api = Arc::clone(&self.api);
        Box::pin(async move {
            // Most requests complete without waiting. Without this yield, a task that sends one request after the other
            // would starve all other tasks.
            tokio::task::coop::consume_budget().await;
            api.respond_in_process(request).await
        })
    }
}
