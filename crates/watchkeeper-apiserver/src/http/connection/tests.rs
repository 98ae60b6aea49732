//! The limits of a connection, on paused time and in-memory streams.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::Instant,
};
use tower::ServiceExt;

use super::*;
use crate::{ApiServer, http::TlsIdentity};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server and the tasks that serve its connections.
struct Peer {
    server: ApiServer,
    _shutdown: watch::Sender<bool>,
    shared: ListenerState,
    tasks: JoinSet<()>,
}

impl Peer {
    fn new() -> Self {
        let server = ApiServer::builder().controllers(false).build();
        let (shutdown, is_down) = watch::channel(false);
        let limits = ConnectionLimits::default();
        let shared = ListenerState { api: server.api(), tls: None, limits, shutdown: is_down };
        Self { server, _shutdown: shutdown, shared, tasks: JoinSet::new() }
    }

    /// Connects through a stream that buffers `bytes` in each direction.
    fn connect(&mut self, bytes: usize) -> DuplexStream {
        let (client_side, server_side) = duplex(bytes);
        self.tasks.spawn(serve(server_side, self.shared.clone()));
        client_side
    }

    /// Sends a request in process and returns its body.
    async fn call(&self, method: &str, path: &str, body: String) -> String {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let response = self.server.service().oneshot(request.body(body).unwrap()).await.unwrap();
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    async fn open_watches(&self) -> u64 {
        let metrics = self.call("GET", "/metrics", String::new()).await;
        let open = metrics.lines().filter(|line| line.starts_with("apiserver_longrunning_requests"));
        open.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// Stores objects of 100 kB in total.
    async fn fill(&self) {
        for index in 0..100 {
            let text = "x".repeat(1000);
            let body = format!(r#"{{"metadata":{{"name":"m-{index}"}},"data":{{"k":"{text}"}}}}"#);
            self.call("POST", MAPS, body).await;
        }
    }
}

/// Reads until the server closes the connection. Returns the received text and the elapsed time.
async fn read_to_close(stream: &mut DuplexStream) -> (String, Duration) {
    let start = now();
    let mut bytes = Vec::new();
    // A connection that is dropped during a response ends in an error.
    let _ = stream.read_to_end(&mut bytes).await;
    (String::from_utf8_lossy(&bytes).into_owned(), now().duration_since(start))
}

/// Reads one response with a length.
async fn read_response(stream: &mut DuplexStream) -> String {
    let mut bytes = Vec::new();
    loop {
        bytes.push(stream.read_u8().await.unwrap());
        if let Some(head) = String::from_utf8_lossy(&bytes).strip_suffix("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut body).await.unwrap();
            return format!("{head}\r\n\r\n{}", String::from_utf8(body).unwrap());
        }
    }
}

fn seconds(duration: Duration) -> u64 {
    // Time advances in milliseconds; a deadline is never early.
    duration.as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_completes_its_first_head_is_closed_after_32_seconds() {
    for start in ["", "G", "GET /version HTTP/1.1\r\nHost: localhost\r\nX-A", "PRI * HTTP/2.0\r\n"] {
        let mut peer = Peer::new();
        let mut client = peer.connect(4096);
        client.write_all(start.as_bytes()).await.unwrap();
        let (_, took) = read_to_close(&mut client).await;
        assert_eq!(seconds(took), 32, "{start:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_client_can_send_its_whole_body_and_read_the_error() {
    let body = "x".repeat(4 * 1024 * 1024);
    let request =
        format!("POST {MAPS} HTTP/1.1\r\nHost: example.com\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut peer = Peer::new();
    let mut client = peer.connect(64 * 1024);
    client.write_all(request.as_bytes()).await.unwrap();
    let (response, took) = read_to_close(&mut client).await;
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
    assert_eq!(seconds(took), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_client_that_keeps_sending_is_closed_after_5_seconds() {
    let mut peer = Peer::new();
    let mut client = peer.connect(64 * 1024);
    let head = format!("POST {MAPS} HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000000\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let start = now();
    while client.write_all(b"x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(seconds(now().duration_since(start)), 5);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_is_closed_after_32_seconds() {
    let mut peer = Peer::new();
    let (mut reader, mut writer) = tokio::io::split(peer.connect(4096));
    let start = now();
    let drips = async {
        writer.write_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
        while writer.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let mut bytes = Vec::new();
    let closed = reader.read_to_end(&mut bytes);
    tokio::select! { () = drips => {}, _ = closed => {} }
    assert_eq!(seconds(now().duration_since(start)), 32);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_90_seconds_and_a_next_head_has_32() {
    let mut peer = Peer::new();
    let request = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut idle = peer.connect(4096);
    idle.write_all(request).await.unwrap();
    assert!(read_response(&mut idle).await.starts_with("HTTP/1.1 200"));
    tokio::time::sleep(Duration::from_secs(80)).await;
    idle.write_all(request).await.unwrap();
    assert!(read_response(&mut idle).await.starts_with("HTTP/1.1 200"), "a request ends the idle time");
    assert_eq!(seconds(read_to_close(&mut idle).await.1), 90);

    let mut slow = peer.connect(4096);
    slow.write_all(request).await.unwrap();
    read_response(&mut slow).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    slow.write_all(b"GET /version").await.unwrap();
    assert_eq!(seconds(read_to_close(&mut slow).await.1), 32);
}

#[tokio::test(start_paused = true)]
async fn a_body_without_progress_is_answered_with_a_timeout_after_15_seconds() {
    let mut peer = Peer::new();
    let mut client = peer.connect(4096);
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{{"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let (reply, took) = read_to_close(&mut client).await;
    assert!(reply.starts_with("HTTP/1.1 504") && reply.contains(r#""reason":"Timeout""#), "{reply}");
    assert_eq!(seconds(took), 15);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_is_answered_with_a_timeout_after_60_seconds() {
    let mut peer = Peer::new();
    let (mut reader, mut writer) = tokio::io::split(peer.connect(4096));
    let start = now();
    let drips = async {
        let head = format!("POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000\r\n\r\n");
        writer.write_all(head.as_bytes()).await.unwrap();
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut bytes = Vec::new();
    tokio::select! { () = drips => {}, _ = reader.read_to_end(&mut bytes) => {} }
    assert_eq!(seconds(now().duration_since(start)), 60);
    assert!(bytes.starts_with(b"HTTP/1.1 504"), "{}", String::from_utf8_lossy(&bytes));
}

#[tokio::test(start_paused = true)]
async fn half_a_tls_handshake_is_closed_after_10_seconds() {
    for bytes in [&b""[..], &[22, 3, 1, 2, 0, 1, 0]] {
        let mut peer = Peer::new();
        peer.shared.tls = Some(TlsIdentity::new([127, 0, 0, 1].into()).unwrap().acceptor);
        let mut client = peer.connect(4096);
        client.write_all(bytes).await.unwrap();
        assert_eq!(seconds(read_to_close(&mut client).await.1), 10);
    }
}

/// Waits until no watch is open. Returns the elapsed time.
async fn watches_end(peer: &Peer) -> Duration {
    let start = now();
    while peer.open_watches().await > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(now().duration_since(start) < Duration::from_mins(10), "the watch outlives its timeout");
    }
    now().duration_since(start)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_read_ends_at_its_timeout_and_frees_its_memory() {
    let websocket = "Origin: http://localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for headers in ["", websocket] {
        let mut peer = Peer::new();
        peer.fill().await;
        let mut client = peer.connect(256);
        let request =
            format!("GET {MAPS}?watch=true&timeoutSeconds=7 HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(peer.open_watches().await, 1);
        let took = watches_end(&peer).await;
        assert_eq!(seconds(took), 12, "five seconds are the grace for the last bytes");
        peer.tasks.join_next().await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_slowly_read_watch_receives_every_event() {
    let mut peer = Peer::new();
    peer.fill().await;
    let mut client = peer.connect(256);
    let request = format!("GET {MAPS}?watch=true&timeoutSeconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
    let (text, took) = read_to_close_of_watch(&mut client).await;
    assert_eq!(text.matches("\"ADDED\"").count(), 100);
    assert_eq!(seconds(took), 300);
}

/// Reads until the last chunk of a watch.
async fn read_to_close_of_watch(client: &mut DuplexStream) -> (String, Duration) {
    let (start, mut bytes) = (now(), Vec::new());
    while !bytes.ends_with(b"0\r\n\r\n") {
        assert!(client.read_buf(&mut bytes).await.unwrap() > 0);
    }
    (String::from_utf8(bytes).unwrap(), now().duration_since(start))
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_not_read_is_aborted_after_a_minute() {
    let mut peer = Peer::new();
    for _ in 0..20 {
        peer.fill().await;
        let text = "y".repeat(900_000);
        let body = format!(r#"{{"metadata":{{"generateName":"big-"}},"data":{{"k":"{text}"}}}}"#);
        peer.call("POST", MAPS, body).await;
    }
    let mut client = peer.connect(256);
    client.write_all(format!("GET {MAPS} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    let start = now();
    peer.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(seconds(now().duration_since(start)), 60);
}

type Http2 = http2::SendRequest<Empty<Bytes>>;

/// Returns a client that starts with HTTP/2 and grants the server a window of 1000 bytes.
async fn http2_client(stream: DuplexStream, clients: &mut JoinSet<()>) -> Http2 {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1000);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    clients.spawn(async { connection.await.unwrap_or_default() });
    sender
}

fn http2_get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://localhost{path}")).body(Empty::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_unread_watch_on_http2_is_freed_and_other_streams_continue() {
    let mut peer = Peer::new();
    let mut clients = JoinSet::new();
    peer.fill().await;
    let mut client = http2_client(peer.connect(64 * 1024), &mut clients).await;
    let unread =
        client.send_request(http2_get(&format!("{MAPS}?watch=true&timeoutSeconds=7"))).await.unwrap();
    assert_eq!(peer.open_watches().await, 1);
    assert_eq!(seconds(watches_end(&peer).await), 12);
    let other = client.send_request(http2_get("/readyz")).await.unwrap();
    assert_eq!(other.status(), 200);
    assert!(unread.into_body().collect().await.is_err(), "a truncated watch is not a complete one");
}

#[tokio::test(start_paused = true)]
async fn an_idle_http2_connection_is_closed_after_90_seconds() {
    let mut peer = Peer::new();
    let mut clients = JoinSet::new();
    let mut client = http2_client(peer.connect(64 * 1024), &mut clients).await;
    let response = client.send_request(http2_get("/readyz")).await.unwrap();
    response.into_body().collect().await.unwrap();
    let start: Instant = now();
    clients.join_next().await.unwrap().unwrap();
    assert_eq!(seconds(now().duration_since(start)), 90);
    peer.tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_http2_connection_with_a_watch_stays_open_and_has_a_limit_of_streams() {
    let mut peer = Peer::new();
    peer.shared.limits.max_streams_per_connection = 2;
    let mut clients = JoinSet::new();
    let mut client = http2_client(peer.connect(64 * 1024), &mut clients).await;
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=200");
    client.send_request(http2_get("/readyz")).await.unwrap();
    let first = client.send_request(http2_get(&watch)).await.unwrap();
    let second = client.send_request(http2_get(&watch)).await.unwrap();
    let mut third = Box::pin(client.send_request(http2_get("/readyz")));
    assert!(
        tokio::time::timeout(Duration::from_secs(150), &mut third).await.is_err(),
        "two streams are open"
    );
    drop(first);
    assert_eq!(third.await.unwrap().status(), 200);
    second.into_body().collect().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_opens_and_resets_streams_is_disconnected() {
    let mut peer = Peer::new();
    let mut client = peer.connect(1024 * 1024);
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for index in 0..1000_u32 {
        let stream = (2 * index + 1).to_be_bytes();
        // GET / http with indexed fields of the static table, then RST_STREAM with CANCEL.
        bytes.extend(b"\0\0\x03\x01\x05");
        bytes.extend(stream);
        bytes.extend(b"\x82\x84\x86\0\0\x04\x03\0");
        bytes.extend(stream);
        bytes.extend(b"\0\0\0\x08");
    }
    client.write_all(&bytes).await.unwrap();
    let (_, took) = read_to_close(&mut client).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_connection_buffers_a_bounded_part_of_an_unread_response() {
    let activity = Arc::new(Activity::new(ConnectionLimits::default()));
    let events = futures_util::stream::repeat_with(|| Bytes::from(vec![0; 10_000]));
    let guard = activity.begin(http::Version::HTTP_11);
    let mut body = TrackedBody::new(ResponseBody::frames(events), guard);
    let mut held = 0;
    let full = std::future::poll_fn(|context| {
        while let std::task::Poll::Ready(frame) = hyper::body::Body::poll_frame(pin!(&mut body), context) {
            held += frame.unwrap().unwrap().into_data().unwrap().len();
            assert!(held <= 128 * 1024 + 10_000, "{held}");
        }
        std::task::Poll::Ready(())
    });
    full.await;
    assert!(held >= 128 * 1024, "{held}");
    activity.output.written(20_000);
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 10_000);
}
