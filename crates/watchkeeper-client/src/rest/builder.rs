//! The builder of requests.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use kube_client::client::Body;
use kube_core::params::Patch;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Deletion, RestClient,
    deadline::Deadline,
    info::{RequestInfo, RequestTarget, Verb},
    params::QueryParams,
    path::{AbsolutePath, PathError, ResourcePath, Segment},
    request::{ApiRequest, InvalidRequest},
    response::{self, ResponseParts},
    retry::{Attempts, Retry},
    stream::{ByteLimit, ByteStream},
};
use crate::{
    Error,
    bounded::{self, SendError},
    error::{Awaited, Printable, Unreadable},
    limits::Limits,
};

/// A builder that creates and sends one request.
///
/// Parts may be set in any order. The first invalid part is reported when the request is built or sent, so that calls
/// can be chained. Without [`api`](Self::api), the resource is in the core group, version `v1`.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    rest: RestClient,
    verb: Verb,
    place: Place,
    /// The query, headers and body, or the first error.
    request: Result<ApiRequest, InvalidRequest>,
    options: Options,
}

/// Options for sending the request and reading the response.
#[derive(Debug, Clone, Default)]
struct Options {
    /// `None` for the deadline of the client.
    deadline: Option<Duration>,
    idle: Idle,
    limit: Option<u64>,
    retry: Option<Retry>,
}

/// The longest time without a byte of a stream.
#[derive(Debug, Clone, Copy, Default)]
enum Idle {
    /// The idle deadline of the client.
    #[default]
    OfClient,
    /// Another one; `None` for no limit.
    Own(Option<Duration>),
}

/// The parts of the request target that have been set.
#[derive(Debug, Clone, Default)]
struct Place {
    api: Option<(String, String)>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Vec<String>,
    /// The complete target; overrides all other parts.
    whole: Option<RequestTarget>,
}

impl Place {
    fn target(&self) -> Result<RequestTarget, PathError> {
        if let Some(whole) = &self.whole {
            return Ok(whole.clone());
        }
        let (group, version) = self.api.clone().unwrap_or_else(|| (String::new(), "v1".to_owned()));
        let resource = self.resource.clone().ok_or(PathError::Missing(Segment::Resource))?;
        let mut path = ResourcePath::new(group, version, resource)?;
        if let Some(namespace) = &self.namespace {
            path = path.in_namespace(namespace)?;
        }
        if let Some(name) = &self.name {
            path = path.named(name)?;
        }
        for subresource in &self.subresource {
            path = path.subresource(subresource)?;
        }
        Ok(RequestTarget::Resource(path))
    }
}

impl RequestBuilder {
    pub(super) fn new(rest: RestClient, verb: Verb) -> Self {
        let nowhere = RequestTarget::Path(AbsolutePath::default());
        Self::over(rest, ApiRequest::new(verb, nowhere), Place::default())
    }

    pub(super) fn of(rest: RestClient, request: ApiRequest) -> Self {
        let place = Place { whole: Some(request.info().target.clone()), ..Place::default() };
        Self::over(rest, request, place)
    }

    fn over(rest: RestClient, request: ApiRequest, place: Place) -> Self {
        Self { rest, verb: request.info().verb, place, request: Ok(request), options: Options::default() }
    }

    fn change(mut self, change: impl FnOnce(ApiRequest) -> Result<ApiRequest, InvalidRequest>) -> Self {
        self.request = self.request.and_then(change);
        self
    }

    fn refuse(self, reason: impl Into<InvalidRequest>) -> Self {
        self.change(|_| Err(reason.into()))
    }

    /// Sets the `apiVersion` of the resource: `v1`, `apps/v1`.
    pub fn api(mut self, api_version: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if group.is_empty() && api_version.contains('/') {
            return self.refuse(PathError::Empty(Segment::Group));
        }
        self.place.api = Some((group.to_owned(), version.to_owned()));
        self
    }

