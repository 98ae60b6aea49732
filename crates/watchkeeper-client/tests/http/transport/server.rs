//! A server that records its requests.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;
use watchkeeper_client::config::ClientConfig;

pub(crate) type ServerResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A request as received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The client certificate of the connection, in DER.
    pub(crate) peer: Option<Vec<u8>>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// A server on the loopback interface, which stops when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    tls: Arc<Mutex<Option<Arc<ServerConfig>>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server that responds to everything with 200 and no body, over plain HTTP.
    pub(crate) async fn plain() -> Self {
        Self::start(None, |_| respond(200, "")).await
    }

    /// Starts a server that responds to everything with 200 and no body, over TLS.
    pub(crate) async fn tls(config: Arc<ServerConfig>) -> Self {
        Self::start(Some(config), |_| respond(200, "")).await
    }

    pub(crate) async fn start(
        tls: Option<Arc<ServerConfig>>,
        handler: impl Fn(&Seen) -> ServerResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tls = Arc::new(Mutex::new(tls));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, tls.clone(), seen.clone(), Arc::new(handler)));
        Self { address, tls, seen, _tasks: tasks }
    }

    /// Replaces the certificate for new connections.
    pub(crate) fn set_tls(&self, config: Arc<ServerConfig>) {
        *self.tls.lock().unwrap() = Some(config);
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.lock().unwrap().is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    pub(crate) fn config(&self) -> ClientConfig {
        ClientConfig::new(&self.url()).unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the `Authorization` header of each request.
    pub(crate) fn authorizations(&self) -> Vec<Option<String>> {
        let header = |seen: &Seen| seen.header("authorization").map(ToOwned::to_owned);
        self.seen().iter().map(header).collect()
    }
}

pub(crate) fn respond(status: u16, body: &'static str) -> ServerResponse {
    let mut response = Response::new(Full::from(body).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// Responds with 200 to requests with `token`, and with 401 to all others.
pub(crate) fn only(token: &'static str) -> impl Fn(&Seen) -> ServerResponse + Send + Sync + 'static {
    move |seen| {
        let is_known = seen.header("authorization") == Some(&format!("Bearer {token}"));
        respond(if is_known { 200 } else { 401 }, "")
    }
}

async fn accept(
    listener: TcpListener,
    tls: Arc<Mutex<Option<Arc<ServerConfig>>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    handler: Arc<dyn Fn(&Seen) -> ServerResponse + Send + Sync>,
) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            return;
        };
        let config = tls.lock().unwrap().clone();
        let (seen, handler) = (seen.clone(), handler.clone());
        connections.spawn(async move {
            let Some(config) = config else {
                return serve(tcp, None, seen, handler).await;
            };
            // A client that rejects the certificate closes the connection.
            if let Ok(stream) = TlsAcceptor::from(config).accept(tcp).await {
                let peer = stream.get_ref().1.peer_certificates().map(|chain| chain[0].to_vec());
                serve(stream, peer, seen, handler).await;
            }
        });
    }
}

async fn serve<I>(
    io: I,
    peer: Option<Vec<u8>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    handler: Arc<dyn Fn(&Seen) -> ServerResponse + Send + Sync>,
) where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (peer, seen, handler) = (peer.clone(), seen.clone(), handler.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let one = Seen {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                version: parts.version,
                headers: parts.headers,
                body,
                peer,
            };
            let response = handler(&one);
            seen.lock().unwrap().push(one);
            Ok::<_, hyper::Error>(response)
        }
    });
    // The client observes how a connection ends.
    drop(auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(io), service).await);
}
