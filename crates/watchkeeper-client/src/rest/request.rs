//! Requests as values: built and compared without a socket.

use std::fmt;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE},
};
use kube_core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use serde::Serialize;

use super::{
    info::{RequestInfo, RequestTarget, Verb},
    params::{Query, QueryParams, delete_body, patch_body},
    path::{AbsolutePath, PathError, ResourcePath},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
const METADATA_LIST: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// The reason why a request is invalid and was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The path cannot be sent.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The parameters contradict each other or the verb.
    #[error("{0}")]
    Params(&'static str),
    /// The name or the value of a header cannot be sent. The value is not quoted, because it may be a credential.
    #[error("header {0:?} has a name or a value that cannot be sent")]
    Header(String),
    /// The body could not be written as JSON.
    #[error("the body could not be written as JSON")]
    Body,
    /// The path and query do not form a valid URI, for example because they are too long.
    #[error("the path and query do not form a valid URI")]
    Uri,
    /// A retry policy was set on a write.
    #[error(
        "{0} requests are not retried: a lost response does not mean a lost write; use retry_on_conflict or decide per call"
    )]
    RetryOfWrite(Verb),
    /// The object does not fit the request, or has no name.
    #[error("{0}")]
    Object(&'static str),
    /// A namespaced resource has no namespace, or a cluster-scoped resource has one.
    #[error("{0}")]
    Scope(&'static str),
}

/// A complete request to an API server that has not been sent.
///
/// A request is a plain value: two equal requests send the same bytes. The constructors build the request of a verb.
/// [`RestClient::request`](super::RestClient::request) sends it, and [`ApiRequest::into_http`] converts it for any HTTP
/// client.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a request does nothing until it is sent"]
pub struct ApiRequest {
    info: RequestInfo,
    query: Query,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl ApiRequest {
    /// Returns a request without parameters, headers and body.
    pub fn new(verb: Verb, target: RequestTarget) -> Self {
        Self {
            info: RequestInfo::new(verb, target),
            query: Query::default(),
            headers: HeaderMap::new(),
            body: Vec::new(),
        }
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    fn on(verb: Verb, path: ResourcePath) -> Self {
        Self::new(verb, RequestTarget::Resource(path))
    }

    fn on_object(verb: Verb, path: ResourcePath) -> Result<Self, InvalidRequest> {
        if path.name().is_none() {
            return Err(PathError::Missing(super::path::Segment::Name).into());
        }
        Ok(Self::on(verb, path))
    }

    fn on_collection(verb: Verb, path: ResourcePath) -> Result<Self, InvalidRequest> {
        if path.name().is_some() {
            return Err(InvalidRequest::Params(
                "the verb is for a collection, and the path names one object",
            ));
        }
        Ok(Self::on(verb, path))
    }

    /// Creates the request that reads one object or subresource.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names no object or the parameters are invalid.
    pub fn get(path: ResourcePath, params: &GetParams) -> Result<Self, InvalidRequest> {
        Self::on_object(Verb::Get, path)?.with_params(params)
    }

    /// Creates the request that reads a collection, or one page of it.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names an object or the parameters are invalid.
    pub fn list(path: ResourcePath, params: &ListParams) -> Result<Self, InvalidRequest> {
        Self::on_collection(Verb::List, path)?.with_params(params)
    }

    /// Creates the request that watches a collection after `resource_version`. With `""`, the server chooses the start.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names an object or the parameters are invalid.
    pub fn watch(
        path: ResourcePath,
        params: &WatchParams,
        resource_version: &str,
    ) -> Result<Self, InvalidRequest> {
        let mut request = Self::on_collection(Verb::Watch, path)?.with_params(params)?;
        if !resource_version.is_empty() {
            request.query.push("resourceVersion", resource_version);
        }
        Ok(request)
    }

    /// Creates the request that creates an object, or a subresource of an object (an eviction, a binding, a token).
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names an object without a subresource, the parameters are invalid, or `object` does
    /// not serialize.
    pub fn create(
        path: ResourcePath,
        params: &PostParams,
        object: &impl Serialize,
    ) -> Result<Self, InvalidRequest> {
        if path.name().is_some() && path.subresources().next().is_none() {
            return Err(InvalidRequest::Params(
                "an object is created in its collection, without its name in the path",
            ));
        }
        Self::on(Verb::Create, path).with_params(params)?.with_json(object)
    }

    /// Creates the request that replaces an object or a subresource.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names no object, the parameters are invalid, or `object` does not serialize.
    pub fn update(
        path: ResourcePath,
        params: &PostParams,
        object: &impl Serialize,
    ) -> Result<Self, InvalidRequest> {
        Self::on_object(Verb::Update, path)?.with_params(params)?.with_json(object)
    }

    /// Creates the request that patches an object or a subresource.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names no object, the parameters do not fit the kind of patch, or the patch does not
    /// serialize. An apply needs a field manager, and only an apply can be forced.
    pub fn patch<P: Serialize>(
        object: ResourcePath,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Self, InvalidRequest> {
        let is_apply = matches!(patch, Patch::Apply(_));
        if is_apply && params.field_manager.is_none() {
            return Err(InvalidRequest::Params(
                "an apply needs a field_manager, the name its fields are owned under",
            ));
        }
        if params.force && !is_apply {
            return Err(InvalidRequest::Params(
                "force takes fields over from other appliers; only an apply can",
            ));
        }
        Self::on_object(Verb::Patch, object)?.with_params(params)?.with_patch(patch)
    }

    /// Creates the request that deletes an object.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names no object.
    pub fn delete(path: ResourcePath, params: &DeleteParams) -> Result<Self, InvalidRequest> {
        Ok(Self::on_object(Verb::Delete, path)?.with_delete_options(delete_body(params)?))
    }

    /// Creates the request that deletes the objects of a collection that `list` selects.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path names an object or the parameters are invalid.
    pub fn delete_collection(
        path: ResourcePath,
        params: &DeleteParams,
        list: &ListParams,
    ) -> Result<Self, InvalidRequest> {
        let request = Self::on_collection(Verb::DeleteCollection, path)?.with_params(list)?;
        Ok(request.with_delete_options(delete_body(params)?))
    }

    /// Creates the request that reads a non-resource path.
    pub fn raw(path: AbsolutePath) -> Self {
        Self::new(Verb::Get, RequestTarget::Path(path))
    }

    /// Requests `PartialObjectMetadata` instead of complete objects.
    pub fn metadata_only(mut self) -> Self {
        let accept = if self.info.verb == Verb::List { METADATA_LIST } else { METADATA };
        self.headers.insert(ACCEPT, accept);
        self
    }

    /// Adds parameters to the query.
    ///
    /// # Errors
    /// Returns [`InvalidRequest::Params`] if the parameters contradict each other.
    pub fn with_params(mut self, params: &impl QueryParams) -> Result<Self, InvalidRequest> {
        params.append_to(&mut self.query)?;
        Ok(self)
    }

    /// Adds one parameter to the query.
    pub fn with_query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push(name, value);
        self
    }

    /// Sets a header and replaces its previous value.
    ///
    /// # Errors
    /// Returns [`InvalidRequest::Header`] if the name or the value is not valid in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidRequest> {
        let invalid = || InvalidRequest::Header(name.chars().filter(|c| !c.is_control()).collect());
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sets the body to `object` as JSON.
    ///
    /// # Errors
    /// Returns [`InvalidRequest::Body`] if `object` does not serialize.
    pub fn with_json(self, object: &impl Serialize) -> Result<Self, InvalidRequest> {
        let body = serde_json::to_vec(object).map_err(|_| InvalidRequest::Body)?;
        Ok(self.with_body(JSON, body))
    }

    /// Sets the body to a patch.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the patch does not serialize or its kind is not supported.
    pub fn with_patch<P: Serialize>(self, patch: &Patch<P>) -> Result<Self, InvalidRequest> {
        let (content_type, body) = patch_body(patch)?;
        Ok(self.with_body(content_type, body))
    }

    /// Sets the body to raw bytes.
    pub fn with_body(mut self, content_type: HeaderValue, body: Vec<u8>) -> Self {
        self.headers.insert(CONTENT_TYPE, content_type);
        self.body = body;
        self
    }

    fn with_delete_options(self, body: Option<Vec<u8>>) -> Self {
        match body {
            Some(body) => self.with_body(JSON, body),
            None => self,
        }
    }

    /// Returns this request with another verb and target.
    pub(super) fn aimed(mut self, verb: Verb, target: RequestTarget) -> Self {
        self.info = RequestInfo::new(verb, target);
        self
    }

    /// Returns the verb and target of the request.
    pub fn info(&self) -> &RequestInfo {
        &self.info
    }

    /// Returns the request as an `http::Request` whose URI is a path and query.
    ///
    /// The default `Accept` header requests JSON and the default `Accept-Encoding` no compression. A reader that requests
    /// compression must limit the body while it is decompressed.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] if the path is ambiguous for a server, or path and query do not form a
    /// valid URI.
    pub fn into_http(self) -> Result<http::Request<Vec<u8>>, InvalidRequest> {
        let mut uri = match &self.info.target {
            RequestTarget::Resource(path) => {
                path.unambiguous()?;
                path.to_string()
            }
            RequestTarget::Path(path) => path.to_string(),
        };
        if !self.query.is_empty() {
            uri.push('?');
            uri.push_str(&self.query.encoded());
        }
        let mut request = http::Request::builder()
            .method(self.info.verb.method())
            .uri(uri)
            .body(self.body)
            .map_err(|_| InvalidRequest::Uri)?;
        *request.headers_mut() = self.headers;
        request.headers_mut().entry(ACCEPT).or_insert(JSON);
        request.headers_mut().entry(ACCEPT_ENCODING).or_insert(IDENTITY);
        Ok(request)
    }
}

impl fmt::Debug for ApiRequest {
    /// Prints the verb, target and query. Headers and body may contain secrets, so only their sizes are printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiRequest")
            .field("info", &self.info)
            .field("query", &self.query)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .finish()
    }
}
