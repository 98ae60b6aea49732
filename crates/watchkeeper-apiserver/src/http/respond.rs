//! HTTP responses.

use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::{body::ResponseBody, negotiate::Media, warning, yaml};
use crate::{
    kinds::{GroupVersionKind, Kind},
    protobuf::{self, Envelope},
    rest::{ApiResponse, ListBody, Payload, represent},
    schema::{self, TypeRef},
    status::ApiError,
};

/// Encodes a result in the media type and style that the client accepts.
pub(super) fn success(
    result: ApiResponse,
    media: Media,
    is_pretty: bool,
    kind: Option<&Kind>,
) -> Response<ResponseBody> {
    let is_watch = matches!(result.payload, Payload::Watch(_) | Payload::Frames(_));
    let body = match result.payload {
        Payload::Watch(watcher) => {
            let timeout = watcher.timeout();
            ResponseBody::frames(watcher.into_stream()).watching_for(timeout)
        }
        Payload::Frames(frames) => {
            ResponseBody::frames(stream::iter(Some(frames).filter(|frames| !frames.is_empty())))
        }
        Payload::Json(bytes) if media == Media::Json && !is_pretty => ResponseBody::whole(bytes),
        Payload::Json(bytes) => {
            let value = serde_json::from_slice(&bytes).unwrap_or_default();
            ResponseBody::whole(encode(&value, media, is_pretty, kind))
        }
        Payload::List(list) if media == Media::Json && !is_pretty && list.is_item_by_item() => chunked(list),
        Payload::List(list) => ResponseBody::whole(encode(&list.into_value(), media, is_pretty, kind)),
        Payload::Value(value) => ResponseBody::whole(encode(&value, media, is_pretty, kind)),
    };
    let content_type = match (is_watch, media) {
        (true, Media::Protobuf) => "application/vnd.kubernetes.protobuf;stream=watch",
        (true, _) => "application/json",
        (false, media) => media.content_type(),
    };
    let mut response = with_type(result.code, content_type, body);
    warning::add(response.headers_mut(), &result.warnings);
    response
}

/// Returns the body of a list in chunks. A short list is a single chunk with a content length.
fn chunked(mut list: ListBody) -> ResponseBody {
    let first = list.next();
    if list.is_written() {
        return ResponseBody::whole(first.unwrap_or_default());
    }
    ResponseBody::frames(stream::iter(first.into_iter().chain(list)))
}

/// Encodes an error.
pub(super) fn error(error: &ApiError, media: Media) -> Response<ResponseBody> {
    let body = ResponseBody::whole(encode(&error.to_status(), media, false, None));
    let mut response = with_type(error.code, media.content_type(), body);
    if let Some(seconds) = error.details.as_ref().and_then(|details| details.retry_after_seconds) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    warning::add(response.headers_mut(), &error.warnings);
    response
}

/// Encodes a value in JSON or YAML.
pub(super) fn value(code: u16, value: &Value, media: Media) -> Response<ResponseBody> {
    with_type(code, media.content_type(), ResponseBody::whole(encode(value, media, false, None)))
}

/// Returns a document that any cache may keep for an hour.
pub(super) fn published(content_type: &'static str, document: &Value) -> Response<ResponseBody> {
    let mut response = with_type(200, content_type, ResponseBody::whole(document.to_string()));
    let age = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(header::CACHE_CONTROL, age);
    response
}

/// Returns a plain text response.
pub(super) fn text(code: u16, text: &'static str) -> Response<ResponseBody> {
    let mut response = with_type(code, "text/plain; charset=utf-8", ResponseBody::whole(text));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns the 404 for an unknown path.
pub(super) fn page_not_found() -> Response<ResponseBody> {
    text(404, "404 page not found\n")
}

/// Returns a body with its content type.
pub(super) fn with_type(code: u16, content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn encode(value: &Value, media: Media, is_pretty: bool, kind: Option<&Kind>) -> Vec<u8> {
    match media {
        Media::Yaml => yaml::write(value).into_bytes(),
        Media::Protobuf => protobuf_of(value, kind),
        Media::Json if is_pretty => serde_json::to_vec_pretty(value).unwrap_or_default(),
        Media::Json => serde_json::to_vec(value).unwrap_or_default(),
    }
}

/// Encodes an object, a list of objects of `kind`, or a status in its protobuf envelope.
fn protobuf_of(value: &Value, kind: Option<&Kind>) -> Vec<u8> {
    let text = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or_default();
    let (api_version, name) = (text("apiVersion"), text("kind"));
    let raw = match (kind, value.get("items").and_then(Value::as_array)) {
        (Some(kind), Some(items)) if name == kind.list_kind => {
            protobuf::list(&value["metadata"], items, &kind.ty)
        }
        (Some(kind), None) if name == kind.gvk.kind => protobuf::write(value, &kind.ty),
        (_, items) if name == "PartialObjectMetadataList" => {
            let items = items.map(Vec::as_slice).unwrap_or_default();
            protobuf::list(&value["metadata"], items, &represent::metadata_type())
        }
        _ if name == "PartialObjectMetadata" => protobuf::write(value, &represent::metadata_type()),
        _ if name == "Status" => {
            let ty = TypeRef::builtin_named("io.k8s.apimachinery.pkg.apis.meta.v1.Status");
            protobuf::write(value, &ty)
        }
        _ => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let gvk = GroupVersionKind::new(group, version, name);
            protobuf::write(value, &TypeRef::builtin(schema::builtin().find_kind(&gvk)))
        }
    };
    Envelope { api_version, kind: name, raw: &raw }.seal()
}