    /// Sets the plural name of the resource.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.place.resource = Some(resource.into());
        self
    }

    /// Sets the namespace. Without it, the request is cluster-wide.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.place.namespace = Some(namespace.into());
        self
    }

    /// Sets the name of the object. Without it, `get` and `delete` apply to the collection.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.place.name = Some(name.into());
        self
    }

    /// Appends a subresource of the object. Each call adds one path segment.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.place.subresource.push(subresource.into());
        self
    }

    /// Sets a non-resource path, which overrides all parts above.
    #[doc(alias = "AbsPath")]
    pub fn absolute_path(mut self, path: &str) -> Self {
        match AbsolutePath::new(path) {
            Ok(path) => {
                self.place.whole = Some(RequestTarget::Path(path));
                self
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Adds a parameter to the query.
    #[doc(alias = "Param")]
    pub fn query(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|request| Ok(request.with_query(name, value)))
    }

    /// Adds kube's parameters to the query.
    pub fn params(self, params: &impl QueryParams) -> Self {
        self.change(|request| request.with_params(params))
    }

    /// Sets a header.
    #[doc(alias = "SetHeader")]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.change(|request| request.with_header(name, value))
    }

    /// Sets the body to `object` as JSON.
    pub fn body(self, object: &impl Serialize) -> Self {
        self.change(|request| request.with_json(object))
    }

    pub(super) fn patch_body<P: Serialize>(self, patch: &Patch<P>) -> Self {
        self.change(|request| request.with_patch(patch))
    }

    /// Sets the body to raw bytes with a content type.
    pub fn raw_body(self, content_type: &str, body: Vec<u8>) -> Self {
        let content_type = HeaderValue::from_str(content_type)
            .map_err(|_| InvalidRequest::Header(http::header::CONTENT_TYPE.to_string()));
        self.change(|request| Ok(request.with_body(content_type?, body)))
    }

    /// Sets the deadline of the request, instead of that of the client; see
    /// [`Deadlines::request`](super::Deadlines::request). With [`retry`](Self::retry), the deadline of each attempt.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = Some(deadline);
        self
    }

    /// Sets the longest time without a byte of a stream; `None` for no limit. See [`Deadlines::idle`](super::Deadlines::idle).
    pub fn idle_deadline(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.options.idle = Idle::Own(idle.into());
        self
    }

    /// Sets the maximum size of the response body, instead of the limit for the verb. A stream has no limit by default.
    pub fn limit_bytes(mut self, limit: u64) -> Self {
        self.options.limit = Some(limit);
        self
    }

    /// Retries a read after a transient failure: connection failure, deadline, 429, 500, 502, 503 or 504. A write
    /// with a retry policy is rejected as invalid.
    #[doc(alias = "MaxRetries")]
    pub fn retry(mut self, policy: Retry) -> Self {
        self.options.retry = Some(policy);
        self
    }

    /// Returns the request without sending it.
    ///
    /// # Errors
    /// Returns [`InvalidRequest`] for the first invalid part, a missing resource, or a write with a retry
    /// policy.
    pub fn build(self) -> Result<ApiRequest, InvalidRequest> {
        let request = self.request?;
        if self.options.retry.is_some() && !self.verb.is_read() {
            return Err(InvalidRequest::RetryOfWrite(self.verb));
        }
        let target = self.place.target()?;
        let verb = match (self.verb, &target) {
            (Verb::Get, RequestTarget::Resource(path)) if path.name().is_none() => Verb::List,
            (Verb::Delete, RequestTarget::Resource(path)) if path.name().is_none() => Verb::DeleteCollection,
            (verb, _) => verb,
        };
        Ok(request.aimed(verb, target))
    }

    /// Returns the verb and target set so far, for the error of a request that could not be built.
    fn attempted(&self) -> String {
        let verb = self.verb;
        match (&self.place.resource, &self.place.whole) {
            (_, Some(target)) => RequestInfo::new(verb, target.clone()).to_string(),
            (Some(resource), None) => format!("{verb} {}", Printable { text: resource, chars: 64 }),
            (None, None) => format!("{verb} request"),
        }
    }

    /// Sends the request and decodes the response as `T`.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the request is invalid, and any other [`Error`] when it fails or the response is not a `T`.
    #[doc(alias = "Do")]
    pub async fn send<T: DeserializeOwned>(self) -> Result<T, Error> {
        let ready = self.ready()?;
        let (headers, body) = ready.whole_with_retries().await?;
        response::decode(&ready.info, &headers, &body, ready.limits())
    }

    /// Sends the request and decodes the response as `T`, or returns `None` if the object does not exist.
    ///
    /// Other 404 responses are errors; see [`Error::is_object_not_found`].
    ///
    /// # Errors
    /// As [`send`](Self::send), except for an object that does not exist.
    pub async fn send_optional<T: DeserializeOwned>(self) -> Result<Option<T>, Error> {
        match self.send().await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_object_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn send_deletion<T: DeserializeOwned>(self) -> Result<Deletion<T>, Error> {
        let ready = self.ready()?;
        let (headers, body) = ready.whole_with_retries().await?;
        if response::is_status(&body) {
            response::decode(&ready.info, &headers, &body, ready.limits()).map(Deletion::Status)
        } else {
            response::decode(&ready.info, &headers, &body, ready.limits()).map(Deletion::Object)
        }
    }

    /// Sends the request and returns the response body as text.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`Error::Decode`] when the body is not UTF-8.
    pub async fn text(self) -> Result<String, Error> {
        let ready = self.ready()?;
        let (_, body) = ready.whole_with_retries().await?;
        String::from_utf8(body.into())
            .map_err(|_| Error::Decode { request: Box::new(ready.info), reason: Unreadable::Utf8 })
    }

    /// Sends the request and returns the headers and the body of the response.
    pub(crate) async fn head_and_body(self) -> Result<(HeaderMap, Bytes), Error> {
        self.ready()?.whole_with_retries().await
    }

    /// Sends the request and returns the response body as a stream.
    ///
    /// The deadline applies to the response head, the idle deadline to each chunk after it.
    ///
    /// # Errors
    /// As [`send`](Self::send), for the response head. A later failure is the last item of the stream.
    pub async fn stream(self) -> Result<ByteStream, Error> {
        let ready = self.ready()?;
        let mut attempts = ready.attempts();
        let response = loop {
            match ready.head().await {
                Ok((response, _)) => break response,
                Err(error) => attempts.wait_or_fail(error).await?,
            }
        };
        let limit =
            ready.options.limit.map(|allowed| ByteLimit { name: "limit_bytes", allowed, left: allowed });
        let idle = match ready.options.idle {
            Idle::OfClient => ready.rest.client().deadlines().idle,
            Idle::Own(idle) => idle,
        };
        Ok(ByteStream::new(ready.info, response, idle, limit))
    }

    fn ready(self) -> Result<Ready, Error> {
        let attempted = self.attempted();
        let (rest, options) = (self.rest.clone(), self.options.clone());
        let refused = |reason| Error::Invalid { attempted: attempted.clone(), reason };
        let request = self.build().map_err(refused)?;
        let info = request.info().clone();
        let (head, body) = request.into_http().map_err(refused)?.into_parts();
        Ok(Ready { rest, info, head, body: body.into(), options })
    }
}

