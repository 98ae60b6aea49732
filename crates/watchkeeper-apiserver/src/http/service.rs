//! The request pipeline, from the head of a request to its response.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Method, Request, Response, header, request::Parts};
use serde_json::{Value, json};

use super::{
    access::AllowedHosts,
    body::ResponseBody,
    credentials, deadline,
    discovery::{self, Documents},
    health,
    heavy::{self, HeavyQueue},
    metrics::{self, About, Metrics},
    negotiate,
    negotiate::{Media, Offer, Representation},
    path::{self, ResourcePath},
    request_body::{self, RequestBody},
    respond,
    verb::{self, Verb},
    websocket,
};
use crate::{
    auth::{
        Asker,
        attributes::{Attributes, ResourceAttributes},
        impersonation,
        stored::Authorization,
        tokens::Tokens,
        user::User,
    },
    rest::{self, Answer, Budget, Payload, Rest, errors, options::Parameters},
    status::ApiError,
    strategy::Part,
};

/// The path of the control endpoint.
const CONTROL_PATH: &str = "/-/control";

/// The subresources that are long-running connections, which have no deadline.
const LONG_RUNNING: [&str; 5] = ["log", "exec", "attach", "portforward", "proxy"];

/// The API as an HTTP service.
#[derive(Debug)]
pub(crate) struct Api {
    /// The implementation of the verbs.
    pub(crate) rest: Rest,
    /// The bearer tokens of the token file.
    tokens: Tokens,
    /// The source of authorizers.
    authorization: Authorization,
    /// Whether `/-/control` is served.
    has_control: bool,
    /// The cached documents of discovery and OpenAPI.
    documents: Documents,
    /// The request metrics.
    metrics: Metrics,
    /// The hosts that a server without authentication accepts.
    hosts: AllowedHosts,
    /// The queue of requests that take much CPU time.
    heavy: HeavyQueue,
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A client in this process. Without tokens its user is the administrator, because code that holds the server needs no
    /// credentials.
    Process,
    /// A client on a socket.
    Network,
}

/// The protective options of a server.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// The hosts that a server without authentication accepts.
    pub(crate) hosts: AllowedHosts,
    /// Whether the order of requests is reproducible.
    pub(crate) is_deterministic: bool,
}

