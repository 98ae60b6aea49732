//! The accept loop and the end of a listener, on paused time.

use std::{io::Write, sync::Arc};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::{ApiServer, http::TlsIdentity};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A socket that fails for a while and then waits forever.
struct Exhausted {
    failures: usize,
    attempts: Arc<Mutex<Vec<Instant>>>,
}

impl Accept for Exhausted {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        if self.failures == 0 {
            std::future::pending::<()>().await;
        }
        self.failures -= 1;
        self.attempts.lock().push(connection::now());
        // EMFILE
        Err(io::Error::from_raw_os_error(24))
    }
}

/// A socket on which the test connects.
struct Dialled(tokio::sync::mpsc::UnboundedReceiver<DuplexStream>);

impl Accept for Dialled {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        match self.0.recv().await {
            Some(stream) => Ok(stream),
            None => std::future::pending().await,
        }
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

struct Server {
    _api: ApiServer,
    shutdown: watch::Sender<bool>,
    shared: ListenerState,
}

fn server(tls: Option<TlsAcceptor>, limits: ConnectionLimits) -> Server {
    let server = ApiServer::builder().controllers(false).build();
    let (shutdown, is_down) = watch::channel(false);
    let shared = ListenerState { api: server.api(), tls, limits, shutdown: is_down };
    Server { _api: server, shutdown, shared }
}

#[tokio::test(start_paused = true)]
async fn an_accept_loop_without_file_descriptors_backs_off_and_logs_once() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let Server { shared, shutdown, _api } = server(None, ConnectionLimits::default());
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let socket = Exhausted { failures: 12, attempts: Arc::clone(&attempts) };
    let loops = accept(socket, shared, Duration::from_secs(5));
    let ends = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        shutdown.send_replace(true);
    };
    tokio::join!(loops, ends);
    let attempts = attempts.lock();
    let pauses: Vec<u128> =
        attempts.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_millis()).collect();
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
    let text = String::from_utf8(lines.0.lock().clone()).unwrap();
    assert_eq!(text.matches("cannot accept connections").count(), 1, "{text}");
}

#[test]
fn an_accepted_connection_resets_the_pause_and_a_quiet_time_ends_the_episode() {
    let start = connection::now();
    let mut failures = Failures::default();
    assert_eq!(failures.failed(start), (FIRST_PAUSE, true));
    assert_eq!(failures.failed(start), (FIRST_PAUSE * 2, false));
    failures.accepted();
    assert_eq!(failures.failed(start + EPISODE_GAP), (FIRST_PAUSE, false));
    assert_eq!(failures.failed(start + EPISODE_GAP * 3), (FIRST_PAUSE * 2, true));
}

#[tokio::test(start_paused = true)]
async fn a_client_beyond_the_connection_limit_waits_for_another_to_leave() {
    let limits = ConnectionLimits { max_connections: 1, ..ConnectionLimits::default() };
    let Server { shared, shutdown, _api } = server(None, limits);
    let (dial, dialled) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(Dialled(dialled), shared, Duration::from_secs(5)));
    let (first, server_side) = duplex(4096);
    dial.send(server_side).unwrap();
    let (mut second, server_side) = duplex(4096);
    dial.send(server_side).unwrap();
    second.write_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut reply = [0; 12];
    let early = tokio::time::timeout(Duration::from_secs(10), second.read_exact(&mut reply)).await;
    assert!(early.is_err(), "the limit is one connection");
    drop(first);
    second.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"HTTP/1.1 200");
    shutdown.send_replace(true);
    tasks.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_within_the_grace_period_despite_stuck_clients() {
    let websocket = format!(
        "GET {MAPS}?watch=true HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let cases = [
        ("nothing", String::new()),
        ("half a head", "GET /version HTTP/1.1\r\nHost:".to_owned()),
        ("half a body", format!("POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{")),
        ("a list that is not read", "GET /openapi/v3/api/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned()),
        (
            "a watch that is not read",
            "GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        ),
        ("a websocket that is not read", websocket),
        ("half a preface of HTTP/2", "PRI * HTTP/2.0\r\n".to_owned()),
    ];
    for is_tls in [false, true] {
        for (name, bytes) in &cases {
            let identity = TlsIdentity::new([127, 0, 0, 1].into()).unwrap();
            let tls = is_tls.then_some(identity.acceptor);
            let Server { shared, shutdown, _api } = server(tls, ConnectionLimits::default());
            let (dial, dialled) = tokio::sync::mpsc::unbounded_channel();
            let mut tasks = JoinSet::new();
            tasks.spawn(accept(Dialled(dialled), shared, Duration::from_secs(5)));
            // The stream buffers next to nothing, so that every reply blocks. For TLS, these bytes are an incomplete
            // handshake.
            let (mut client, server_side) = duplex(256);
            dial.send(server_side).unwrap();
            client.write_all(bytes.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let start = connection::now();
            shutdown.send_replace(true);
            tasks.join_all().await;
            let took = connection::now().duration_since(start);
            assert!(took <= Duration::from_secs(5) + ABORT_GRACE, "{name}, TLS {is_tls}: {took:?}");
            drop(client);
        }
    }
}
