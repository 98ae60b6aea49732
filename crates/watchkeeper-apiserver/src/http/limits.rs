//! Limits on the connections of a listening server.

use std::time::Duration;

/// Limits on the connections of a listening server: their number, and the duration of each phase.
///
/// The limits bound the sockets, tasks and buffers that slow, silent or hostile clients can hold. In-process requests
/// ([`ApiServer::service`](crate::ApiServer::service)) have no connection and are not limited. All times run on tokio's
/// clock.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_apiserver::{ApiServer, ConnectionLimits};
///
/// let mut limits = ConnectionLimits::default();
/// limits.max_connections = 500;
/// limits.idle_timeout = Duration::from_secs(20);
/// let server = ApiServer::builder().connection_limits(limits).build();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Maximum number of open connections of one listener. Further clients wait in the backlog of the operating system.
    /// Defaults to 10,000.
    pub max_connections: usize,
    /// Maximum number of concurrent requests of one HTTP/2 connection. Defaults to 100.
    pub max_streams_per_connection: u32,
    /// Maximum number of HTTP/2 streams that a client may open and reset before the server has accepted them. One more ends
    /// the connection with `ENHANCE_YOUR_CALM`. Defaults to 20.
    pub max_pending_resets: usize,
    /// Maximum size of a request's head (request line and headers), in bytes. Defaults to 1 MiB; values below 8 KiB count as
    /// 8 KiB.
    pub max_header_bytes: u32,
    /// Maximum duration of a TLS handshake. Defaults to 10 s.
    pub tls_handshake_timeout: Duration,
    /// Maximum time for the head of the first request after the connection is made, and for the head of a later request
    /// after its first byte. Defaults to 32 s.
    pub header_timeout: Duration,
    /// Maximum time between two bytes of an incomplete request body. Defaults to 15 s.
    pub body_progress_timeout: Duration,
    /// Maximum time for a whole request body. Defaults to 60 s.
    pub body_timeout: Duration,
    /// Maximum time for a client to read a response that is not a watch. Defaults to 60 s.
    pub response_timeout: Duration,
    /// Maximum time for a client to read the rest of a watch after the end of the watch. Defaults to 5 s.
    pub watch_write_grace: Duration,
    /// Maximum time that a connection without a request stays open. Defaults to 90 s.
    pub idle_timeout: Duration,
    /// Interval between keep-alive pings of an HTTP/2 connection. Defaults to 30 s.
    pub ping_interval: Duration,
    /// Maximum time for the reply to a keep-alive ping. Defaults to 15 s.
    pub ping_timeout: Duration,
    /// Maximum size of a message from a WebSocket client, in bytes. Messages are ignored; a longer one ends the connection
    /// with status 1009. Defaults to 64 KiB.
    pub max_websocket_message_bytes: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_streams_per_connection: 100,
            max_pending_resets: 20,
            max_header_bytes: 1024 * 1024,
            tls_handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(32),
            body_progress_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_mins(1),
            response_timeout: Duration::from_mins(1),
            watch_write_grace: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(90),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
            max_websocket_message_bytes: 64 * 1024,
        }
    }
}
