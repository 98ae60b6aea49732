//! The verbs: functions from a request and the store to a result.
//!
//! Verbs are plain functions. The few operations that wait (for a future version, for watch events) are in `read` and in
//! [`crate::watch`].

mod allocations;
mod cancellation;
mod create;
mod definitions;
mod delete;
pub(crate) mod errors;
mod event_expiry;
mod eviction;
mod integer_wrap;
pub(crate) mod kubernetes_service;
mod list_body;
mod meta;
pub(crate) mod options;
mod paging;
mod patch;
mod read;
pub(crate) mod represent;
mod review;
pub(crate) mod scale;
pub(crate) mod stored;
mod subresource;
mod token_request;
mod update;
mod versions;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

pub(crate) use self::{
    cancellation::{Cancellation, deadline_exceeded},
    delete::{FOREGROUND, ORPHAN, Propagation},
    event_expiry::EventExpiry,
    list_body::ListBody,
};
use self::{options::Parameters, represent::ObjectForm, stored::ServedKind, update::WriteResult};
use crate::{
    Clock,
    auth::{
        Requester,
        attributes::{Attributes, ResourceAttributes},
        bootstrap,
        service_account::TokenIssuer,
    },
    kinds::{Kind, Kinds, Registry},
    status::ApiError,
    storage::{Object, Storage},
    strategy::ServiceAllocator,
    watch::Watcher,
};

/// The number of attempts of a write that conflicts with concurrent writes.
const ATTEMPTS: usize = 64;

/// The state behind the API.
#[derive(Debug)]
pub(crate) struct Rest {
    /// The store of the objects.
    pub(crate) store: Arc<dyn Storage>,
    /// The registry of served kinds.
    pub(crate) registry: Arc<Registry>,
    /// The source of time.
    pub(crate) clock: Arc<dyn Clock>,
    /// The source of random names, uids and jitter.
    pub(crate) random: Mutex<fastrand::Rng>,
    /// The allocator of service addresses and ports.
    pub(crate) services: Arc<ServiceAllocator>,
    /// The address that the server publishes in its own endpoints.
    pub(crate) advertised: Mutex<kubernetes_service::Advertised>,
    /// The events that will expire.
    pub(crate) events: EventExpiry,
    /// The definitions of custom kinds that are served. Locked while the served kinds are updated.
    pub(crate) definitions: Mutex<definitions::KnownDefinitions>,
    /// The issuer of service account tokens.
    pub(crate) issuer: TokenIssuer,
    /// The shutdown signal, which ends watches.
    pub(crate) shutdown: watch::Receiver<bool>,
    /// The time between the bookmarks of a watch.
    pub(crate) bookmark_interval: Duration,
}

/// A request for a resource, with its parsed path.
#[derive(Debug)]
pub(crate) struct Request {
    /// The requested kind.
    pub(crate) kind: Arc<Kind>,
    /// The served kinds at the start of the request.
    pub(crate) kinds: Arc<Kinds>,
    /// The namespace; empty for cluster-scoped objects, and for lists over all namespaces.
    pub(crate) namespace: String,
    /// The name; empty for a collection.
    pub(crate) name: String,
    /// The parameters of the query.
    pub(crate) parameters: Parameters,
    /// The requested form of objects.
    pub(crate) form: ObjectForm,
    /// Whether a watch is sent as protobuf.
    pub(crate) is_protobuf: bool,
    /// The media type of the body.
    pub(crate) content_type: Option<String>,
    /// The body of the request.
    pub(crate) body: Bytes,
    /// The user, with the authorizer.
    pub(crate) requester: Requester,
    /// The `User-Agent` header.
    pub(crate) user_agent: Option<String>,
    /// The cancellation state, polled between phases and in long loops.
    pub(crate) cancellation: Cancellation,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    /// The HTTP status code.
    pub(crate) code: u16,
    /// The content of the response.
    pub(crate) payload: Payload,
    /// The messages for `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Payload {
    /// JSON that is already encoded.
    Json(Vec<u8>),
    /// A value, to be encoded in the requested media type.
    Value(Value),
    /// A list, to be encoded while the client reads it.
    List(ListBody),
    /// A running watch.
    Watch(Box<Watcher>),
    /// All frames of a watch that ends immediately.
    Frames(Bytes),
}

impl ApiResponse {
    fn new(code: u16, payload: Payload) -> Self {
        Self { code, payload, warnings: Vec::new() }
    }

    fn value(code: u16, value: Value) -> Self {
        Self::new(code, Payload::Value(value))
    }

    fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }
}

/// Adds `warnings` to an error, because clients receive warnings with errors too.
fn with_request_warnings<T>(result: Result<T, ApiError>, warnings: &[String]) -> Result<T, ApiError> {
    result.map_err(|mut error| {
        add_warnings(&mut error.warnings, warnings.to_vec());
        error
    })
}

