//! The verb of a request, in the terms of authorization and of metrics.

use http::Method;

use super::path::ResourcePath;
use crate::{
    kinds::Kind,
    rest::{errors, options::Parameters},
    selector::FieldSelector,
    status::ApiError,
};

/// The operation of a resource request, as in the rules of RBAC roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads an object.
    Get,
    /// Reads a collection.
    List,
    /// Streams the changes of an object or a collection.
    Watch,
    /// Creates an object, or posts to a subresource.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object with a patch, including server-side apply.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl Verb {
    /// Returns the verb of a request. `None` if the method is not defined for this path.
    pub(crate) fn of(method: &Method, path: &ResourcePath, parameters: &Parameters) -> Option<Self> {
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

    /// Returns the verb as in rules of roles.
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

    /// Returns the verb as in metrics.
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

    /// Returns whether the operation changes objects. Only the bodies of such requests are read.
    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// Returns the 404 for a subresource that a kind does not have. For custom kinds, the object is looked up first.
pub(super) fn no_such_subresource(kind: &Kind, name: &str) -> ApiError {
    if kind.custom.is_some() { errors::not_found(kind, name) } else { errors::no_such_resource() }
}

/// Returns the verb if it is supported at this path.
pub(super) fn allowed(verb: Option<Verb>, path: &ResourcePath, kind: &Kind) -> Result<Verb, ApiError> {
    if !path.subresource.is_empty() {
        let Some(subresource) = kind.subresource(&path.subresource) else {
            return Err(no_such_subresource(kind, &path.name));
        };
        let is_allowed = |verb: &Verb| subresource.verbs.iter().any(|known| known == verb.text());
        return verb.filter(is_allowed).ok_or_else(errors::method_not_allowed);
    }
    let is_named = !path.name.is_empty();
    let verbs: [&str; 4] = if is_named {
        ["get", "update", "patch", "delete"]
    } else {
        ["list", "create", "deletecollection", "watch"]
    };
    if !verbs.iter().any(|verb| kind.allows(verb)) {
        return Err(errors::no_such_resource());
    }
    let Some(verb) = verb.filter(|verb| kind.allows(verb.text())) else {
        return Err(errors::method_not_allowed());
    };
    let is_across = kind.is_namespaced && path.namespace.is_empty();
    if is_across && (is_named || !matches!(verb, Verb::List | Verb::Watch)) {
        return Err(if is_named { errors::no_such_resource() } else { errors::method_not_allowed() });
    }
    Ok(verb)
}

/// Returns the name that the field selector of a list or watch requires. A role that permits listing one name permits such a
/// request.
pub(crate) fn selected_name(verb: Option<Verb>, parameters: &Parameters) -> Option<String> {
    if !matches!(verb, Some(Verb::List | Verb::Watch)) {
        return None;
    }
    let selector = FieldSelector::parse(parameters.given("fieldSelector")?).ok()?;
    let is_name =
        |name: &&str| !name.is_empty() && !matches!(*name, "." | "..") && !name.contains(['/', '%']);
    selector.required("metadata.name").filter(is_name).map(str::to_owned)
}
