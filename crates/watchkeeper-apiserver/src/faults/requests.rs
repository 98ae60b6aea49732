//! The requests that a fault applies to.

use http::{Method, header, request::Parts};
use kube_client::core::Resource;

use crate::{
    http::{ResourcePath, Verb, segments, selected_name},
    rest::options::Parameters,
};

/// The requests that a fault applies to. Each method narrows the selection.
///
/// # Examples
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use watchkeeper_apiserver::faults::{Requests, Verb};
///
/// let every_request = Requests::all();
/// let writes_of_status = Requests::of::<Deployment>().subresource("status").verb(Verb::Update).verb(Verb::Patch);
/// let one_operator = Requests::to("foos.example.com").namespace("shop").user_agent("foo-operator");
/// # drop((every_request, writes_of_status, one_operator));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Requests {
    verbs: Vec<Verb>,
    group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user_agent: Option<String>,
}

impl Requests {
    /// Selects every request, including discovery and health checks.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects requests to the resource of a type, in every version, including its subresources.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        let (group, resource) = (Some(K::group(&()).into_owned()), Some(K::plural(&()).into_owned()));
        Self { group, resource, ..Self::default() }
    }

    /// Selects requests to a resource, including its subresources.
    ///
    /// `resource` is the plural name, such as `pods`. A group after a dot, as in `deployments.apps`, narrows the selection
    /// to that group.
    pub fn to(resource: &str) -> Self {
        let (resource, group) = match resource.split_once('.') {
            Some((resource, group)) => (resource, Some(group.to_owned())),
            None => (resource, None),
        };
        Self { group, resource: Some(resource.to_owned()), ..Self::default() }
    }

    /// Selects requests with this verb. Further calls add verbs.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Selects requests to this subresource, such as `status`. The empty string selects the object itself.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Selects requests in this namespace. Requests across namespaces are in the namespace `""`.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Selects requests to the object of this name, and lists and watches whose field selector requires the name.
    ///
    /// The name of an object to create is not part of the request's path, so a create request has no name.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Selects requests whose `User-Agent` header contains this text.
    pub fn user_agent(mut self, text: &str) -> Self {
        self.user_agent = Some(text.to_owned());
        self
    }

    /// Returns whether a request is selected.
    pub(super) fn contains(&self, target: &Target) -> bool {
        let is =
            |wanted: &Option<String>, actual: &str| wanted.as_deref().is_none_or(|wanted| wanted == actual);
        let has_verb = self.verbs.is_empty() || target.verb.is_some_and(|verb| self.verbs.contains(&verb));
        let is_agent = self.user_agent.as_deref().is_none_or(|part| target.user_agent.contains(part));
        has_verb
            && is_agent
            && is(&self.group, &target.path.group)
            && is(&self.resource, &target.path.resource)
            && is(&self.subresource, &target.path.subresource)
            && is(&self.namespace, &target.path.namespace)
            && is(&self.name, &target.path.name)
    }
}

/// The properties of a request that faults select by. A request outside the resources has an empty path.
#[derive(Debug)]
pub(super) struct Target {
    verb: Option<Verb>,
    path: ResourcePath,
    user_agent: String,
}

impl Target {
    /// Returns the properties of a request.
    pub(super) fn of(parts: &Parts) -> Self {
        let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let user_agent = agent.unwrap_or_default().to_owned();
        let path = segments(parts.uri.path()).as_deref().and_then(ResourcePath::read);
        let Some(mut path) = path else {
            return Self { verb: None, path: ResourcePath::default(), user_agent };
        };
        let parameters = Parameters::parse(parts.uri.query());
        let verb = Verb::of(&parts.method, &path, &parameters);
        if path.name.is_empty() {
            path.name = selected_name(verb, &parameters).unwrap_or_default();
        }
        Self { verb, path, user_agent }
    }

    /// Returns whether the request is a watch.
    pub(super) fn is_watch(&self) -> bool {
        self.verb == Some(Verb::Watch)
    }
}

/// Returns false for requests that are certainly not watches.
pub(super) fn may_watch(parts: &Parts) -> bool {
    let is_in_query = parts.uri.query().is_some_and(|query| query.contains("watch"));
    parts.method == Method::GET && (is_in_query || parts.uri.path().contains("/watch"))
}
