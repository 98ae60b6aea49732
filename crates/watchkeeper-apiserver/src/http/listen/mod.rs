//! The accept loop of a listening server.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use super::{
    connection::{self, ListenerState},
    limits::ConnectionLimits,
    service::Api,
};

/// The first delay, and the longest one, after a connection could not be accepted.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time between failures below which they belong to the same episode, which is logged once.
const EPISODE_GAP: Duration = Duration::from_secs(30);

/// The time for aborted connections to end. A CPU-bound task cannot be aborted and is detached.
const ABORT_GRACE: Duration = Duration::from_millis(500);

/// A socket that serves the API until the server shuts down.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// The options of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListenOptions {
    /// Limits on connections.
    pub(crate) limits: ConnectionLimits,
    /// Time for open connections to end after the server began to shut down.
    pub(crate) shutdown_grace: Duration,
}

impl Listener {
    /// Serves `api` on `address`, over TLS if `tls` is given.
    pub(crate) async fn start(
        api: Arc<Api>,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        options: ListenOptions,
        shutdown: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        let shared = ListenerState { api, tls, limits: options.limits, shutdown };
        #[expect(clippy::disallowed_methods, reason = "the handle is kept and awaited by shutdown")]
        let accepting = tokio::spawn(accept(socket, shared, options.shutdown_grace));
        Ok(Self { address, accepting })
    }

    /// Returns the address, with the port that the system chose.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the last connection is closed, at most for the grace period after the start of the shutdown.
    pub(crate) async fn join(self) {
        // The panic hook has reported any panic of a connection's task.
        let _ = self.accepting.await;
    }
}

/// A source of connections, which tests replace.
trait Accept: Send {
    /// The type of an accepted connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection. Dropping the future loses no connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // Watch frames are small and must not be delayed.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

async fn accept<A: Accept>(mut socket: A, shared: ListenerState, shutdown_grace: Duration) {
    let mut shutdown = shared.shutdown.clone();
    let mut connections = JoinSet::new();
    let mut failures = Failures::default();
    let mut is_full = false;
    loop {
        let has_room = connections.len() < shared.limits.max_connections;
        if !has_room && !is_full {
            tracing::warn!(
                connections = connections.len(),
                "connection limit reached; new clients wait until a connection is closed"
            );
        }
        is_full = !has_room;
        let accepted = tokio::select! {
            () = connection::is_down(&mut shutdown) => break,
            Some(_) = connections.join_next() => continue,
            accepted = socket.accept(), if has_room => accepted,
        };
        match accepted {
            Ok(stream) => {
                failures.accepted();
                connections.spawn(connection::serve(stream, shared.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                let (pause, is_new) = failures.failed(connection::now());
                if is_new {
                    tracing::warn!(%error, connections = connections.len(), "cannot accept connections; retrying");
                }
                tokio::select! {
                    () = connection::is_down(&mut shutdown) => break,
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }
    drop(socket);
    if tokio::time::timeout(shutdown_grace, drain(&mut connections)).await.is_ok() {
        return;
    }
    tracing::warn!(connections = connections.len(), "shutdown grace period ended; aborting connections");
    connections.abort_all();
    // Tasks that have not ended by then are CPU-bound and cannot be aborted; they end with the program.
    let _ = tokio::time::timeout(ABORT_GRACE, drain(&mut connections)).await;
    connections.detach_all();
}

async fn drain(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Returns whether only the connection that was being accepted failed, so that the next one may follow at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// The delays after connections could not be accepted, for example because no file descriptors are left.
#[derive(Debug, Default)]
struct Failures {
    pause: Option<Duration>,
    last: Option<Instant>,
}

impl Failures {
    /// Records an accepted connection.
    fn accepted(&mut self) {
        self.pause = None;
    }

    /// Records a failure. Returns the delay before the next attempt, and whether the failure starts an episode.
    fn failed(&mut self, now: Instant) -> (Duration, bool) {
        let is_new = self.last.is_none_or(|last| now.duration_since(last) > EPISODE_GAP);
        let pause = self.pause.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some(pause);
        self.last = Some(now);
        (pause, is_new)
    }
}

#[cfg(test)]
mod tests;
