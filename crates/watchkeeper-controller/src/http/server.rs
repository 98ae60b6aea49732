//! The HTTP server of one address.

use std::{
    convert::Infallible,
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::{io::Errno, net::sockopt::set_ipv6_v6only};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// A function that responds to a request by its method, URI and headers. Request bodies are not read.
pub(crate) type Handler = Arc<dyn Fn(&Request<()>) -> Response<Full<Bytes>> + Send + Sync>;

/// The maximum number of concurrent connections. Further ones wait until a connection ends.
const MAX_CONNECTIONS: usize = 64;
/// The number of connections that the operating system queues until they are accepted.
const BACKLOG: u32 = 1024;
/// The time that a connection may take to send a request, and may be idle between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum lifetime of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(10);
/// The maximum size of request headers.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The time limit for sending responses after a stop request.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a failed accept, which avoids a busy loop when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The reason that an address cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The address is in use.
    #[error(
        "serve {name} endpoint on {address}: address in use; choose another address, or 0 to disable the endpoint"
    )]
    Taken {
        /// The name of the endpoint.
        name: &'static str,
        /// The requested address.
        address: SocketAddr,
    },
    /// The address cannot be bound.
    #[error("serve {name} endpoint on {address}: {source}")]
    Bind {
        /// The name of the endpoint.
        name: &'static str,
        /// The requested address.
        address: SocketAddr,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
}

/// A bound address, ready to be served.
#[must_use = "an endpoint does nothing until it is served"]
pub(crate) struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    handler: Handler,
}

impl Endpoint {
    /// Binds `address`. Port 0 selects a free port.
    ///
    /// `[::]` means every interface: it accepts IPv4 connections too, and falls back to `0.0.0.0` on a host
    /// without IPv6.
    ///
    /// # Errors
    /// Returns an [`EndpointError`] if the address is in use or cannot be bound.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, because it registers the socket there.
    pub(crate) fn bind(
        name: &'static str,
        address: SocketAddr,
        handler: Handler,
    ) -> Result<Self, EndpointError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => EndpointError::Taken { name, address },
            _ => EndpointError::Bind { name, address, source },
        };
        let listener = listen(address, bind).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, handler })
    }

    /// Returns the bound address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests until `stop` is cancelled and pending responses are sent.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            let has_capacity = connections.len() < MAX_CONNECTIONS;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if has_capacity => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection(stream, Arc::clone(&self.handler), stop.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(address = %self.address, %error, "connection not accepted; retrying");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(self.listener);
        let all = async { while connections.join_next().await.is_some() {} };
        // Connections that have not received their response by then are closed when the set is dropped.
        let _ = tokio::time::timeout(STOP_TIMEOUT, all).await;
    }
}

