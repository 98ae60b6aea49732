//! The verb and target of a request, for errors and logs.

use std::fmt;

use http::Method;

use super::path::{AbsolutePath, ResourcePath};

/// A request verb, as in RBAC rules.
///
/// These are the verbs that a `Role` grants, so an error about a missing permission names the verb to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Watch the changes of a collection.
    Watch,
    /// Create an object.
    Create,
    /// Replace an object.
    Update,
    /// Patch an object.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
}

impl Verb {
    /// The read-only verbs, which are those that an informer needs.
    pub const READ: [Self; 3] = [Self::Get, Self::List, Self::Watch];

    const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// Returns the verb of this name, if it exists.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }

    /// Returns the HTTP method of the verb.
    pub fn method(self) -> Method {
        match self {
            Self::Get | Self::List | Self::Watch => Method::GET,
            Self::Create => Method::POST,
            Self::Update => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete | Self::DeleteCollection => Method::DELETE,
        }
    }

    /// Returns whether the verb only reads, so that repeating the request is safe.
    pub fn is_read(self) -> bool {
        Self::READ.contains(&self)
    }

    /// Returns the verb as spelled in RBAC rules.
    pub fn as_str(self) -> &'static str {
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
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestTarget {
    /// A resource, an object or a subresource.
    Resource(ResourcePath),
    /// A non-resource path.
    Path(AbsolutePath),
}

/// The verb and the target of a request, for error messages. Neither query nor body is included.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// The verb of the request.
    pub verb: Verb,
    /// The target of the request.
    pub target: RequestTarget,
}

impl RequestInfo {
    pub(crate) fn new(verb: Verb, target: RequestTarget) -> Self {
        Self { verb, target }
    }

    /// Returns the resource as spelled in RBAC rules: `pods`, `pods/status`, `deployments.apps`.
    pub fn resource(&self) -> Option<String> {
        let RequestTarget::Resource(path) = &self.target else {
            return None;
        };
        let mut resource = path.resource().to_owned();
        for subresource in path.subresources() {
            resource.push('/');
            resource.push_str(subresource);
        }
        if !path.group().is_empty() {
            resource.push('.');
            resource.push_str(path.group());
        }
        Some(resource)
    }

    /// Returns the namespace, if the request is namespaced.
    pub fn namespace(&self) -> Option<&str> {
        match &self.target {
            RequestTarget::Resource(path) => path.namespace(),
            RequestTarget::Path(_) => None,
        }
    }

    /// Returns the name of the object, if the request has one.
    pub fn name(&self) -> Option<&str> {
        match &self.target {
            RequestTarget::Resource(path) => path.name(),
            RequestTarget::Path(_) => None,
        }
    }
}

impl fmt::Display for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            RequestTarget::Resource(_) => write!(f, "{} {}", self.verb, self.resource().unwrap_or_default())?,
            RequestTarget::Path(path) => write!(f, "{} {path}", self.verb)?,
        }
        if let Some(name) = self.name() {
            write!(f, " {name:?}")?;
        }
        if let Some(namespace) = self.namespace() {
            write!(f, " in namespace {namespace:?}")?;
        }
        Ok(())
    }
}
