//! The verb of a request, in the terms of authorization and of metrics.

use http::Method;

use super::path::ResourcePath;
use crate::rest::options::Parameters;

/// The operation that a request about a resource asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
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
    /// Returns the verb of a request, or `None` if the method means nothing at this path.
    pub(super) fn of(method: &Method, path: &ResourcePath, parameters: &Parameters) -> Option<Self> {
        let is_named = !path.name.is_empty();
        match *method {
            Method::GET if path.is_watch => Some(Self::Watch),
            Method::GET if is_named => Some(Self::Get),
            Method::GET if parameters.flag("watch").unwrap_or(false) => Some(Self::Watch),
            Method::GET => Some(Self::List),
            Method::POST if !is_named || !path.subresource.is_empty() => Some(Self::Create),
            Method::PUT if is_named => Some(Self::Update),
            Method::PATCH if is_named => Some(Self::Patch),
            Method::DELETE if is_named => Some(Self::Delete),
            Method::DELETE => Some(Self::DeleteCollection),
            _ => None,
        }
    }

    /// Returns the verb as rules of roles name it.
    pub(super) fn text(self) -> &'static str {
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

    /// Returns the verb as metrics name it.
    pub(super) fn method(self, is_apply: bool) -> &'static str {
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

    /// Returns whether the operation changes objects. Only such a request has a body that is read.
    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}
