//! Conversion of HTTP responses to results and errors.

use std::{fmt, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, Response, StatusCode, Uri,
    header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION},
};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use kube_core::{Status, response::StatusSummary};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{deadline::Deadline, info::RequestInfo, retry_after::retry_after};
use crate::{
    Error,
    decode::{is_deeper_than, is_message, status_of_message},
    error::{ApiReason, Printable, TransportKind, Unreadable},
    limits::Limits,
    transport::TransportError,
};

/// The maximum number of bytes read from an error body. A `Status` with a cause for every field of a large object is far below.
const ERROR_BODY_BYTES: usize = 1 << 20;
/// The maximum number of characters quoted from a plain-text error.
const EXCERPT_CHARS: usize = 200;

/// A response with a success status code whose body has not been read.
pub(super) struct ResponseParts {
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

pub(super) fn transport(request: &RequestInfo, error: kube_client::Error) -> Error {
    if let Some(&TransportError::Late { part, after }) = TransportError::of(&error) {
        return Error::Deadline { request: Box::new(request.clone()), part, after };
    }
    let kind = TransportKind::of(&error);
    // This crate's transport names the program, file or source of a credential and quotes nothing. Another stack below a
    // kube client may repeat the command line and environment of a plugin.
    let is_ours = matches!(TransportError::of(&error), Some(TransportError::Credential { .. }));
    let source = (kind != TransportKind::Credentials || is_ours).then_some(error);
    Error::Transport { request: Box::new(request.clone()), kind, source }
}

/// Returns a success response, or reads the body of an error response within the rest of the deadline.
pub(super) async fn accept(
    request: &RequestInfo,
    response: Response<Body>,
    deadline: &mut Deadline,
) -> Result<ResponseParts, Error> {
    let (head, body) = response.into_parts();
    if head.status.is_success() {
        return Ok(ResponseParts { headers: head.headers, body });
    }
    if head.status.is_redirection() && head.headers.contains_key(LOCATION) {
        return Err(Error::Redirect {
            request: Box::new(request.clone()),
            code: head.status.as_u16(),
            host: target_host(&head.headers),
        });
    }
    if !(head.status.is_client_error() || head.status.is_server_error()) {
        let broken = "the response has a status code that is neither a success nor an error";
        return Err(Error::Protocol { request: Box::new(request.clone()), broken });
    }
    // The status code matters more than a body that does not arrive in time.
    let body = deadline.run(read_at_most(body, ERROR_BODY_BYTES)).await.unwrap_or_default();
    let status = status_of(head.status, &head.headers, &body);
    Err(api_error(request, status, &head.headers))
}

fn api_error(request: &RequestInfo, status: Status, headers: &HeaderMap) -> Error {
    let retry_after: Option<Duration> = retry_after(headers, Some(&status));
    Error::Api { request: Box::new(request.clone()), status: Box::new(status), retry_after }
}

/// Returns only the host of a redirect: the rest of the target may carry a token in its query.
fn target_host(headers: &HeaderMap) -> Option<String> {
    let target: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    target.host().map(str::to_owned)
}

/// Reads at most `limit` bytes of a body. Read errors are ignored, because the status code is already known.
async fn read_at_most(mut body: Body, limit: usize) -> Bytes {
    let mut read = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            let room = limit - read.len();
            read.extend_from_slice(&data[..data.len().min(room)]);
            if read.len() == limit {
                break;
            }
        }
    }
    read.freeze()
}

/// Returns the `Status` in an error body, or one derived from the status code if the body is not a `Status`.
fn status_of(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Status {
    let sent = if is_message(body) {
        status_of_message(body).ok().map(|status| *status)
    } else {
        is_status(body).then(|| serde_json::from_slice::<Status>(body).ok()).flatten()
    };
    let mut status = sent.unwrap_or_else(|| Status {
        message: message_for(code, headers, body),
        reason: ApiReason::wire_reason_of_code(code.as_u16()).to_owned(),
        ..Status::default()
    });
    status.status = Some(StatusSummary::Failure);
    if status.code == 0 {
        status.code = code.as_u16();
    }
    status
}

/// Returns the message for a body that is not a `Status`. Only plain text is quoted, not markup or unknown types.
fn message_for(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    let is_text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
        value.split(';').next().is_some_and(|t| t.trim().eq_ignore_ascii_case("text/plain"))
    });
    let text = String::from_utf8_lossy(body);
    if is_text && !text.trim().is_empty() {
        return Printable { text: &text, chars: EXCERPT_CHARS }.to_string();
    }
    let phrase = code.canonical_reason().unwrap_or("no reason given");
    format!("{phrase}; the response does not come from the API server's own error handling")
}

/// Reads a whole body of at most `allowed` bytes; `limit` is the name of the limit.
pub(super) async fn collect(
    request: &RequestInfo,
    response: ResponseParts,
    limit: &'static str,
    allowed: u64,
) -> Result<Bytes, Error> {
    let too_large = || Error::Limit { request: Box::new(request.clone()), limit, allowed };
    if is_compressed(&response.headers) {
        return Err(Error::Decode { request: Box::new(request.clone()), reason: Unreadable::Encoding });
    }
    let mut body = response.body;
    // A declared length is checked before the first byte, but not used to allocate.
    if body.size_hint().lower() > allowed {
        return Err(too_large());
    }
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| transport(request, error))?.into_data() else {
            continue;
        };
        if (read.len() + data.len()) as u64 > allowed {
            return Err(too_large());
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

pub(super) fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Reads `body` as `T`, unless it is a `Status` that reports a failure.
pub(super) fn decode<T: DeserializeOwned>(
    request: &RequestInfo,
    headers: &HeaderMap,
    body: &[u8],
    limits: &Limits,
) -> Result<T, Error> {
    if is_deeper_than(body, limits.json_depth) {
        return Err(Error::Limit {
            request: Box::new(request.clone()),
            limit: "json_depth",
            allowed: limits.json_depth as u64,
        });
    }
    if is_status(body)
        && let Ok(mut status) = serde_json::from_slice::<Status>(body)
        && (status.is_failure() || (!status.is_success() && status.code >= 400))
    {
        if status.code == 0 {
            status.code = StatusCode::INTERNAL_SERVER_ERROR.as_u16();
        }
        return Err(api_error(request, status, headers));
    }
    read_json(body).map_err(|error| Error::Decode {
        request: Box::new(request.clone()),
        reason: Unreadable::from(&error),
    })
}

/// Parses a document whose depth was checked. The parser's own recursion limit is off, because [`Limits::json_depth`] may be higher.
fn read_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Returns whether a JSON document is a `Status`.
pub(super) fn is_status(json: &[u8]) -> bool {
    kind_of(json).as_deref() == Some("Status")
}

/// Returns the `kind` of a JSON document. Stops reading there, because servers write it first.
fn kind_of(json: &[u8]) -> Option<String> {
    struct Kind<'a>(&'a mut Option<String>);

    impl<'de> DeserializeSeed<'de> for Kind<'_> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    impl<'de> Visitor<'de> for Kind<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                if key == "kind" {
                    *self.0 = Some(map.next_value()?);
                    return Ok(());
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }

    let mut kind = None;
    // Stopping in the middle of the object is an error to the parser, and is expected here.
    let _ = Kind(&mut kind).deserialize(&mut serde_json::Deserializer::from_slice(json));
    kind
}