/// A request to a kind, ready for execution.
struct Call {
    verb: Verb,
    path: ResourcePath,
    request: rest::Request,
    media: Media,
    is_pretty: bool,
    about: About,
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
        guards: Guards,
    ) -> Self {
        let (documents, metrics) = (Documents::default(), Metrics::default());
        let Guards { hosts, is_deterministic } = guards;
        let heavy = HeavyQueue::new(is_deterministic);
        Self { rest, tokens, authorization, has_control, documents, metrics, hosts, heavy }
    }

    /// Adds an address that the server listens on.
    pub(crate) fn add_address(&self, address: IpAddr) {
        self.hosts.add_address(address);
    }

    /// Responds to a request from a socket.
    pub(crate) async fn respond<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> Response<ResponseBody> {
        self.respond_to(request, Source::Network).await
    }

    /// Responds to a request of this process.
    pub(crate) async fn respond_in_process<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> Response<ResponseBody> {
        self.respond_to(request, Source::Process).await
    }

    /// Responds to a request. A panic is reported as an internal error, and the connection remains open.
    async fn respond_to<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
        source: Source,
    ) -> Response<ResponseBody> {
        let method = request.method().clone();
        let in_flight = self.metrics.begin(&method);
        let response = AssertUnwindSafe(self.route(request, source)).catch_unwind().await;
        let mut response = response.unwrap_or_else(|_| {
            let message = "This request caused the API server to panic. Look in its output for details.";
            respond::error(&ApiError::internal(message), Media::Json)
        });
        drop(in_flight);
        let about = response.extensions_mut().remove().unwrap_or_else(|| About::nothing(&method));
        self.metrics.end(about, response.status().as_u16());
        response
    }

    /// Handles a request before its deadline. Long-running requests have none.
    async fn route<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
        source: Source,
    ) -> Response<ResponseBody> {
        let (parts, body) = request.into_parts();
        if source == Source::Network
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
        source: Source,
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

    /// Returns whether requests on sockets need credentials. If not, the user of each is the administrator.
    fn has_authentication(&self) -> bool {
        !self.tokens.is_empty() || self.authorization.is_rbac()
    }

    /// Returns the user who sent a request.
    fn authenticate(&self, headers: &HeaderMap, source: Source) -> Result<User, ApiError> {
        let authenticator = self.rest.authenticator(&self.tokens);
        if let Some(user) = authenticator.service_account(headers.get(header::AUTHORIZATION))? {
            return Ok(user);
        }
        if !self.has_authentication() || source == Source::Process && self.tokens.is_empty() {
            return Ok(User::master("system:admin"));
        }
        let user = self.tokens.authenticate(credentials::authorization(headers)?)?;
        // Where every request is allowed, authentication is the only protection.
        if source == Source::Network && user.is_anonymous() && !self.authorization.is_rbac() {
            return Err(ApiError::unauthorized());
        }
        Ok(user)
    }

    /// Authorizes a request of `user`, or of the user that it impersonates.
    fn authorize(&self, user: User, headers: &HeaderMap, attributes: &Attributes) -> Result<Asker, ApiError> {
        let authorizer = self.authorization.authorizer(&*self.rest.store);
        let user = impersonation::impersonate(&authorizer, user, headers, attributes)?;
        let decision = authorizer.decide(&user, attributes);
        if !decision.is_allowed {
            return Err(attributes.forbidden(&user, &decision.reason));
        }
        Ok(Asker { user, authorizer })
    }

    /// Returns the call of a resource request, still without its body, or the response to a rejected request.
    fn resource(
        &self,
        parts: &Parts,
        user: User,
        resource: ResourcePath,
        parameters: Parameters,
        verb: Option<Verb>,
    ) -> Result<Call, Box<Response<ResponseBody>>> {
        let refuse = |error: &ApiError| Box::new(respond::error(error, Media::Json));
        let name = if resource.name.is_empty() { verb::selected_name(verb, &parameters) } else { None };
        let attributes = Attributes::Resource(ResourceAttributes {
            verb: verb
                .map_or_else(|| parts.method.as_str().to_ascii_lowercase(), |verb| verb.text().to_owned()),
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            subresource: resource.subresource.clone(),
            namespace: if resource.resource == "namespaces" && resource.group.is_empty() {
                resource.name.clone()
            } else {
                resource.namespace.clone()
            },
            name: name.unwrap_or_else(|| resource.name.clone()),
        });
        let asker = self.authorize(user, &parts.headers, &attributes).map_err(|error| refuse(&error))?;
        // Every path of the API starts with a single slash.
        if parts.uri.path().starts_with("//") {
            return Err(Box::new(respond::page_not_found()));
        }
        let kinds = self.rest.registry.kinds();
        let Some(version) = kinds.version(&resource.group, &resource.version) else {
            return Err(Box::new(self.no_such_version(&resource.group)));
        };
        // Custom groups respond only to paths of their kinds; built-in groups to every path below them.
        let no_such_resource = |is_custom: bool| {
            let error = errors::no_such_resource();
            if is_custom { Box::new(respond::page_not_found()) } else { refuse(&error) }
        };
        let Some(kind) = kinds.by_path(&resource.group, &resource.version, &resource.resource).cloned()
        else {
            return Err(no_such_resource(version.kinds.iter().all(|kind| kind.custom.is_some())));
        };
        let is_in_scope = kind.is_namespaced || resource.namespace.is_empty();
        if !is_in_scope || !resource.is_well_formed() {
            return Err(no_such_resource(kind.custom.is_some()));
        }
        let has_table = match resource.subresource.as_str() {
            "" => kind.allows("list"),
            name => matches!(name, "status" | "scale"),
        };
        // Protobuf cannot encode custom resources.
        let offer = Offer { protobuf: kind.custom.is_none(), metadata: true, table: has_table };
        let Representation { media, form } = negotiate::negotiate(
            text(&parts.headers, header::ACCEPT.as_str()),
            parameters.text("includeObject"),
            verb == Some(Verb::Watch),
            offer,
        )
        .map_err(|(error, media)| respond::error(&error, media))?;
        let verb = verb::allowed(verb, &resource, &kind).map_err(|error| respond::error(&error, media))?;
        let content_type = text(&parts.headers, header::CONTENT_TYPE.as_str());
        let is_apply = content_type.is_some_and(|ty| ty.starts_with("application/apply-patch"));
        let method = verb.method(is_apply);
        let about = About::kind(method, &kind, &resource.subresource, &resource.namespace, &resource.name);
        let user_agent = text(&parts.headers, header::USER_AGENT.as_str());
        let is_pretty = is_pretty(&parameters, user_agent);
        let request = rest::Request {
            kind,
            kinds,
            namespace: resource.namespace.clone(),
            name: resource.name.clone(),
            parameters,
            form,
            is_protobuf: media == Media::Protobuf,
            content_type: content_type.map(str::to_owned),
            body: Bytes::new(),
            asker,
            user_agent: user_agent.map(str::to_owned),
            budget: Budget::default(),
        };
        Ok(Call { verb, path: resource, request, media, is_pretty, about })
    }

    /// Reads the body of a call and executes it: inline, or in the queue of heavy requests.
    async fn execute<B: RequestBody>(self: &Arc<Self>, mut call: Call, body: B) -> Response<ResponseBody> {
        let (media, about) = (call.media, call.about.clone());
        // A connection has no deadline, and no body before the connection.
        if call.verb.writes() && !LONG_RUNNING.contains(&call.path.subresource.as_str()) {
            match request_body::read(body).await {
                Ok(body) => call.request.body = body,
                Err(error) => return respond::error(&error, media),
            }
        }
        let is_heavy =
            heavy::is_heavy(&*self.rest.store, call.verb, &call.request, call.media, call.is_pretty);
        let mut response = match is_heavy.then(|| self.heavy.runtime()).flatten() {
            // The read itself reports a version that is not reached in time, before it does any heavy work.
            Some(runtime) if self.rest.wait_for_read(&call.request).await.is_ok() => {
                let (budget, _guard) = Budget::with_guard();
                call.request.budget = budget;
                let (api, bytes) = (Arc::clone(self), call.request.body.len());
                let work = move || runtime.block_on(api.perform(call));
                let done = self.heavy.run(bytes, work).await;
                done.unwrap_or_else(|error| respond::error(&error, media))
            }
            _ => self.perform(call).await,
        };
        response.extensions_mut().insert(about);
        response
    }

    /// Executes a call and encodes its result.
    async fn perform(&self, call: Call) -> Response<ResponseBody> {
        let Call { verb, path, request, media, is_pretty, about } = call;
        let kind = Arc::clone(&request.kind);
        self.rest.expire_events(&kind);
        let deprecation = kind.strategy.deprecation();
        match self.run(verb, &path, request).await {
            Ok(mut answer) => {
                answer.warnings.extend(deprecation);
                let is_watch = matches!(answer.payload, Payload::Watch(_));
                let response = respond::answer(answer, media, is_pretty, Some(&kind));
                if is_watch {
                    let counted = self.metrics.long_running(&about);
                    response.map(|body| body.counted(counted))
                } else {
                    response
                }
            }
            Err(error) => respond::error(&error.with_warnings(deprecation), media),
        }
    }

    async fn run(&self, verb: Verb, path: &ResourcePath, request: rest::Request) -> Result<Answer, ApiError> {
        if !path.subresource.is_empty() {
            return self.run_subresource(verb, path, request).await;
        }
        match verb {
            Verb::Get => self.rest.get(&request).await,
            Verb::List => self.rest.list(&request, false).await,
            Verb::Watch => self.rest.list(&request, true).await,
            Verb::Create => match self.rest.review(&request, &self.tokens) {
                Some(answer) => answer,
                None => self.rest.create(&request),
            },
            Verb::Update => self.rest.update(&request, Part::Main),
            Verb::Patch => self.rest.patch(&request, Part::Main),
            Verb::Delete => self.rest.delete(&request),
            Verb::DeleteCollection => self.rest.delete_collection(&request).await,
        }
    }

    async fn run_subresource(
        &self,
        verb: Verb,
        path: &ResourcePath,
        request: rest::Request,
    ) -> Result<Answer, ApiError> {
        let kind = Arc::clone(&request.kind);
        let Some(subresource) = kind.subresource(&path.subresource) else {
            return Err(verb::no_such_subresource(&kind, &path.name));
        };
        let part = Part::Subresource(&path.subresource);
        match path.subresource.as_str() {
            name if LONG_RUNNING.contains(&name) => return Err(self.rest.connect(&request, name)),
            "scale" => {
                return match verb {
                    Verb::Get => self.rest.scale(&request),
                    Verb::Update => self.rest.update_scale(&request),
                    Verb::Patch => self.rest.patch_scale(&request),
                    _ => Err(errors::method_not_allowed()),
                };
            }
            _ => {}
        }
        match verb {
            Verb::Create => self.rest.create_subresource(&request, subresource),
            Verb::Get => self.rest.get(&request).await,
            Verb::Update => self.rest.update(&request, part),
            Verb::Patch => self.rest.patch(&request, part),
            _ => Err(errors::method_not_allowed()),
        }
    }

    /// Returns the 404 for a version that is not served. Built-in groups return a `Status`; a group that does not exist has
    /// no handler and returns plain text.
    fn no_such_version(&self, group: &str) -> Response<ResponseBody> {
        let kinds = self.rest.registry.kinds();
        let is_built_in = kinds.group(group).is_some_and(|group| {
            group.versions.iter().flat_map(|version| &version.kinds).any(|kind| kind.custom.is_none())
        });
        if is_built_in || group.is_empty() {
            respond::error(&errors::no_such_resource(), Media::Json)
        } else {
            respond::page_not_found()
        }
    }

    fn other(&self, parts: &Parts, segments: &[String]) -> Response<ResponseBody> {
        if parts.uri.path().starts_with("//") {
            return respond::page_not_found();
        }
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let is_get = parts.method == Method::GET || parts.method == Method::HEAD;
        let value = match words.as_slice() {
            [] => json!({"paths": health::PATHS}),
            ["version"] => health::version(),
            ["metrics"] if is_get => {
                let text = self.metrics.encode(&self.rest.registry.kinds(), &*self.rest.store);
                return respond::with_type(200, metrics::CONTENT_TYPE, ResponseBody::whole(text));
            }
            ["metrics"] => return respond::error(&errors::method_not_allowed(), Media::Json),
            [".well-known", "openid-configuration"] if is_get => {
                return respond::published("application/json", &self.rest.issuer.to_configuration());
            }
            ["openid", "v1", "jwks"] if is_get => {
                return respond::published("application/jwk-set+json", &self.rest.issuer.to_key_set());
            }
            ["healthz" | "readyz" | "livez"] => return respond::text(200, "ok"),
            ["healthz" | "readyz" | "livez", check] if health::is_check(check) => {
                return respond::text(200, "ok");
            }
            words => {
                let kinds = self.rest.registry.kinds();
                let found = discovery::respond(&self.documents, &kinds, words, &parts.headers)
                    .or_else(|| discovery::openapi(&self.documents, &kinds, words, &parts.headers));
                return match found {
                    Some(_) if !is_get => respond::error(&errors::method_not_allowed(), Media::Json),
                    Some(response) => response,
                    None => match words {
                        ["apis", group, _] => self.no_such_version(group),
                        ["api", ..] => self.no_such_version(""),
                        _ => respond::page_not_found(),
                    },
                };
            }
        };
        if !is_get {
            return respond::error(&errors::method_not_allowed(), Media::Json);
        }
        respond::answer(
            Answer { code: 200, payload: Payload::Value(value), warnings: Vec::new() },
            Media::Json,
            true,
            None,
        )
    }

    /// Executes an action on the server itself, for tests.
    fn control(&self, method: &Method, body: &[u8]) -> Response<ResponseBody> {
        if method != Method::POST {
            return respond::error(&errors::method_not_allowed(), Media::Json);
        }
        let action = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|request| request.get("action").and_then(Value::as_str).map(str::to_owned));
        match action.as_deref() {
            Some("compact") => {
                self.rest.store.compact();
                let version = self.rest.store.version().to_string();
                let value = json!({"action": "compact", "resourceVersion": version});
                let answer = Answer { code: 200, payload: Payload::Value(value), warnings: Vec::new() };
                respond::answer(answer, Media::Json, false, None)
            }
            _ => respond::error(
                &ApiError::bad_request("control: unknown action; send the body {\"action\": \"compact\"}"),
                Media::Json,
            ),
        }
    }
}

/// Returns whether JSON is indented: on request, or for clients whose output is read by people.
fn is_pretty(parameters: &Parameters, user_agent: Option<&str>) -> bool {
    match parameters.given("pretty") {
        Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => user_agent.is_some_and(|agent| {
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|human| agent.starts_with(human))
        }),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
