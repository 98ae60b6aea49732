//! Resource requests: routing to a kind and verb, execution, response.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, header, request::Parts};

use super::{
    super::{
        body::ResponseBody,
        heavy,
        metrics::RequestLabels,
        negotiate::{self, Media, OfferedForms, Representation},
        path::ResourcePath,
        request_body::{self, RequestBody},
        respond,
        verb::{self, Verb},
    },
    Api, LONG_RUNNING,
};
use crate::{
    auth::{
        attributes::{Attributes, ResourceAttributes},
        user::User,
    },
    rest::{self, Cancellation, Payload, errors, options::Parameters},
    status::ApiError,
};

/// A request to a kind, ready for execution.
pub(super) struct ResourceCall {
    pub(super) verb: Verb,
    pub(super) path: ResourcePath,
    pub(super) request: rest::Request,
    pub(super) media: Media,
    pub(super) is_pretty: bool,
    pub(super) labels: RequestLabels,
}

impl Api {
    /// Returns the call of a resource request, still without its body, or the response to a rejected request.
    pub(super) fn resource(
        &self,
        parts: &Parts,
        user: User,
        resource: ResourcePath,
        parameters: Parameters,
        verb: Option<Verb>,
    ) -> Result<ResourceCall, Box<Response<ResponseBody>>> {
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
        let requester = self.authorize(user, &parts.headers, &attributes).map_err(|error| refuse(&error))?;
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
        let offer = OfferedForms { protobuf: kind.custom.is_none(), metadata: true, table: has_table };
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
        let labels =
            RequestLabels::kind(method, &kind, &resource.subresource, &resource.namespace, &resource.name);
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
            requester,
            user_agent: user_agent.map(str::to_owned),
            cancellation: Cancellation::default(),
        };
        Ok(ResourceCall { verb, path: resource, request, media, is_pretty, labels })
    }

    /// Reads the body of a call and executes it: inline, or in the queue of heavy requests.
    pub(super) async fn execute<B: RequestBody>(
        self: &Arc<Self>,
        mut call: ResourceCall,
        body: B,
    ) -> Response<ResponseBody> {
        let (media, labels) = (call.media, call.labels.clone());
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
                let (cancellation, _guard) = Cancellation::with_guard();
                call.request.cancellation = cancellation;
                let (api, bytes) = (Arc::clone(self), call.request.body.len());
                let work = move || runtime.block_on(api.perform(call));
                let done = self.heavy.run(bytes, work).await;
                done.unwrap_or_else(|error| respond::error(&error, media))
            }
            _ => self.perform(call).await,
        };
        response.extensions_mut().insert(labels);
        response
    }

    /// Executes a call and encodes its result.
    pub(super) async fn perform(&self, call: ResourceCall) -> Response<ResponseBody> {
        let ResourceCall { verb, path, request, media, is_pretty, labels } = call;
        let kind = Arc::clone(&request.kind);
        self.rest.expire_events(&kind);
        let deprecation = kind.strategy.deprecation();
        match self.run(verb, &path, request).await {
            Ok(mut result) => {
                result.warnings.extend(deprecation);
                let is_watch = matches!(result.payload, Payload::Watch(_));
                let response = respond::success(result, media, is_pretty, Some(&kind));
                if is_watch {
                    let counted = self.metrics.long_running(&labels);
                    response.map(|body| body.counted(counted))
                } else {
                    response
                }
            }
            Err(error) => respond::error(&error.with_warnings(deprecation), media),
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
