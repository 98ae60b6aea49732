//! Watches over a WebSocket: one event per message.
//!
//! The request is an ordinary watch, and all its errors are ordinary responses. The handshake is checked last, as in
//! kube-apiserver. Events are text messages in JSON and binary messages in protobuf. Messages of the client are ignored.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header, request::Parts};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{body::ResponseBody, limits::ConnectionLimits, negotiate::Media, respond};
use crate::status::ApiError;

/// The subprotocol that carries a bearer token, for browsers, which cannot set headers.
const BEARER_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The version of the protocol.
const VERSION: &str = "13";

/// The size of the read buffer for each client, in bytes. Clients send next to nothing.
const READ_BUFFER_BYTES: usize = 4 * 1024;

/// The size of the length prefix of an event in protobuf, in bytes. A WebSocket message already has a length.
const LENGTH_PREFIX_BYTES: usize = 4;

/// Time for the closing handshake.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// Returns whether a request is a WebSocket handshake.
pub(super) fn is_requested(headers: &HeaderMap) -> bool {
    let is_websocket =
        headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    is_websocket
        && headers
            .get_all(header::CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Authenticates a request by its `Authorization` header or, for a WebSocket, by a subprotocol that contains a bearer token.
///
/// The header is tried first. An accepted token is removed from the subprotocols, so that it is not sent back.
///
/// # Errors
/// Returns the error of the header if neither is accepted, or 401 for a malformed subprotocol.
pub(super) fn authenticate<U>(
    headers: &mut HeaderMap,
    authenticate: impl Fn(&HeaderMap) -> Result<U, ApiError>,
) -> Result<U, ApiError> {
    let by_header = authenticate(headers);
    if !is_requested(headers) || (headers.contains_key(header::AUTHORIZATION) && by_header.is_ok()) {
        return by_header;
    }
    let unauthorized = || ApiError::new(401, "Unauthorized", "Unauthorized");
    let protocols = protocols(headers);
    let (tokens, others): (Vec<&str>, Vec<&str>) =
        protocols.iter().map(String::as_str).partition(|protocol| protocol.starts_with(BEARER_PREFIX));
    let token = match tokens.as_slice() {
        [] => return by_header,
        [token] => URL_SAFE_NO_PAD.decode(&token[BEARER_PREFIX.len()..]).map_err(|_| unauthorized())?,
        _ => return Err(unauthorized()),
    };
    let token = String::from_utf8(token).map_err(|_| unauthorized())?;
    if token.is_empty() {
        return by_header;
    }
    // The client must offer another subprotocol, because the secret must not be sent back.
    if others.is_empty() {
        return Err(unauthorized());
    }
    let bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| unauthorized())?;
    let user = authenticate(&HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]))?;
    let others = HeaderValue::try_from(others.join(",")).map_err(|_| unauthorized())?;
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, others);
    Ok(user)
}

/// The part of a protocol switch that the connection needs. Stored in the extensions of the response.
#[derive(Debug, Clone)]
pub(super) struct Switch {
    on_upgrade: OnUpgrade,
    is_binary: bool,
}

/// Turns the response of a watch into a protocol switch, if the request is a WebSocket handshake.
///
/// The body of the response remains the stream of events. The connection serves it after the switch.
pub(super) fn switch(
    parts: &Parts,
    response: Response<ResponseBody>,
    media: Media,
) -> Response<ResponseBody> {
    if !is_requested(&parts.headers) || response.status() != StatusCode::OK {
        return response;
    }
    let (key, protocol) = match handshake(&parts.headers) {
        Ok(accepted) => accepted,
        Err(error) => {
            let mut response = respond::error(&error, Media::Json);
            let headers = response.headers_mut();
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
            return response;
        }
    };
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
    let (Some(on_upgrade), Ok(accept)) = (parts.extensions.get::<OnUpgrade>().cloned(), accept) else {
        let message = "this connection cannot be switched to a WebSocket: watch without the Upgrade header, \
                       or connect with HTTP/1.1";
        return respond::error(&ApiError::bad_request(message), Media::Json);
    };
    let (watch, events) = response.into_parts();
    let mut switch = Response::new(events);
    // The extensions contain the labels for metrics.
    *switch.extensions_mut() = watch.extensions;
    *switch.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = switch.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    switch.extensions_mut().insert(Switch { on_upgrade, is_binary: media == Media::Protobuf });
    switch
}

