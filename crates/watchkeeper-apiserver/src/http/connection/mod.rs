//! A connection: TLS handshake, HTTP, WebSocket, and the limits of each.
//!
//! Each connection is one task. [`Activity`] records its requests, and [`Activity::expired`] returns when one of the
//! deadlines of [`ConnectionLimits`] has passed.

mod activity;
mod body;
mod linger;
mod observed;
mod output;
#[cfg(test)]
mod tests;

use std::{io, pin::pin, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, rt::Executor, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use self::{
    activity::{Activity, Expiry},
    body::{TimedRequestBody, TrackedBody},
    observed::ObservedIo,
};
use super::{body::ResponseBody, limits::ConnectionLimits, service::Api, websocket};

pub(super) use activity::now;
pub(super) use body::BodyError;

/// The smallest buffer that hyper accepts.
const MIN_BUFFER_BYTES: usize = 8 * 1024;

/// Response bytes that the server buffers for one HTTP/2 stream.
const STREAM_BUFFER_BYTES: usize = 64 * 1024;

/// Request bytes that a client may send on one HTTP/2 stream, and on one connection, before they are read.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Time for an idle HTTP/2 client to close its side after `GOAWAY`.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// The parts of a listener that all its connections share.
#[derive(Clone)]
pub(super) struct ListenerState {
    pub(super) api: Arc<Api>,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) limits: ConnectionLimits,
    pub(super) shutdown: watch::Receiver<bool>,
}

/// Serves a client until the client disconnects, a limit is exceeded, or the server shuts down.
pub(super) async fn serve<S>(stream: S, mut shared: ListenerState)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = shared.tls.take() else { return serve_http(stream, shared).await };
    let handshake = tokio::time::timeout(shared.limits.tls_handshake_timeout, tls.accept(stream));
    let accepted = tokio::select! {
        accepted = handshake => accepted,
        () = is_down(&mut shared.shutdown) => return,
    };
    match accepted {
        Ok(Ok(stream)) => serve_http(stream, shared).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

async fn serve_http<S>(stream: S, shared: ListenerState)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ListenerState { api, limits, mut shutdown, .. } = shared;
    let activity = Arc::new(Activity::new(limits));
    let service = service_fn(|request: Request<Incoming>| {
        let (api, activity) = (Arc::clone(&api), Arc::clone(&activity));
        let guard = activity.begin(request.version());
        async move {
            let request = request.map(|body| TimedRequestBody::new(body, &limits, &activity));
            let response = api.respond(request).await?;
            Ok::<_, io::Error>(finish(&activity, response, guard))
        }
    });
    let streams = Streams::default();
    let server = builder(&limits, streams.clone());
    let io = TokioIo::new(ObservedIo::new(stream, Arc::clone(&activity)));
    let mut connection = pin!(server.serve_connection_with_upgrades(io, service));
    let mut is_closing = false;
    let mut close_deadline = pin!(tokio::time::sleep(Duration::MAX));
    let result = loop {
        tokio::select! {
            result = connection.as_mut() => break result,
            () = is_down(&mut shutdown), if !is_closing => {
                // The listener aborts connections that outlive its grace period.
                connection.as_mut().graceful_shutdown();
                is_closing = true;
            }
            expiry = activity.expired(), if !is_closing => match expiry {
                Expiry::Idle => {
                    connection.as_mut().graceful_shutdown();
                    close_deadline.set(tokio::time::sleep(CLOSE_GRACE));
                    is_closing = true;
                }
                Expiry::Header | Expiry::Response => {
                    tracing::debug!(?expiry, "connection timed out");
                    return;
                }
            },
            () = close_deadline.as_mut() => return,
        }
    };
    drop(streams);
    match (result, activity.take_upgrade()) {
        (Ok(()), Some(upgrade)) => websocket::run(upgrade, &limits).await,
        (Ok(()), None) => {}
        (Err(error), _) => tracing::debug!(%error, "connection failed"),
    }
}

/// Applies the deadline of its kind to a response. The body of a protocol switch is served after the switch.
fn finish(
    activity: &Arc<Activity>,
    mut response: Response<ResponseBody>,
    guard: activity::RequestGuard,
) -> Response<TrackedBody> {
    if let Some(switch) = response.extensions_mut().remove::<websocket::Switch>() {
        let (parts, body) = response.into_parts();
        activity.set_upgrade(websocket::Upgrade::new(switch, body));
        return Response::from_parts(parts, TrackedBody::new(ResponseBody::whole(""), guard));
    }
    response.map(|body| TrackedBody::new(body, guard))
}

fn builder(limits: &ConnectionLimits, streams: Streams) -> auto::Builder<Streams> {
    let head = usize::try_from(limits.max_header_bytes).unwrap_or(usize::MAX).max(MIN_BUFFER_BYTES);
    let mut server = auto::Builder::new(streams);
    // `Activity` times the heads of HTTP/1.1 requests, so that hyper needs no timer for them.
    server.http1().max_buf_size(head).header_read_timeout(None);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.max_streams_per_connection)
        .max_pending_accept_reset_streams(limits.max_pending_resets)
        .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
        .max_send_buf_size(STREAM_BUFFER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(limits.ping_interval)
        .keep_alive_timeout(limits.ping_timeout);
    server
}

/// Waits until the server shuts down. A dropped server counts as shut down.
pub(super) async fn is_down(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped with the server.
    let _ = shutdown.wait_for(|is_down| *is_down).await;
}

/// The tasks of the HTTP/2 streams of one connection. They are aborted with the connection.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut streams = self.0.lock();
        while streams.try_join_next().is_some() {}
        streams.spawn(stream);
    }
}