/// Binds `address`, or `0.0.0.0` in place of `[::]` where IPv6 is not available.
fn listen<L>(address: SocketAddr, bind: impl Fn(SocketAddr) -> io::Result<L>) -> io::Result<L> {
    bind(address).or_else(|error| {
        let has_no_ipv6 = error.kind() == io::ErrorKind::AddrNotAvailable
            || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error());
        if has_no_ipv6 && address.ip() == Ipv6Addr::UNSPECIFIED {
            bind((Ipv4Addr::UNSPECIFIED, address.port()).into())
        } else {
            Err(error)
        }
    })
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    // A restarted program must not wait for connections of its predecessor in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        // The default of this socket option depends on the host.
        set_ipv6_v6only(&socket, false)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, handler: Handler, stop: CancellationToken) {
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(handler(&request.map(|_| ()))) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_HEADER_BYTES);
    let mut connection = std::pin::pin!(server.serve_connection(TokioIo::new(stream), service));
    let served = async {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        // A disconnecting client is not an error.
        let _ = connection.as_mut().await;
    };
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, served).await;
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        net::TcpStream,
        time::sleep,
    };
    use watchkeeper_workqueue::{Clock as _, TokioClock};

    use super::*;

    const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n";

    /// Returns the client side of a connection and the server task, which ends with the lifetime of the
    /// connection.
    fn connected(stop: &CancellationToken) -> (DuplexStream, JoinSet<Duration>) {
        let (client, server) = duplex(64 * 1024);
        let handler: Handler = Arc::new(|_| Response::new(Full::new(Bytes::from_static(b"ok"))));
        let (stop, clock, mut served) = (stop.clone(), TokioClock::new(), JoinSet::new());
        served.spawn(async move {
            connection(server, handler, stop).await;
            clock.now()
        });
        (client, served)
    }

    async fn end(served: JoinSet<Duration>) -> Duration {
        served.join_all().await[0]
    }

    async fn response(client: &mut DuplexStream) -> String {
        let mut buffer = vec![0; 1024];
        let read = client.read(&mut buffer).await.unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    }

    #[test]
    fn the_ipv6_wildcard_falls_back_to_the_ipv4_wildcard_on_a_host_without_ipv6() {
        let host_without_ipv6 = |error: Errno| {
            move |address: SocketAddr| {
                if address.is_ipv6() { Err(io::Error::from(error)) } else { Ok(address) }
            }
        };
        let every: SocketAddr = "[::]:8081".parse().unwrap();
        for error in [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL] {
            let bound = listen(every, host_without_ipv6(error)).unwrap();
            assert_eq!(bound, "0.0.0.0:8081".parse().unwrap(), "{error}");
        }
        let taken = listen(every, host_without_ipv6(Errno::ADDRINUSE)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse, "a port in use is not mistaken for missing IPv6");
        let loopback = "[::1]:8081".parse().unwrap();
        listen(loopback, host_without_ipv6(Errno::AFNOSUPPORT)).unwrap_err();
    }

    #[tokio::test]
    async fn the_ipv6_wildcard_accepts_ipv4_and_ipv6_connections() {
        let handler: Handler = Arc::new(|_| Response::default());
        let endpoint = Endpoint::bind("test", "[::]:0".parse().unwrap(), handler).unwrap();
        let address = endpoint.address();
        TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).await.unwrap();
        if address.is_ipv6() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, address.port())).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_an_unfinished_request_is_closed() {
        let (mut client, served) = connected(&CancellationToken::new());
        client.write_all(&REQUEST[..REQUEST.len() - 2]).await.unwrap();
        let lasted = end(served).await;
        assert!((HEADER_TIMEOUT..HEADER_TIMEOUT * 2).contains(&lasted), "{lasted:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_closed_after_its_maximum_lifetime() {
        let (mut client, served) = connected(&CancellationToken::new());
        let mut responses = 0;
        while client.write_all(REQUEST).await.is_ok() {
            if response(&mut client).await.starts_with("HTTP/1.1 200 OK") {
                responses += 1;
            }
            sleep(Duration::from_secs(7)).await;
        }
        assert_eq!(end(served).await, CONNECTION_TIMEOUT);
        assert_eq!(responses, 86, "requests are served until then");
    }

    #[tokio::test(start_paused = true)]
    async fn oversized_headers_are_rejected() {
        let (mut client, served) = connected(&CancellationToken::new());
        let much = [REQUEST[..REQUEST.len() - 2].to_vec(), vec![b'x'; 2 * MAX_HEADER_BYTES]].concat();
        client.write_all(&much).await.unwrap();
        assert!(response(&mut client).await.starts_with("HTTP/1.1 431"), "the client receives the reason");
        drop(client);
        assert!(end(served).await < HEADER_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_closes_an_idle_connection() {
        let stop = CancellationToken::new();
        let (mut client, served) = connected(&stop);
        client.write_all(REQUEST).await.unwrap();
        assert!(response(&mut client).await.starts_with("HTTP/1.1 200 OK"));
        stop.cancel();
        assert_eq!(end(served).await, Duration::ZERO);
    }

    /// Sends a request and returns the connection and the start of the response.
    async fn request(address: SocketAddr) -> (TcpStream, [u8; 12]) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        (stream, start)
    }

    #[tokio::test]
    async fn a_connection_above_the_limit_waits_until_another_ends() {
        let handler: Handler = Arc::new(|_| Response::default());
        let endpoint = Endpoint::bind("test", "127.0.0.1:0".parse().unwrap(), handler).unwrap();
        let (address, stop) = (endpoint.address(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(endpoint.serve(stop.clone()));
        let mut idle = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            // The response shows that the connection was accepted. It is kept open.
            let (stream, status) = request(address).await;
            assert_eq!(&status, b"HTTP/1.1 200");
            idle.push(stream);
        }
        let mut one_more = std::pin::pin!(request(address));
        let waits = tokio::select! {
            biased;
            _ = &mut one_more => false,
            () = async { for _ in 0..1_000 { tokio::task::yield_now().await } } => true,
        };
        assert!(waits, "the connection above the limit was accepted");
        idle.pop();
        assert_eq!(&one_more.await.1, b"HTTP/1.1 200");
        stop.cancel();
        tasks.join_next().await.unwrap().unwrap();
        let mut rest = Vec::new();
        assert!(
            idle.pop().unwrap().read_to_end(&mut rest).await.is_ok(),
            "idle connections are closed at the end"
        );
    }
}