/// Checks a handshake. Returns its key and the selected subprotocol.
fn handshake(headers: &HeaderMap) -> Result<(&str, Option<HeaderValue>), ApiError> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = text(header::SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err(ApiError::bad_request("WebSocket handshake without Sec-WebSocket-Key"));
    }
    if text(header::SEC_WEBSOCKET_VERSION) != VERSION {
        return Err(ApiError::bad_request(format!(
            "WebSocket handshake: Sec-WebSocket-Version must be {VERSION}"
        )));
    }
    let is_origin = text(header::ORIGIN).parse::<Uri>().is_ok_and(|origin| {
        origin.scheme().is_some() || origin.path().starts_with('/') && origin.authority().is_none()
    });
    if !is_origin {
        let message = "WebSocket handshake: the Origin header must be a URL";
        return Err(ApiError::new(403, "Forbidden", message));
    }
    match protocols(headers).as_slice() {
        [] => Ok((key, None)),
        [protocol] => Ok((key, HeaderValue::from_str(protocol).ok())),
        _ => Err(ApiError::bad_request("WebSocket handshake: a watch has at most one subprotocol")),
    }
}

/// Returns the subprotocols that the client offers.
fn protocols(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|protocol| protocol.trim().to_owned())
        .filter(|protocol| !protocol.is_empty())
        .collect()
}

/// A watch to serve on a connection that is being switched.
#[derive(Debug)]
pub(super) struct Upgrade {
    switch: Switch,
    events: ResponseBody,
}

impl Upgrade {
    /// Creates an upgrade from the switch and the events to send.
    pub(super) fn new(switch: Switch, events: ResponseBody) -> Self {
        Self { switch, events }
    }
}

/// Sends the events of a watch until the watch ends or the client disconnects, then closes the WebSocket.
pub(super) async fn run(upgrade: Upgrade, limits: &ConnectionLimits) {
    let Upgrade { switch: Switch { on_upgrade, is_binary }, events } = upgrade;
    match on_upgrade.await {
        Ok(io) => send_events(TokioIo::new(io), events, is_binary, limits).await,
        Err(error) => tracing::debug!(%error, "WebSocket upgrade failed"),
    }
}

async fn send_events<S>(io: S, mut events: ResponseBody, is_binary: bool, limits: &ConnectionLimits)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(limits.max_websocket_message_bytes))
        .max_frame_size(Some(limits.max_websocket_message_bytes));
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (mut sink, mut source) = socket.split();
    // A client that does not read blocks `send`, and thereby the timer of the watch itself.
    let limit = events
        .watch_timeout()
        .map_or(limits.response_timeout, |timeout| timeout.saturating_add(limits.watch_write_grace));
    let code = tokio::select! {
        is_sent = send(&mut sink, &mut events, is_binary) => is_sent.then_some(CloseCode::Normal),
        code = receive(&mut source) => code,
        () = tokio::time::sleep(limit) => None,
    };
    // Frees the watch before waiting for the client.
    drop(events);
    let Some(code) = code else { return };
    let closing = async {
        let frame = CloseFrame { code, reason: Utf8Bytes::default() };
        // An error means that the client closed the connection first.
        let _ = sink.send(Message::Close(Some(frame))).await;
        while let Some(Ok(_)) = source.next().await {}
        let Ok(socket) = sink.reunite(source) else { return };
        drain(socket.into_inner()).await;
    };
    // A client that does not complete the closing handshake is disconnected.
    let _ = tokio::time::timeout(CLOSE_GRACE, closing).await;
}

/// Sends every event. Returns false if the client is no longer reachable.
async fn send<S>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    events: &mut ResponseBody,
    is_binary: bool,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(frame)) = events.frame().await {
        let Ok(event) = frame.into_data() else { continue };
        if sink.send(message(event, is_binary)).await.is_err() {
            return false;
        }
    }
    true
}

fn message(event: Bytes, is_binary: bool) -> Message {
    if is_binary {
        return Message::Binary(event.slice(LENGTH_PREFIX_BYTES.min(event.len())..));
    }
    Utf8Bytes::try_from(event.clone()).map_or(Message::Binary(event), Message::Text)
}

/// Ignores messages until the client closes or violates the protocol. Returns the status to close with.
async fn receive<S>(source: &mut SplitStream<WebSocketStream<S>>) -> Option<CloseCode>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match source.next().await? {
            Ok(Message::Close(_)) => return Some(CloseCode::Normal),
            Ok(_) => {}
            Err(Error::Capacity(_)) => return Some(CloseCode::Size),
            Err(Error::Protocol(_)) => return Some(CloseCode::Protocol),
            Err(Error::Utf8(_)) => return Some(CloseCode::Invalid),
            Err(_) => return None,
        }
    }
}

/// Reads the remaining bytes of the client, because closing a socket with unread bytes discards the close frame.
async fn drain<S>(mut io: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = [0; 1024];
    if io.shutdown().await.is_ok() {
        while io.read(&mut buffer).await.is_ok_and(|length| length > 0) {}
    }
}
