//! One request, from its head to its answer.

use std::{fmt::Display, panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Method, Request, Response, header, request::Parts};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use super::{
    body::ResponseBody,
    discovery::{self, Documents},
    health,
    metrics::{self, About, Metrics},
    negotiate,
    negotiate::{Media, Offer, Representation},
    path::{self, ResourcePath},
    respond,
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
    kinds::Kind,
    rest::{self, Answer, Payload, Rest, errors, options::Parameters},
    selector::FieldSelector,
    status::{ApiError, Details},
    strategy::{Part, names},
};

/// The largest body of a request.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The API, as HTTP sees it.
#[derive(Debug)]
pub(crate) struct Api {
    /// The verbs.
    pub(crate) rest: Rest,
    /// Who is who.
    tokens: Tokens,
    /// Who may do what.
    authorization: Authorization,
    /// Whether `/-/control` is served.
    has_control: bool,
    /// Documents of discovery, kept until what is served changes.
    documents: Documents,
    /// What was asked and answered.
    metrics: Metrics,
}

/// What a request does, in the words of authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    fn text(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// As metrics call it.
    fn method(self, is_apply: bool) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Create => "POST",
            Self::Update => "PUT",
            Self::Patch if is_apply => "APPLY",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::DeleteCollection => "DELETECOLLECTION",
        }
    }
}

impl Api {
    /// The verbs over HTTP.
    pub(crate) fn new(rest: Rest, tokens: Tokens, authorization: Authorization, has_control: bool) -> Self {
        let (documents, metrics) = (Documents::default(), Metrics::default());
        Self { rest, tokens, authorization, has_control, documents, metrics }
    }