/// Adds warnings without duplicates, because a retried write repeats its warnings.
fn add_warnings(known: &mut Vec<String>, new: Vec<String>) {
    for warning in new {
        if !known.contains(&warning) {
            known.push(warning);
        }
    }
}

impl Request {
    /// Returns the kind, with the kind that its objects are stored as.
    fn served(&self) -> ServedKind {
        ServedKind::new(&self.kind, &self.kinds)
    }

    /// Returns the table of the objects.
    pub(crate) fn table(&self) -> String {
        table_of(&self.kind)
    }

    /// Returns the key of the object.
    pub(crate) fn key(&self) -> String {
        key_of(&self.namespace, &self.name)
    }

    /// Creates a request of the server itself for an object.
    pub(crate) fn internal(kind: Arc<Kind>, kinds: Arc<Kinds>, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            kinds,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            parameters: Parameters::default(),
            form: ObjectForm::Plain,
            is_protobuf: false,
            content_type: None,
            body: Bytes::new(),
            requester: Requester::server(),
            user_agent: Some("kube-apiserver".into()),
            cancellation: Cancellation::default(),
        }
    }

    /// Returns the same request for another object.
    fn for_object(&self, namespace: &str, name: &str) -> Self {
        Self {
            kind: Arc::clone(&self.kind),
            kinds: Arc::clone(&self.kinds),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            parameters: self.parameters.clone(),
            form: self.form.clone(),
            is_protobuf: self.is_protobuf,
            content_type: self.content_type.clone(),
            body: self.body.clone(),
            requester: self.requester.clone(),
            user_agent: self.user_agent.clone(),
            cancellation: self.cancellation.clone(),
        }
    }

    /// Returns the attributes of creating the object that an update or an apply names.
    fn create_attributes(&self) -> Attributes {
        Attributes::Resource(ResourceAttributes {
            verb: "create".into(),
            group: self.kind.gvk.group.clone(),
            resource: self.kind.plural.clone(),
            subresource: String::new(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        })
    }

    /// Returns the prefix of the keys of the collection.
    fn prefix(&self) -> String {
        if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) }
    }
}

/// Returns the table of a kind: `pods`, or `deployments.apps`.
pub(crate) fn table_of(kind: &Kind) -> String {
    if kind.storage.group.is_empty() {
        kind.plural.clone()
    } else {
        format!("{}.{}", kind.plural, kind.storage.group)
    }
}

/// Returns the key of an object.
pub(crate) fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl Rest {
    /// Returns the date.
    fn now(&self) -> SystemTime {
        self.clock.wall_time()
    }

    /// Returns the date as a timestamp for managed fields.
    fn timestamp(&self) -> jiff::Timestamp {
        jiff::Timestamp::try_from(self.now()).unwrap_or_default()
    }

    /// Creates the system namespaces.
    pub(crate) fn create_system_namespaces(&self) {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let object =
                serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.create_own(("", "v1", "namespaces"), &object);
        }
    }

    /// Creates the default roles and bindings.
    pub(crate) fn create_default_roles(&self) {
        for object in bootstrap::objects() {
            let plural = match object["kind"].as_str() {
                Some("ClusterRole") => "clusterroles",
                Some("Role") => "roles",
                _ => "clusterrolebindings",
            };
            self.create_own(("rbac.authorization.k8s.io", "v1", plural), &object);
        }
    }

    /// Creates an object of the server itself in an empty store, where it cannot collide with others.
    fn create_own(&self, (group, version, plural): (&str, &str, &str), object: &Value) {
        let kinds = self.registry.kinds();
        let Some(kind) = kinds.by_path(group, version, plural).map(Arc::clone) else { return };
        let mut request = Request::internal(kind, kinds, meta::text(object, "namespace"), "");
        request.body = object.to_string().into();
        let created = self.create(&request);
        debug_assert!(created.is_ok(), "{object} is refused: {created:?}");
    }

    /// Returns the current object of a request.
    fn current(&self, request: &Request) -> Result<Arc<Object>, ApiError> {
        self.store
            .get(&request.table(), &request.key())
            .ok_or_else(|| errors::not_found(&request.kind, &request.name))
    }

    /// Returns a written object in the requested form, reusing its encoding if possible.
    fn represent_written(&self, request: &Request, written: WriteResult) -> Result<ApiResponse, ApiError> {
        let code = if written.is_new { 201 } else { 200 };
        let representer = represent::Representer::new(request.served(), request.form.clone(), self.now());
        match &written.stored {
            Some(stored) if representer.is_stored_form() && !request.is_protobuf => {
                Ok(ApiResponse::new(code, read::encode_one(&representer, stored)))
            }
            _ => self.represent(request, code, written.object),
        }
    }

    /// Returns an object in the requested form.
    fn represent(&self, request: &Request, code: u16, object: Value) -> Result<ApiResponse, ApiError> {
        read::check_form(&request.form, &request.kind, false)?;
        let representer = represent::Representer::new(request.served(), request.form.clone(), self.now());
        Ok(ApiResponse::value(code, representer.value(object)))
    }
}
