//! What a request was about, for errors and logs.

use std::fmt;

use http::Method;

use super::path::{AbsolutePath, ResourcePath};

/// What is asked of the server, in the words of its access rules.
///
/// These are the verbs a `Role` grants, which is why an error about a missing permission can name the one to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow the changes of a collection.
    Watch,
    /// Make a new object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object in part.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
}

impl Verb {
    /// Everything an informer does.
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

    /// The verb of this name, if it is one of these.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }

    /// The HTTP method that carries the verb.
    pub fn method(self) -> Method {
        match self {
            Self::Get | Self::List | Self::Watch => Method::GET,
            Self::Create => Method::POST,
            Self::Update => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete | Self::DeleteCollection => Method::DELETE,
        }
    }

    /// Whether sending the request twice leaves the server as sending it once does, because it only reads.
    pub fn is_read(self) -> bool {
        Self::READ.contains(&self)
    }

    /// The verb as access rules spell it.
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

/// What a request was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A resource, an object or a subresource.
    Resource(ResourcePath),
    /// A path outside the resources.
    Path(AbsolutePath),
}

/// What was tried, on what: the opening words of every error. Holds neither query nor body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// What was asked.
    pub verb: Verb,
    /// Of what.
    pub target: Target,
}

impl RequestInfo {
    pub(crate) fn new(verb: Verb, target: Target) -> Self {
        Self { verb, target }
    }

    /// The resource as access rules spell it: `pods`, `pods/status`, `deployments.apps`.
    pub fn resource(&self) -> Option<String> {
        let Target::Resource(path) = &self.target else {
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

    /// The namespace, if the request was inside one.
    pub fn namespace(&self) -> Option<&str> {
        match &self.target {
            Target::Resource(path) => path.namespace(),
            Target::Path(_) => None,
        }
    }

    /// The object's name, if the request named one.
    pub fn name(&self) -> Option<&str> {
        match &self.target {
            Target::Resource(path) => path.name(),
            Target::Path(_) => None,
        }
    }
}

impl fmt::Display for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Resource(_) => write!(f, "{} {}", self.verb, self.resource().unwrap_or_default())?,
            Target::Path(path) => write!(f, "{} {path}", self.verb)?,
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