/// A complete request that can be sent repeatedly.
struct Ready {
    rest: RestClient,
    info: RequestInfo,
    head: http::request::Parts,
    body: Bytes,
    options: Options,
}

impl Ready {
    /// Sends the request and returns the head of the response, with the rest of the deadline.
    async fn head(&self) -> Result<(ResponseParts, Deadline), Error> {
        let request = http::Request::from_parts(self.head.clone(), Body::from(self.body.clone()));
        let sent = bounded::send(self.rest.client(), request, self.options.deadline).await;
        let (response, mut deadline) = sent.map_err(|error| match error {
            SendError::Late(after) => self.late(Awaited::Head, after),
            SendError::Transport(error) => response::transport(&self.info, error),
        })?;
        let response = response::accept(&self.info, response, &mut deadline).await?;
        Ok((response, deadline))
    }

    /// Makes one attempt at the whole response; head and body share the deadline.
    async fn whole(&self) -> Result<(HeaderMap, Bytes), Error> {
        let (response, mut deadline) = self.head().await?;
        let (name, allowed) = match (self.options.limit, self.info.verb) {
            (Some(allowed), _) => ("limit_bytes", allowed),
            (None, Verb::List | Verb::DeleteCollection) => ("page_bytes", self.limits().page_bytes),
            (None, _) => ("object_bytes", self.limits().object_bytes as u64),
        };
        let headers = response.headers.clone();
        let body = deadline
            .run(response::collect(&self.info, response, name, allowed))
            .await
            .map_err(|after| self.late(Awaited::Body, after))??;
        Ok((headers, body))
    }

    async fn whole_with_retries(&self) -> Result<(HeaderMap, Bytes), Error> {
        let mut attempts = self.attempts();
        loop {
            match self.whole().await {
                Ok(whole) => return Ok(whole),
                Err(error) => attempts.wait_or_fail(error).await?,
            }
        }
    }

    fn limits(&self) -> &Limits {
        self.rest.client().limits()
    }

    fn attempts(&self) -> Attempts {
        Attempts(self.options.retry.as_ref().map(Retry::backoff))
    }

    fn late(&self, part: Awaited, after: Duration) -> Error {
        Error::Deadline { request: Box::new(self.info.clone()), part, after }
    }
}
