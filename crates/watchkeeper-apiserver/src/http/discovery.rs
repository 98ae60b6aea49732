//! The endpoints of discovery and OpenAPI. Documents are cached until the served kinds change.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    body::ResponseBody,
    negotiate::{self, Media, OfferedForms, OpenApiMedia},
    respond,
};
use crate::{
    discovery::{self, DiscoveryVersion},
    kinds::Kinds,
    openapi,
    rest::errors,
};

/// A cache of documents for one generation of the served kinds.
#[derive(Debug, Default)]
pub(super) struct Documents {
    cache: Mutex<CachedDocuments>,
}

#[derive(Debug, Default)]
struct CachedDocuments {
    generation: u64,
    by_name: HashMap<String, Arc<CachedDocument>>,
}

/// A document with its `ETag`.
#[derive(Debug)]
pub(super) struct CachedDocument {
    pub(super) bytes: Bytes,
    pub(super) etag: String,
}

impl Documents {
    /// Returns the document `name`, created by `make` if it is not cached since the last change. None if `make` returns
    /// none.
    pub(super) fn get(
        &self,
        kinds: &Kinds,
        name: &str,
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Arc<CachedDocument>> {
        let mut cache = self.cache.lock();
        if cache.generation != kinds.generation() {
            *cache = CachedDocuments { generation: kinds.generation(), by_name: HashMap::new() };
        }
        if let Some(document) = cache.by_name.get(name) {
            return Some(Arc::clone(document));
        }
        let bytes: Bytes = make()?.into();
        let document = Arc::new(CachedDocument { etag: discovery::etag(&bytes), bytes });
        cache.by_name.insert(name.to_owned(), Arc::clone(&document));
        Some(document)
    }
}

/// Responds to a discovery path: `/api`, `/apis`, and groups and versions below them. Returns none for other paths.
pub(super) fn respond(
    documents: &Documents,
    kinds: &Kinds,
    words: &[&str],
    headers: &HeaderMap,
) -> Option<Response<ResponseBody>> {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if let ["api" | "apis"] = words
        && let Some(form) = negotiate::aggregated(accept)
    {
        let is_core = words == ["api"];
        let name = format!("{}/{}", form.version(), is_core);
        let document = documents
            .get(kinds, &name, || serde_json::to_vec(&discovery::aggregated(kinds, is_core, form)).ok())?;
        return Some(tagged(&document, headers, form));
    }
    let value = match words {
        ["api"] => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            discovery::api_versions(host.unwrap_or("127.0.0.1"))
        }
        ["apis"] => discovery::groups(kinds),
        ["apis", group] => discovery::group(kinds, group)?,
        ["api", version] => discovery::resources(kinds, "", version)?,
        ["apis", group, version] => match discovery::resources(kinds, group, version) {
            Some(resources) => resources,
            // A built-in group responds for versions that do not exist.
            None if kinds.group(group)?.is_builtin() => {
                return Some(respond::error(&errors::no_such_resource(), Media::Json));
            }
            None => return None,
        },
        _ => return None,
    };
    let media = negotiate::negotiate(accept, None, false, OfferedForms::WHOLE).map(|chosen| chosen.media);
    Some(match media {
        Ok(media) => plain(&value, if media == Media::Yaml { Media::Yaml } else { Media::Json }),
        Err((error, media)) => respond::error(&error, media),
    })
}

/// Responds to a path of the OpenAPI documents. Returns none for other paths.
pub(super) fn openapi(
    documents: &Documents,
    kinds: &Kinds,
    words: &[&str],
    headers: &HeaderMap,
) -> Option<Response<ResponseBody>> {
    match words {
        ["openapi", "v2"] => openapi_v2(documents, kinds, headers),
        ["openapi", "v3", rest @ ..] => openapi_v3(documents, kinds, &rest.join("/"), headers),
        _ => None,
    }
}

fn openapi_v2(documents: &Documents, kinds: &Kinds, headers: &HeaderMap) -> Option<Response<ResponseBody>> {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let Some(media) = negotiate::openapi_v2(accept) else {
        let mut response = Response::new(ResponseBody::whole(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        return Some(response);
    };
    let json =
        documents.get(kinds, "openapi/v2", || serde_json::to_vec(&openapi::document_v2(kinds)).ok())?;
    if media == OpenApiMedia::Json {
        return Some(cached(&json.bytes, &json.etag, "application/json", headers));
    }
    let protobuf = documents.get(kinds, "openapi/v2/protobuf", || {
        serde_json::from_slice(&json.bytes).ok().map(|document| openapi::encode(&document))
    })?;
    // Both forms share one `ETag`; `Vary` distinguishes them.
    let content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    Some(cached(&protobuf.bytes, &json.etag, content_type, headers))
}

fn openapi_v3(
    documents: &Documents,
    kinds: &Kinds,
    name: &str,
    headers: &HeaderMap,
) -> Option<Response<ResponseBody>> {
    let document = documents.get(kinds, &format!("openapi/v3/{name}"), || {
        let value = if name.is_empty() {
            openapi::index(kinds)
        } else {
            let (group, version) = openapi::group_version(name)?;
            openapi::document(kinds, group, version)?
        };
        serde_json::to_vec(&value).ok()
    })?;
    // The index has the content type of text, as upstream.
    let content_type = if name.is_empty() { "text/plain; charset=utf-8" } else { "application/json" };
    Some(cached(&document.bytes, &document.etag, content_type, headers))
}

/// Sends a document with its `ETag`, or 304 to a client that already has it.
fn cached(
    bytes: &Bytes,
    etag: &str,
    content_type: &'static str,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    let is_known = is_known(headers, etag);
    let body = if is_known { Bytes::new() } else { bytes.clone() };
    let code = if is_known { 304 } else { 200 };
    let mut response = respond::with_type(code, content_type, ResponseBody::whole(body));
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Returns whether a client already has the document of this tag.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    headers
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok())
        .is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == etag || tag.trim() == "*"))
}

fn plain(value: &Value, media: Media) -> Response<ResponseBody> {
    let mut response = respond::value(200, value, media);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn tagged(document: &CachedDocument, headers: &HeaderMap, form: DiscoveryVersion) -> Response<ResponseBody> {
    let is_known = is_known(headers, &document.etag);
    let body = if is_known { Bytes::new() } else { document.bytes.clone() };
    let mut response = Response::new(ResponseBody::whole(body));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, form.content_type()),
        (header::ETAG, document.etag.clone()),
        (header::VARY, "Accept".to_owned()),
        (header::CACHE_CONTROL, "public".to_owned()),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}