    /// Answers a request. A panic on the way is an error of the server like any other: the client is told, and the
    /// connection goes on.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Display + Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let method = request.method().clone();
        let in_flight = self.metrics.begin(&method);
        let response = AssertUnwindSafe(self.route(request)).catch_unwind().await;
        let mut response = response.unwrap_or_else(|_| {
            let message = "This request caused the API server to panic. Look in its output for details.";
            respond::error(&ApiError::internal(message), Media::Json)
        });
        drop(in_flight);
        let about = response.extensions_mut().remove().unwrap_or_else(|| About::nothing(&method));
        self.metrics.end(about, response.status().as_u16());
        response
    }

    async fn route<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Display + Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        // It is there because whoever started the server asked for it: a test's hands, which need no credentials.
        if self.has_control && parts.uri.path() == "/-/control" {
            return match read_body(body).await {
                Ok(body) => self.control(&parts.method, &body),
                Err(error) => respond::error(&error, Media::Json),
            };
        }
        let authenticator = self.rest.authenticator(&self.tokens);
        let user = match authenticator.request(parts.headers.get(header::AUTHORIZATION)) {
            Ok(user) => user,
            Err(error) => return respond::error(&error, Media::Json),
        };
        let Some(segments) = path::segments(parts.uri.path()) else {
            return respond::error(&ApiError::bad_request("the path is not UTF-8"), Media::Json);
        };
        let body = match read_body(body).await {
            Ok(body) => body,
            Err(error) => return respond::error(&error, Media::Json),
        };
        if let Some(resource) = ResourcePath::read(&segments) {
            return self.resource(&parts, user, resource, body).await;
        }
        let (verb, path) = (parts.method.as_str().to_ascii_lowercase(), parts.uri.path().to_owned());
        if let Err(error) = self.authorize(user, &parts.headers, &Attributes::Path { verb, path }) {
            return respond::error(&error, Media::Json);
        }
        self.other(&parts, &segments)
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

    async fn resource(
        &self,
        parts: &Parts,
        user: User,
        resource: ResourcePath,
        body: Bytes,
    ) -> Response<ResponseBody> {
        let parameters = Parameters::parse(parts.uri.query());
        let verb = verb_of(&parts.method, &resource, &parameters);
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
            name: asked_name(verb, &resource, &parameters),
        });
        let asker = match self.authorize(user, &parts.headers, &attributes) {
            Ok(asker) => asker,
            Err(error) => return respond::error(&error, Media::Json),
        };
        let kinds = self.rest.registry.kinds();
        let Some(version) = kinds.version(&resource.group, &resource.version) else {
            return self.no_such_version(&resource.group);
        };
        let Some(kind) = kinds.by_path(&resource.group, &resource.version, &resource.resource).cloned()
        else {
            // Groups of custom resources know only their kinds; built-in ones answer for every path below them.
            return if version.kinds.iter().all(|kind| kind.custom.is_some()) {
                respond::page_not_found()
            } else {
                respond::error(&errors::no_such_resource(), Media::Json)
            };
        };
        let is_in_scope = kind.is_namespaced || resource.namespace.is_empty();
        if !is_in_scope {
            return if kind.custom.is_some() {
                respond::page_not_found()
            } else {
                respond::error(&errors::no_such_resource(), Media::Json)
            };
        }
        let has_table = match resource.subresource.as_str() {
            "" => kind.allows("list"),
            name => matches!(name, "status" | "scale"),
        };
        // Protobuf has no place for what a custom resource is made of.
        let offer = Offer { protobuf: kind.custom.is_none(), metadata: true, table: has_table };
        let Representation { media, form } = match negotiate::negotiate(
            text(&parts.headers, header::ACCEPT.as_str()),
            parameters.text("includeObject"),
            verb == Some(Verb::Watch),
            offer,
        ) {
            Ok(chosen) => chosen,
            Err((error, media)) => return respond::error(&error, media),
        };
        let is_pretty = parameters.flag("pretty").unwrap_or(false);
        let content_type = text(&parts.headers, header::CONTENT_TYPE.as_str());
        let is_apply = content_type.is_some_and(|ty| ty.starts_with("application/apply-patch"));
        let method = verb.map_or("other", |verb| verb.method(is_apply));
        let about = About::kind(method, &kind, &resource.subresource, &resource.namespace, &resource.name);
        let shown_kind = Arc::clone(&kind);
        let request = rest::Request {
            kind,
            kinds: Arc::clone(&kinds),
            namespace: resource.namespace.clone(),
            name: resource.name.clone(),
            parameters,
            form,
            is_protobuf: media == Media::Protobuf,
            content_type: content_type.map(str::to_owned),
            body,
            asker,
            user_agent: text(&parts.headers, header::USER_AGENT.as_str()).map(str::to_owned),
        };
        self.rest.expire_events(&shown_kind);
        let mut response = match self.run(verb, &resource, request).await {
            Ok(mut answer) => {
                if let Some(deprecation) = shown_kind.strategy.deprecation()
                    && !answer.warnings.contains(&deprecation)
                {
                    answer.warnings.push(deprecation);
                }
                let is_watch = matches!(answer.payload, Payload::Watch(_));
                let response = respond::answer(answer, media, is_pretty, Some(&shown_kind));
                if is_watch {
                    let counted = self.metrics.long_running(&about);
                    response.map(|body| body.counted(counted))
                } else {
                    response
                }
            }
            Err(mut error) => {
                let deprecation = shown_kind.strategy.deprecation();
                error.warnings.extend(deprecation.filter(|text| !error.warnings.contains(text)));
                respond::error(&error, media)
            }
        };
        response.extensions_mut().insert(about);
        response
    }

    async fn run(
        &self,
        verb: Option<Verb>,
        path: &ResourcePath,
        request: rest::Request,
    ) -> Result<Answer, ApiError> {
        let kind = Arc::clone(&request.kind);
        if !path.subresource.is_empty() {
            return self.run_subresource(verb, path, request).await;
        }
        let is_named = !path.name.is_empty();
        let has_path = if is_named {
            ["get", "update", "patch", "delete"].iter().any(|verb| kind.allows(verb))
        } else {
            ["list", "create", "deletecollection", "watch"].iter().any(|verb| kind.allows(verb))
        };
        if !has_path {
            return Err(errors::no_such_resource());
        }
        let Some(verb) = verb.filter(|verb| kind.allows(verb.text())) else {
            return Err(errors::method_not_allowed());
        };
        let is_across = kind.is_namespaced && path.namespace.is_empty();
        if is_across && (is_named || !matches!(verb, Verb::List | Verb::Watch)) {
            return Err(if is_named { errors::no_such_resource() } else { errors::method_not_allowed() });
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
        verb: Option<Verb>,
        path: &ResourcePath,
        request: rest::Request,
    ) -> Result<Answer, ApiError> {
        let kind = Arc::clone(&request.kind);
        let Some(subresource) = kind.subresource(&path.subresource) else {
            return Err(no_such_subresource(&kind, &path.name));
        };
        let is_allowed = |verb: &Verb| subresource.verbs.iter().any(|known| known == verb.text());
        let Some(verb) = verb.filter(is_allowed) else { return Err(errors::method_not_allowed()) };
        let part = Part::Subresource(&path.subresource);
        match path.subresource.as_str() {
            name @ ("log" | "exec" | "attach" | "portforward" | "proxy") => {
                return Err(self.rest.connect(&request, name));
            }
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

    /// Built-in groups answer for versions they do not have; nothing answers for groups there are not.
    fn no_such_version(&self, group: &str) -> Response<ResponseBody> {
        let kinds = self.rest.registry.kinds();
        let is_built_in = kinds.group(group).is_some_and(|group| {
            group.versions.iter().flat_map(|version| &version.kinds).any(|kind| kind.custom.is_none())
        });
        if is_built_in && !group.is_empty() {
            respond::error(&errors::no_such_resource(), Media::Json)
        } else {
            respond::page_not_found()
        }
    }

    fn other(&self, parts: &Parts, segments: &[String]) -> Response<ResponseBody> {
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

    /// What tests ask of the server itself.
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
                &ApiError::bad_request("control: the body is {\"action\": \"compact\"}"),
                Media::Json,
            ),
        }
    }
}

