//! The request pipeline, from the head of a request to its response.

mod call;
mod control;
mod identity;
mod non_resource;
mod verbs;

use std::{io, net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use http::{HeaderMap, Request, Response, request::Parts};

use super::{
    access::AllowedHosts,
    body::ResponseBody,
    deadline,
    discovery::Documents,
    heavy::HeavyQueue,
    metrics::{Metrics, RequestLabels},
    negotiate::Media,
    path::{self, ResourcePath},
    request_body::{self, RequestBody},
    respond,
    verb::Verb,
    websocket,
};
use crate::{
    auth::{attributes::Attributes, stored::Authorization, tokens::Tokens},
    faults::Faults,
    rest::{self, Rest, options::Parameters},
    status::ApiError,
};

/// The path of the control endpoint.
const CONTROL_PATH: &str = "/-/control";

/// The subresources that are long-running connections, which have no deadline.
const LONG_RUNNING: [&str; 5] = ["log", "exec", "attach", "portforward", "proxy"];

/// The API as an HTTP service.
#[derive(Debug)]
pub(crate) struct Api {
    /// The verbs on stored objects.
    pub(crate) rest: Rest,
    /// The bearer tokens and their users.
    tokens: Tokens,
    /// The permissions of users.
    authorization: Authorization,
    /// Whether `/-/control` is served.
    has_control: bool,
    /// The cached documents of discovery and OpenAPI.
    documents: Documents,
    /// The counters of requests and responses.
    metrics: Metrics,
    /// The hosts that a server without authentication accepts.
    hosts: AllowedHosts,
    /// The queue of requests that take much CPU time.
    heavy: HeavyQueue,
    /// The faults that tests inject.
    pub(crate) faults: Faults,
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestOrigin {
    /// A client in this process. Without tokens its user is the administrator, because code that holds the server needs no
    /// credentials.
    Process,
    /// A client on a socket.
    Network,
}

/// The protective options of a server.
#[derive(Debug, Default)]
pub(crate) struct Protection {
    /// The hosts that a server without authentication accepts.
    pub(crate) hosts: AllowedHosts,
    /// Whether the order of requests is reproducible.
    pub(crate) is_deterministic: bool,
}

/// The parsed head of a request.
struct Head {
    parts: Parts,
    segments: Vec<String>,
    resource: Option<ResourcePath>,
    parameters: Parameters,
    verb: Option<Verb>,
}

impl Api {
    /// Creates the service.
    pub(crate) fn new(
        rest: Rest,
        tokens: Tokens,
        authorization: Authorization,
        has_control: bool,
        guards: Protection,
    ) -> Self {
        let (documents, metrics) = (Documents::default(), Metrics::default());
        let Protection { hosts, is_deterministic } = guards;
        let heavy = HeavyQueue::new(is_deterministic);
        let faults = Faults::with_clock(Arc::clone(&rest.clock));
        Self { rest, tokens, authorization, has_control, documents, metrics, hosts, heavy, faults }
    }

    /// Adds an address that the server listens on.
    pub(crate) fn add_address(&self, address: IpAddr) {
        self.hosts.add_address(address);
    }

    /// Responds to a request from a socket.
    ///
    /// # Errors
    /// Only if a fault loses the request or its response.
    pub(crate) async fn respond<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, io::Error> {
        let send = |request| async { Ok(self.respond_to(request, RequestOrigin::Network).await) };
        self.faults.apply(request, send).await
    }

    /// Responds to a request of this process.
    ///
    /// # Errors
    /// Only if a fault loses the request or its response.
    pub(crate) async fn respond_in_process<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, io::Error> {
        let send = |request| async { Ok(self.respond_to(request, RequestOrigin::Process).await) };
        self.faults.apply(request, send).await
    }

    /// Responds to a request. A panic is reported as an internal error, and the connection remains open.
    async fn respond_to<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
        source: RequestOrigin,
    ) -> Response<ResponseBody> {
        let method = request.method().clone();
        let in_flight = self.metrics.begin(&method);
        let response = AssertUnwindSafe(self.route(request, source)).catch_unwind().await;
        let mut response = response.unwrap_or_else(|_| {
            let message = "This request caused the API server to panic. Look in its output for details.";
            respond::error(&ApiError::internal(message), Media::Json)
        });
        drop(in_flight);
        let labels =
            response.extensions_mut().remove().unwrap_or_else(|| RequestLabels::non_resource(&method));
        self.metrics.end(labels, response.status().as_u16());
        response
    }

    /// Handles a request before its deadline. Long-running requests have none.
    async fn route<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
        source: RequestOrigin,
    ) -> Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        if source == RequestOrigin::Network
            && !self.has_authentication()
            && let Err(error) = self.hosts.check(&parts)
        {
            return respond::error(&error, Media::Json);
        }
        let Some(segments) = path::segments(parts.uri.path()) else {
            return respond::error(&ApiError::bad_request("the path is not UTF-8"), Media::Json);
        };
        let resource = ResourcePath::read(&segments);
        let parameters = Parameters::parse(parts.uri.query());
        let verb = resource.as_ref().and_then(|path| Verb::of(&parts.method, path, &parameters));
        let is_long_running = verb == Some(Verb::Watch)
            || resource.as_ref().is_some_and(|path| LONG_RUNNING.contains(&path.subresource.as_str()));
        let timeout = deadline::timeout_of(parameters.text("timeout"));
        let head = Head { parts, segments, resource, parameters, verb };
        if is_long_running {
            return self.handle(head, body, source).await;
        }
        let timeout = match timeout {
            Ok(timeout) => timeout,
            Err(error) => return respond::error(&error, Media::Json),
        };
        let handled = deadline::within(&*self.rest.clock, timeout, self.handle(head, body, source)).await;
        handled.unwrap_or_else(|| respond::error(&rest::deadline_exceeded(), Media::Json))
    }

    /// Handles a request: authenticates, authorizes, and only then reads the body.
    async fn handle<B: RequestBody>(
        self: &Arc<Self>,
        head: Head,
        body: B,
        source: RequestOrigin,
    ) -> Response<ResponseBody> {
        let Head { mut parts, segments, resource, parameters, verb } = head;
        let authenticate = |headers: &HeaderMap| self.authenticate(headers, source);
        let user = match websocket::authenticate(&mut parts.headers, authenticate) {
            Ok(user) => user,
            Err(error) => return respond::error(&error, Media::Json),
        };
        if let Some(resource) = resource {
            return match self.resource(&parts, user, resource, parameters, verb) {
                Ok(call) => {
                    let media = call.media;
                    let response = self.execute(call, body).await;
                    if verb == Some(Verb::Watch) {
                        websocket::switch(&parts, response, media)
                    } else {
                        response
                    }
                }
                Err(response) => *response,
            };
        }
        let (verb, path) = (parts.method.as_str().to_ascii_lowercase(), parts.uri.path().to_owned());
        let is_control = self.has_control && path == CONTROL_PATH;
        if let Err(error) = self.authorize(user, &parts.headers, &Attributes::Path { verb, path }) {
            return respond::error(&error, Media::Json);
        }
        if is_control {
            return match request_body::read(body).await {
                Ok(body) => self.control(&parts.method, &body),
                Err(error) => respond::error(&error, Media::Json),
            };
        }
        self.other(&parts, &segments)
    }
}
