//! TCP connections: keepalive, proxies and a connect timeout.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::timeout;
use tower::{BoxError, Service};

use super::error::ConnectTimeout;

/// The idle time after which a keepalive probe is sent. Further probes follow after [`KEEPALIVE_INTERVAL`].
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The number of unanswered probes after which the connection is dead: 30 s + 3 x 15 s.
const KEEPALIVE_RETRIES: u32 = 3;
/// The maximum time that sent bytes may stay unacknowledged. Keepalive does not run meanwhile, and without
/// this limit a request on a dead connection waits for a quarter of an hour of retransmissions.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_mins(1);

pub(crate) fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEPALIVE_IDLE));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    connector
}

/// A connector with a time limit for resolving, connecting, the proxy and the TLS handshake together.
#[derive(Debug, Clone)]
pub(crate) struct TimeoutConnector<C> {
    inner: C,
    limit: Duration,
}

impl<C> TimeoutConnector<C> {
    pub(crate) fn new(inner: C, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

impl<C> Service<Uri> for TimeoutConnector<C>
where
    C: Service<Uri>,
    C::Response: 'static,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let (connecting, limit) = (self.inner.call(target), self.limit);
        Box::pin(async move {
            match timeout(limit, connecting).await {
                Ok(connection) => connection.map_err(Into::into),
                Err(_) => Err(ConnectTimeout(limit).into()),
            }
        })
    }
}