/// Built-in kinds have no such path; custom ones look for the object first.
fn no_such_subresource(kind: &Kind, name: &str) -> ApiError {
    if kind.custom.is_some() { errors::not_found(kind, name) } else { errors::no_such_resource() }
}

/// Returns the name that a request is authorized for: that of its path, or the only one that its field selector selects.
fn asked_name(verb: Option<Verb>, resource: &ResourcePath, parameters: &Parameters) -> String {
    if !resource.name.is_empty() || !matches!(verb, Some(Verb::List | Verb::Watch)) {
        return resource.name.clone();
    }
    let selector = parameters.text("fieldSelector").and_then(|text| FieldSelector::parse(text).ok());
    let name = selector.as_ref().and_then(|selector| selector.required("metadata.name"));
    name.filter(|name| names::path_segment(name).is_empty()).unwrap_or_default().to_owned()
}

fn verb_of(method: &Method, path: &ResourcePath, parameters: &Parameters) -> Option<Verb> {
    let is_named = !path.name.is_empty();
    match *method {
        Method::GET if path.is_watch => Some(Verb::Watch),
        Method::GET if is_named => Some(Verb::Get),
        Method::GET if parameters.flag("watch").unwrap_or(false) => Some(Verb::Watch),
        Method::GET => Some(Verb::List),
        Method::POST if !is_named || !path.subresource.is_empty() => Some(Verb::Create),
        Method::PUT if is_named => Some(Verb::Update),
        Method::PATCH if is_named => Some(Verb::Patch),
        Method::DELETE if is_named => Some(Verb::Delete),
        Method::DELETE => Some(Verb::DeleteCollection),
        _ => None,
    }
}

async fn read_body<B>(body: B) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Display + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {BODY_LIMIT}"),
        )
        .with_details(Details::default())),
        Err(error) => Err(ApiError::bad_request(format!("the body could not be read: {error}"))),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
