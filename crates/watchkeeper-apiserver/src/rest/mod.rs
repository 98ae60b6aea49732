//! The verbs: what each does to the store, and what it answers.
//!
//! Everything here is a plain function from a request and the store to an answer; the few things that wait (a version
//! that has not come yet, a watch) are at the edge, in `read` and in [`crate::watch`].

mod budget;
mod claims;
mod create;
mod definitions;
mod delete;
pub(crate) mod errors;
mod event_expiry;
mod eviction;
mod list_body;
mod meta;
pub(crate) mod options;
pub(crate) mod own_service;
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
mod wrap;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

pub(crate) use self::{
    budget::{Budget, deadline_exceeded},
    event_expiry::EventExpiry,
    list_body::ListBody,
};
use self::{options::Parameters, represent::Form, stored::Served, update::Written};
use crate::{
    auth::{
        Asker,
        attributes::{Attributes, ResourceAttributes},
        bootstrap,
        service_account::TokenIssuer,
    },
    clock::Clock,
    kinds::{Kind, Kinds, Registry},
    status::ApiError,
    storage::{Object, Storage},
    strategy::ServiceAllocator,
    watch::Watcher,
};

/// Times a write is tried again when something else changed the object in between.
const ATTEMPTS: usize = 64;

/// The state behind the API.
#[derive(Debug)]
pub(crate) struct Rest {
    /// The objects.
    pub(crate) store: Arc<dyn Storage>,
    /// What is served.
    pub(crate) registry: Arc<Registry>,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Names, uids and jitter.
    pub(crate) random: Mutex<fastrand::Rng>,
    /// Addresses and ports of services.
    pub(crate) services: Arc<ServiceAllocator>,
    /// The address the server publishes in its own endpoints.
    pub(crate) advertised: Mutex<own_service::Advertised>,
    /// Events that will be forgotten.
    pub(crate) events: EventExpiry,
    /// Held while what is served follows the definitions of custom kinds.
    pub(crate) definitions: Mutex<definitions::Known>,
    /// The issuer of service account tokens.
    pub(crate) issuer: TokenIssuer,
    /// Tells watches that the server goes away.
    pub(crate) shutdown: watch::Receiver<bool>,
    /// Time between the bookmarks of a watch.
    pub(crate) bookmark_interval: Duration,
}

/// A request about a resource, after its path has been understood.
#[derive(Debug)]
pub(crate) struct Request {
    /// The kind.
    pub(crate) kind: Arc<Kind>,
    /// What is served, as of the start of the request.
    pub(crate) kinds: Arc<Kinds>,
    /// The namespace; empty for objects of the cluster, and for lists over all namespaces.
    pub(crate) namespace: String,
    /// The name; empty for a collection.
    pub(crate) name: String,
    /// The query.
    pub(crate) parameters: Parameters,
    /// The form the client wants to see.
    pub(crate) form: Form,
    /// Whether a watch is sent as protobuf.
    pub(crate) is_protobuf: bool,
    /// The media type of the body.
    pub(crate) content_type: Option<String>,
    /// The body.
    pub(crate) body: Bytes,
    /// Who asks, and who decides about it.
    pub(crate) asker: Asker,
    /// Who asks, as it says of itself.
    pub(crate) user_agent: Option<String>,
    /// Whether anybody still waits for the reply; polled between phases and in long loops.
    pub(crate) budget: Budget,
}

/// What a request is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The HTTP status code.
    pub(crate) code: u16,
    /// The body.
    pub(crate) payload: Payload,
    /// What the client should know.
    pub(crate) warnings: Vec<String>,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Payload {
    /// JSON that is ready to be sent.
    Json(Vec<u8>),
    /// A value to be written in the media type the client wants.
    Value(Value),
    /// A list, to be written as it is read.
    List(ListBody),
    /// A watch.
    Watch(Box<Watcher>),
    /// All there is of a watch that is over before it begins.
    Frames(Bytes),
}

