//! The API on a socket.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc};

use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::service::Api;

/// The most bytes the head of a request may have.
const HEAD_LIMIT: usize = 1024 * 1024;

/// A socket the API is served on. It goes on until it is shut down.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Listener {
    /// Serves `api` on `address`, over TLS if `tls` says how.
    pub(crate) async fn start(
        api: Arc<Api>,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        shutdown: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        #[expect(clippy::disallowed_methods, reason = "the handle is kept and awaited by shutdown")]
        let accepting = tokio::spawn(accept(socket, api, tls, shutdown));
        Ok(Self { address, accepting })
    }

    /// The address, with the port that was chosen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the last connection is closed.
    pub(crate) async fn join(self) {
        // A panic of a connection's task has been reported by the panic hook.
        let _ = self.accepting.await;
    }
}

async fn accept(
    socket: TcpListener,
    api: Arc<Api>,
    tls: Option<TlsAcceptor>,
    mut shutdown: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            _ = shutdown.wait_for(|is_down| *is_down) => break,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else { continue };
        // Frames of a watch are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let watcher = graceful.watcher();
        connections.spawn(serve(stream, Arc::clone(&api), tls.clone(), watcher));
    }
    drop(socket);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = async { while connections.join_next().await.is_some() {} } => {}
    }
    connections.shutdown().await;
}

async fn serve(
    stream: TcpStream,
    api: Arc<Api>,
    tls: Option<TlsAcceptor>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let api = Arc::clone(&api);
        async move { Ok::<_, Infallible>(api.respond(request).await) }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().max_buf_size(HEAD_LIMIT);
    server.http2().max_header_list_size(u32::try_from(HEAD_LIMIT).unwrap_or(u32::MAX));
    // What a client does to its connection is the client's business.
    let result = match tls {
        None => watcher.watch(server.serve_connection(TokioIo::new(stream), service).into_owned()).await,
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => {
                watcher.watch(server.serve_connection(TokioIo::new(stream), service).into_owned()).await
            }
            Err(error) => {
                tracing::debug!(%error, "TLS handshake failed");
                return;
            }
        },
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended early");
    }
}
