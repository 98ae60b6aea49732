//! The server: made, used in process, listening, shut down.

use std::{
    convert::Infallible,
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
    auth::{
        service_account::TokenIssuer,
        stored::Authorization,
        tokens::{TokenFileError, Tokens},
    },
    clock::{Clock, TokioClock},
    controllers::{Background, ControllerOptions},
    http::{
        AllowedHosts, Api, ConnectionLimits, Endpoint, Guards, Identity, ListenOptions, Listener,
        ResponseBody,
    },
    kinds::Registry,
    rest::{EventExpiry, Rest},
    storage::{HistoryWindow, MemoryStore, Storage},
};

/// Time after the grace period for aborted connections and for controllers to end.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(1);

/// A Kubernetes API server in this process.
///
/// It holds its objects in memory for as long as it lives. [`ApiServer::client`] answers a client that needs no socket;
/// [`ApiServer::listen`] serves the same objects to other processes. Handles are clones of each other: the last one that
/// is dropped ends every watch.
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

/// What a server is made from.
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
    /// Takes the time from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Keeps the history of each resource for `age`, and at most `events` events of it. Defaults to 5 minutes and 10,000
    /// events. [`history_bytes`](Self::history_bytes) bounds the memory of the history as well.
    #[must_use]
    pub fn history(mut self, events: usize, age: Duration) -> Self {
        self.history = HistoryWindow { events, age, ..self.history };
        self
    }

    /// Bounds the memory of the history of all resources together: the objects of all events that are kept, in bytes.
    /// Defaults to 64 MiB. The resources with the longest history lose their oldest events first; a watch or a list that
    /// needs such an event is answered with 410. Objects that are stored take their own size in addition, once.
    #[must_use]
    pub fn history_bytes(mut self, bytes: usize) -> Self {
        self.history.bytes = bytes;
        self
    }

    /// Sends watches that ask for bookmarks one every `interval`.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.bookmark_interval = interval;
        self
    }

    /// Makes names, uids and jitter the same in every run. On a current-thread runtime the order of requests is the same
    /// too: large ones run inline instead of on a blocking thread.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Authenticates clients by bearer tokens: lines of `token,user,uid,"group1,group2"`.
    ///
    /// Requests without a token are anonymous under RBAC. Without RBAC they are rejected with 401 on a socket, because
    /// authentication is all that protects the server then.
    ///
    /// # Errors
    /// If a line is not understood, or there is no token.
    pub fn tokens(mut self, csv: &str) -> Result<Self, TokenFileError> {
        self.tokens = Tokens::parse(csv)?;
        Ok(self)
    }

    /// Authorizes requests by the stored roles and bindings; otherwise everybody may do everything.
    ///
    /// Without [`tokens`](Self::tokens), requests on a socket are those of `system:anonymous`. Requests through
    /// [`ApiServer::client`] and [`ApiServer::service`] are then those of an administrator: code that holds the server needs
    /// no credentials.
    #[must_use]
    pub fn rbac(mut self, is_asked: bool) -> Self {
        self.is_rbac = is_asked;
        self
    }

    /// Serves `/-/control`, where tests compact the history. It needs the same credentials as the API, and permission to
    /// `post` to this path.
    #[must_use]
    pub fn control(mut self, is_served: bool) -> Self {
        self.has_control = is_served;
        self
    }

    /// Accepts requests that name one of these hosts, where there is no authentication.
    ///
    /// Any web page could use a server without authentication on the machine of its reader. Such a server therefore rejects
    /// requests for hosts other than loopback names and addresses, the addresses it listens on, and these names. Requests of
    /// pages of other sites (`Origin`, `Sec-Fetch-Site`) are rejected as well. A server with [`tokens`](Self::tokens) or
    /// [`rbac`](Self::rbac) accepts every host.
    #[must_use]
    pub fn allowed_hosts(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_hosts = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether the server runs the controllers that a cluster has beside its API server: garbage collection, the
    /// end of namespaces, a service account in each, the rules of aggregated cluster roles. Defaults to true.
    ///
    /// Without them, dependents outlive their owners, a deleted namespace stays until its finalizers are removed, and
    /// aggregated roles show no rules, although authorization follows their selectors. The system namespaces and
    /// the clean-up of custom resource definitions are part of the API server and always on.
    #[must_use]
    pub fn controllers(mut self, are_run: bool) -> Self {
        self.has_controllers = are_run;
        self
    }

    /// Limits the connections of a listening server.
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

    /// Makes the server.
    pub fn build(self) -> ApiServer {
        let (shutdown, is_down) = watch::channel(false);
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
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
        rest.make_namespaces();
        if self.is_rbac {
            rest.make_roles();
        }
        rest.publish();
        let guards =
            Guards { hosts: AllowedHosts::new(self.allowed_hosts), is_deterministic: self.seed.is_some() };
        let authorization = Authorization::new(self.is_rbac);
        let api = Arc::new(Api::new(rest, self.tokens, authorization, self.has_control, guards));
        let listeners = Mutex::new(Vec::new());
        let listening = self.listening;
        ApiServer { inner: Arc::new(Inner { api, background, shutdown, listening, listeners }) }
    }
}

impl ApiServer {
    /// A server with the usual options.
    pub fn in_process() -> Self {
        Self::builder().build()
    }

    /// A server to be made with other options.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder::default()
    }

    /// A client of this server, without a socket. Its default namespace is `default`.
    pub fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    /// The server as a service, for clients that bring their own.
    pub fn service(&self) -> ApiService {
        ApiService { api: Arc::clone(&self.inner.api), background: Arc::clone(&self.inner.background) }
    }

    /// Serves plain HTTP on `address` until the server is shut down; HTTP/1.1, and HTTP/2 to clients that start with it.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Endpoint> {
        self.start(address, None).await
    }

    /// Serves on `address` over TLS, with a certificate made for it; [`Endpoint::authority`] is what clients trust it by.
    ///
    /// # Errors
    /// If the address cannot be listened on, or no certificate can be made.
    pub async fn listen_tls(&self, address: SocketAddr) -> io::Result<Endpoint> {
        self.start(address, Some(Identity::new(address.ip())?)).await
    }

    async fn start(&self, address: SocketAddr, identity: Option<Identity>) -> io::Result<Endpoint> {
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

    /// Ends every watch, closes every socket and waits until that is done.
    ///
    /// Requests that are being served may complete. Connections that are still open after the grace period
    /// ([`ApiServerBuilder::shutdown_grace`]) are aborted, whatever their clients do, so that this returns shortly after it.
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

/// The server as a tower service.
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
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.background.start(&self.api);
        let api = Arc::clone(&self.api);
        Box::pin(async move {
            // Most requests are answered without waiting for anything: a task that sends one after the other would
            // never let others run.
            tokio::task::coop::consume_budget().await;
            Ok(api.respond_in_process(request).await)
        })
    }
}