impl Answer {
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

/// Adds `warnings` to an error: clients get them whatever becomes of the request.
fn warned<T>(result: Result<T, ApiError>, warnings: &[String]) -> Result<T, ApiError> {
    result.map_err(|mut error| {
        add_warnings(&mut error.warnings, warnings.to_vec());
        error
    })
}

/// Adds warnings that are not there yet: a write that is tried again repeats its warnings.
fn add_warnings(known: &mut Vec<String>, new: Vec<String>) {
    for warning in new {
        if !known.contains(&warning) {
            known.push(warning);
        }
    }
}

impl Request {
    /// The kind, and the kind its objects are stored as.
    fn served(&self) -> Served {
        Served::new(&self.kind, &self.kinds)
    }

    /// The table the objects are in.
    pub(crate) fn table(&self) -> String {
        table_of(&self.kind)
    }

    /// The key of the object.
    pub(crate) fn key(&self) -> String {
        key_of(&self.namespace, &self.name)
    }

    /// A request of the server itself about an object.
    pub(crate) fn internal(kind: Arc<Kind>, kinds: Arc<Kinds>, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            kinds,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            parameters: Parameters::default(),
            form: Form::Plain,
            is_protobuf: false,
            content_type: None,
            body: Bytes::new(),
            asker: Asker::server(),
            user_agent: Some("kube-apiserver".into()),
            budget: Budget::default(),
        }
    }

    /// The same request about one object.
    fn about(&self, namespace: &str, name: &str) -> Self {
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
            asker: self.asker.clone(),
            user_agent: self.user_agent.clone(),
            budget: self.budget.clone(),
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

    /// What the keys of the collection begin with.
    fn prefix(&self) -> String {
        if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) }
    }
}

/// The table of a kind: `pods`, or `deployments.apps`.
pub(crate) fn table_of(kind: &Kind) -> String {
    if kind.storage.group.is_empty() {
        kind.plural.clone()
    } else {
        format!("{}.{}", kind.plural, kind.storage.group)
    }
}

/// The key of an object.
pub(crate) fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl Rest {
    /// The date.
    fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// The date, as managers are noted with.
    fn timestamp(&self) -> jiff::Timestamp {
        jiff::Timestamp::try_from(self.now()).unwrap_or_default()
    }

    /// Makes the namespaces every cluster has.
    pub(crate) fn make_namespaces(&self) {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let object =
                serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.make(("", "v1", "namespaces"), &object);
        }
    }

    /// Makes the roles and bindings every cluster has.
    pub(crate) fn make_roles(&self) {
        for object in bootstrap::objects() {
            let plural = match object["kind"].as_str() {
                Some("ClusterRole") => "clusterroles",
                Some("Role") => "roles",
                _ => "clusterrolebindings",
            };
            self.make(("rbac.authorization.k8s.io", "v1", plural), &object);
        }
    }

    /// Makes an object of the server's own, in an empty store: there is nothing it could collide with.
    fn make(&self, (group, version, plural): (&str, &str, &str), object: &Value) {
        let kinds = self.registry.kinds();
        let Some(kind) = kinds.by_path(group, version, plural).map(Arc::clone) else { return };
        let mut request = Request::internal(kind, kinds, meta::text(object, "namespace"), "");
        request.body = object.to_string().into();
        let made = self.create(&request);
        debug_assert!(made.is_ok(), "{object} is refused: {made:?}");
    }

    /// The current object of a request.
    fn current(&self, request: &Request) -> Result<Arc<Object>, ApiError> {
        self.store
            .get(&request.table(), &request.key())
            .ok_or_else(|| errors::not_found(&request.kind, &request.name))
    }

    /// Shows an object that was written the way the client wants to see it; what was just encoded is not encoded again.
    fn show_written(&self, request: &Request, written: Written) -> Result<Answer, ApiError> {
        let code = if written.is_new { 201 } else { 200 };
        let representer = represent::Representer::new(request.served(), request.form.clone(), self.now());
        match &written.stored {
            Some(stored) if representer.is_stored_form() && !request.is_protobuf => {
                Ok(Answer::new(code, read::show_one(&representer, stored)))
            }
            _ => self.show(request, code, written.object),
        }
    }

    /// Shows an object the way the client wants to see it.
    fn show(&self, request: &Request, code: u16, object: Value) -> Result<Answer, ApiError> {
        read::check_form(&request.form, &request.kind, false)?;
        let representer = represent::Representer::new(request.served(), request.form.clone(), self.now());
        Ok(Answer::value(code, representer.value(object)))
    }
}
