//! Connection pools, one for each set of certificates.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{Request, Response, Uri, uri::Scheme};
use hyper::{
    body::Incoming,
    rt::{Read, Write},
};
use hyper_util::{
    client::legacy::{self, connect::Connection},
    rt::{TokioExecutor, TokioTimer},
};
use kube_client::client::Body;
use tower::{BoxError, Service, util::BoxCloneSyncService};

use super::{
    TransportError,
    connect::{TimeoutConnector, tcp},
    proxy::Proxy,
    tls::{self, TlsMaterial, TlsSettings},
};

/// A service that sends one request over a pooled connection.
pub(crate) type HttpClient = BoxCloneSyncService<Request<Body>, Response<Incoming>, legacy::Error>;

/// The minimum read buffer of hyper.
const SMALLEST_HEAD_BYTES: usize = 8 << 10;

/// The number of idle HTTP/1.1 connections that are kept.
const IDLE_CONNECTIONS: usize = 32;

/// The interval of HTTP/2 pings on an idle connection, and their timeout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Http2KeepAlive {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

/// The settings of connections.
#[derive(Debug, Clone)]
pub(crate) struct PoolSettings {
    pub(crate) server: Uri,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) tls: TlsSettings,
    pub(crate) connect_timeout: Duration,
    pub(crate) header_bytes: usize,
    /// The HTTP/2 settings; `None` for HTTP/1.1 only.
    pub(crate) http2: Option<Http2KeepAlive>,
}

impl PoolSettings {
    /// Returns the enforced size limit of a response head.
    pub(crate) fn head_limit_bytes(&self) -> usize {
        self.header_bytes.max(SMALLEST_HEAD_BYTES)
    }
}

/// The connections to one API server.
///
/// After a change of certificates, new requests use new connections. Requests in progress, in particular
/// watches, finish on the connection on which they started.
#[derive(Debug)]
pub(crate) struct Pool {
    settings: PoolSettings,
    current: Mutex<Option<Arc<Connections>>>,
}

#[derive(Debug)]
struct Connections {
    material: TlsMaterial,
    client: HttpClient,
    /// A pool of HTTP/1.1 connections for requests that upgrade their connection, which HTTP/2 does not
    /// support.
    upgrades: HttpClient,
}

impl Pool {
    /// Creates a pool, including the first connector, so that errors are reported now.
    pub(crate) fn new(settings: PoolSettings, material: TlsMaterial) -> Result<Self, TransportError> {
        let PoolSettings { server, proxy, tls, http2, .. } = &settings;
        tracing::debug!(
            %server,
            proxy = proxy.as_ref().map(|proxy| proxy.address.to_string()),
            tls_server_name = ?tls.server_name,
            accept_invalid_certs = tls.accept_invalid_certs,
            http2_ping = ?http2.map(|ping| (ping.interval, ping.timeout)),
            "connections configured",
        );
        let pool = Self { settings, current: Mutex::default() };
        pool.connections(material)?;
        Ok(pool)
    }

    pub(crate) fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    pub(crate) fn client(
        &self,
        material: TlsMaterial,
        is_upgrade: bool,
    ) -> Result<HttpClient, TransportError> {
        let connections = self.connections(material)?;
        Ok(if is_upgrade { connections.upgrades.clone() } else { connections.client.clone() })
    }

    fn connections(&self, material: TlsMaterial) -> Result<Arc<Connections>, TransportError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = current.as_ref().filter(|current| current.material == material) {
            return Ok(connections.clone());
        }
        if current.is_some() {
            tracing::info!(server = %self.settings.server, "certificates changed; using new connections");
        }
        let client = self.connect(&material, self.settings.http2)?;
        let upgrades = match self.settings.http2 {
            Some(_) => self.connect(&material, None)?,
            None => client.clone(),
        };
        Ok(current.insert(Arc::new(Connections { material, client, upgrades })).clone())
    }

    fn connect(
        &self,
        material: &TlsMaterial,
        http2: Option<Http2KeepAlive>,
    ) -> Result<HttpClient, TransportError> {
        match &self.settings.proxy {
            None => self.secure(tcp(), material, http2),
            #[cfg(feature = "proxy")]
            Some(proxy) => match proxy.kind {
                super::proxy::ProxyKind::Connect => {
                    self.secure(through::connect(proxy, tcp()), material, http2)
                }
                super::proxy::ProxyKind::Socks5 => {
                    self.secure(through::socks5(proxy, tcp()), material, http2)
                }
            },
            // No configuration has a proxy in this build. If one did, it must not be bypassed.
            #[cfg(not(feature = "proxy"))]
            Some(_) => Err(TransportError::Connect {
                server: self.settings.server.to_string(),
                reason: super::ProxyError::NotCompiledIn.to_string(),
                source: super::ProxyError::NotCompiledIn.into(),
            }),
        }
    }

    fn secure<C>(
        &self,
        tcp: C,
        material: &TlsMaterial,
        http2: Option<Http2KeepAlive>,
    ) -> Result<HttpClient, TransportError>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send + 'static,
    {
        if self.settings.server.scheme() == Some(&Scheme::HTTPS) {
            let tls = tls::wrap(tcp, &self.settings.tls, material, http2.is_some())?;
            Ok(self.pool(tls, http2))
        } else {
            // HTTP/2 is negotiated in the TLS handshake; without TLS, only HTTP/1.1 is used.
            Ok(self.pool(tcp, None))
        }
    }

    fn pool<C>(&self, connector: C, http2: Option<Http2KeepAlive>) -> HttpClient
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send + 'static,
    {
        let connector = TimeoutConnector::new(connector, self.settings.connect_timeout);
        let head_bytes = self.settings.head_limit_bytes();
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(head_bytes);
        #[cfg(feature = "http2")]
        if let Some(keep_alive) = http2 {
            builder
                .http2_max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
                .http2_adaptive_window(true)
                .http2_keep_alive_interval(keep_alive.interval)
                .http2_keep_alive_timeout(keep_alive.timeout)
                .http2_keep_alive_while_idle(true);
        }
        #[cfg(not(feature = "http2"))]
        let _ = http2;
        BoxCloneSyncService::new(builder.build::<_, Body>(connector))
    }
}

/// Connectors that use a proxy.
#[cfg(feature = "proxy")]
mod through {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use http::HeaderValue;
    use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
    use secrecy::ExposeSecret;

    use super::Proxy;

    pub(super) fn connect<C>(proxy: &Proxy, tcp: C) -> Tunnel<C> {
        let tunnel = Tunnel::new(proxy.address.clone(), tcp);
        let login = proxy.login.as_ref().and_then(|(user, password)| {
            let encoded = BASE64_STANDARD.encode(format!("{user}:{}", password.expose_secret()));
            HeaderValue::try_from(format!("Basic {encoded}")).ok()
        });
        match login {
            // This call marks the header as sensitive.
            Some(header) => tunnel.with_auth(header),
            None => tunnel,
        }
    }

    pub(super) fn socks5<C>(proxy: &Proxy, tcp: C) -> SocksV5<C> {
        let socks = SocksV5::new(proxy.address.clone(), tcp);
        match &proxy.login {
            Some((user, password)) => socks.with_auth(user.clone(), password.expose_secret().to_owned()),
            None => socks,
        }
    }
}
