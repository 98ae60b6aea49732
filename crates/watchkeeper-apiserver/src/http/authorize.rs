//! Who may do what.

use std::fmt;

use super::authenticate::User;

/// What a request wants to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// The verb: `get`, `list`, `watch`, `create`, …
    pub(crate) verb: String,
    /// The group of the resource.
    pub(crate) group: String,
    /// The resource; empty for paths that are not about one.
    pub(crate) resource: String,
    /// The subresource.
    pub(crate) subresource: String,
    /// The namespace.
    pub(crate) namespace: String,
    /// The name.
    pub(crate) name: String,
    /// The path, for paths that are not about a resource.
    pub(crate) path: String,
}

/// Decides who may do what.
pub(crate) trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether `user` may.
    fn allows(&self, user: &User, attributes: &Attributes) -> bool;
}

/// Everyone may do everything.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AllowAll;

impl Authorizer for AllowAll {
    fn allows(&self, _user: &User, _attributes: &Attributes) -> bool {
        true
    }
}

/// The error of a request that may not happen.
pub(crate) fn forbidden(user: &User, attributes: &Attributes) -> crate::status::ApiError {
    use crate::status::{ApiError, Details};
    if attributes.resource.is_empty() {
        let message =
            format!("forbidden: User {:?} cannot {} path {:?}", user.name, attributes.verb, attributes.path);
        return ApiError::new(403, "Forbidden", message).with_details(Details::default());
    }
    let resource = if attributes.group.is_empty() {
        attributes.resource.clone()
    } else {
        format!("{}.{}", attributes.resource, attributes.group)
    };
    let subject =
        if attributes.name.is_empty() { resource } else { format!("{resource} {:?}", attributes.name) };
    let what = if attributes.subresource.is_empty() {
        attributes.resource.clone()
    } else {
        format!("{}/{}", attributes.resource, attributes.subresource)
    };
    let place = if attributes.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", attributes.namespace)
    };
    let message = format!(
        "{subject} is forbidden: User {:?} cannot {} resource {what:?} in API group {:?} {place}",
        user.name, attributes.verb, attributes.group,
    );
    ApiError::new(403, "Forbidden", message).with_details(Details {
        name: Some(attributes.name.clone()),
        group: Some(attributes.group.clone()),
        kind: Some(attributes.resource.clone()),
        ..Details::default()
    })
}
