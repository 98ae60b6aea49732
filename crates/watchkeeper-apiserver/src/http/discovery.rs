//! What is served, told to clients; each document is made once for each change of what is served.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    body::ResponseBody,
    negotiate::{self, Media, Offer},
    respond,
};
use crate::{
    discovery::{self, Form},
    kinds::Kinds,
    openapi,
    rest::errors,
};

/// Documents that were asked for, as of one generation of what is served.
#[derive(Debug, Default)]
pub(super) struct Documents {
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    generation: u64,
    by_name: HashMap<String, Arc<Document>>,
}

/// A document with its tag.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) bytes: Bytes,
    pub(super) etag: String,
}

impl Documents {
    /// The document of this name; made if it was not asked for since the last change. None if `make` makes none.
    pub(super) fn get(
        &self,
        kinds: &Kinds,
        name: &str,
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Arc<Document>> {
        let mut made = self.made.lock();
        if made.generation != kinds.generation() {
            *made = Made { generation: kinds.generation(), by_name: HashMap::new() };
        }
        if let Some(document) = made.by_name.get(name) {
            return Some(Arc::clone(document));
        }
        let bytes: Bytes = make()?.into();
        let document = Arc::new(Document { etag: discovery::etag(&bytes), bytes });
        made.by_name.insert(name.to_owned(), Arc::clone(&document));
        Some(document)
    }
}

/// The answer to a path of discovery: `/api`, `/apis`, and below them groups and versions. None for other paths.
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
            // A built-in group answers for the versions it does not have.
            None if kinds.group(group)?.is_builtin() => {
                return Some(respond::error(&errors::no_such_resource(), Media::Json));
            }
            None => return None,
        },
        _ => return None,
    };
    let media = negotiate::negotiate(accept, None, false, Offer::WHOLE).map(|chosen| chosen.media);
    Some(match media {
        Ok(media) => plain(&value, if media == Media::Yaml { Media::Yaml } else { Media::Json }),
        Err((error, media)) => respond::error(&error, media),
    })
}

/// The answer to a path of the OpenAPI documents. None for other paths.
pub(super) fn openapi(
    documents: &Documents,
    kinds: &Kinds,
    words: &[&str],
) -> Option<Response<ResponseBody>> {
    let ["openapi", "v3", rest @ ..] = words else { return None };
    let name = rest.join("/");
    let document = documents.get(kinds, &format!("openapi/{name}"), || {
        let value = if name.is_empty() {
            openapi::index(kinds)
        } else {
            let (group, version) = openapi::group_version(&name)?;
            openapi::document(kinds, group, version)?
        };
        serde_json::to_vec(&value).ok()
    })?;
    // The index says of itself that it is text, as upstream's does.
    let content_type = if name.is_empty() { "text/plain; charset=utf-8" } else { "application/json" };
    let mut response = respond::with_type(200, content_type, ResponseBody::whole(document.bytes.clone()));
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(etag) = HeaderValue::try_from(document.etag.clone()) {
        headers.insert(header::ETAG, etag);
    }
    Some(response)
}

fn plain(value: &Value, media: Media) -> Response<ResponseBody> {
    let mut response = respond::value(200, value, media);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn tagged(document: &Document, headers: &HeaderMap, form: Form) -> Response<ResponseBody> {
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok())
        .is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == document.etag || tag.trim() == "*"));
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
