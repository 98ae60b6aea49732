//! Permissions that a write needs because of its content, beyond those for its verb and resource.

use serde_json::Value;

use super::{Authorizer, Requester, attributes::Attributes, escalation, resource_claims, signers};
use crate::status::ApiError;

/// A write of an object, after validation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentWrite<'a> {
    /// The verb of the request.
    pub(crate) verb: &'a str,
    /// The subresource that is written; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The object as it will be stored.
    pub(crate) object: &'a Value,
    /// The stored object; none for a create.
    pub(crate) old: Option<&'a Value>,
}

/// Checks that a user has the permissions that the content of a write needs.
///
/// # Errors
/// 403 naming the missing permission, 404 for a binding to a role that does not exist, or 422 for parts of a status that
/// the user may not change.
pub(crate) fn check(requester: &Requester, write: &ContentWrite<'_>) -> Result<(), ApiError> {
    match &requester.authorizer {
        Authorizer::AlwaysAllow => Ok(()),
        Authorizer::Rbac(_) if requester.user.is_master() => Ok(()),
        Authorizer::Rbac(policy) => {
            escalation::check(policy, &requester.user, write)?;
            signers::check(policy, &requester.user, write)?;
            resource_claims::check(policy, &requester.user, write)
        }
    }
}

/// Checks that a user may create the object that an update or an apply is about to create. `attributes` are those of
/// the create.
///
/// # Errors
/// 403 as for a create.
pub(crate) fn check_create(requester: &Requester, attributes: &Attributes) -> Result<(), ApiError> {
    let decision = requester.authorizer.decide(&requester.user, attributes);
    if decision.is_allowed { Ok(()) } else { Err(attributes.forbidden(&requester.user, &decision.reason)) }
}

impl ContentWrite<'_> {
    /// Returns a member of the metadata.
    pub(super) fn metadata(&self, member: &str) -> &str {
        self.object["metadata"][member].as_str().unwrap_or_default()
    }

    /// Returns the kind of the object, if it is a built-in one of `group`.
    pub(super) fn kind_in(&self, group: &str) -> Option<&str> {
        let (of, _) = self.object["apiVersion"].as_str()?.split_once('/')?;
        self.object["kind"].as_str().filter(|_| of == group)
    }

    /// Returns whether the write changes only owners and finalizers. Such a write is always permitted, so that garbage
    /// collection can proceed whatever the object grants.
    pub(super) fn is_for_garbage_collection(&self) -> bool {
        const IGNORED: [&str; 5] =
            ["finalizers", "managedFields", "ownerReferences", "resourceVersion", "selfLink"];
        let Some(old) = self.old else { return false };
        let relevant = |metadata: &Value| {
            let mut metadata = metadata.clone();
            if let Some(members) = metadata.as_object_mut() {
                members.retain(|member, _| !IGNORED.contains(&member.as_str()));
            }
            metadata
        };
        let members = |object: &Value| -> Vec<String> {
            object.as_object().into_iter().flatten().map(|(member, _)| member.clone()).collect()
        };
        let names = [members(self.object), members(old)].concat();
        names.iter().all(|member| {
            if member == "metadata" {
                relevant(&self.object[member]) == relevant(&old[member])
            } else {
                self.object[member] == old[member]
            }
        })
    }
}
