//! The attributes of a request that authorization decides on.

use super::user::User;
use crate::status::{ApiError, Details};

/// The attributes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// A request for objects.
    Resource(ResourceAttributes),
    /// A request for a path outside the resources: discovery, health, metrics.
    Path {
        /// The lower-case HTTP method.
        verb: String,
        /// The path of the request.
        path: String,
    },
}

/// The attributes of a request for objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourceAttributes {
    /// The verb: `get`, `list`, `deletecollection`, …
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource (plural).
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for all namespaces and for cluster-scoped resources.
    pub namespace: String,
    /// The name of the object; empty for all objects.
    pub name: String,
}

impl ResourceAttributes {
    /// Returns the resource as rules name it: `pods`, or `pods/status`.
    pub(crate) fn in_rules(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    fn qualified_resource(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

impl Attributes {
    /// Returns the same attributes with the verb replaced by `change(verb)`.
    pub(crate) fn with_verb(&self, change: impl FnOnce(&str) -> String) -> Self {
        let mut changed = self.clone();
        let verb = match &mut changed {
            Self::Resource(attributes) => &mut attributes.verb,
            Self::Path { verb, .. } => verb,
        };
        *verb = change(verb);
        changed
    }

    /// Returns the 403 for `user`. A non-empty `reason` is appended to the message.
    pub(crate) fn forbidden(&self, user: &User, reason: &str) -> ApiError {
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        match self {
            Self::Path { verb, path } => {
                let message = format!("forbidden: User {:?} cannot {verb} path {path:?}{reason}", user.name);
                ApiError::new(403, "Forbidden", message).with_details(Details::default())
            }
            Self::Resource(attributes) => {
                let resource = attributes.qualified_resource();
                let named = if attributes.name.is_empty() {
                    resource
                } else {
                    format!("{resource} {:?}", attributes.name)
                };
                let scope = if attributes.namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {:?}", attributes.namespace)
                };
                let message = format!(
                    "{named} is forbidden: User {:?} cannot {} resource {:?} in API group {:?} {scope}{reason}",
                    user.name,
                    attributes.verb,
                    attributes.in_rules(),
                    attributes.group,
                );
                ApiError::new(403, "Forbidden", message).with_details(Details {
                    name: Some(attributes.name.clone()),
                    group: Some(attributes.group.clone()),
                    kind: Some(attributes.resource.clone()),
                    ..Details::default()
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_message_names_user_verb_resource_group_and_scope() {
        let user = User { name: "ann".into(), ..User::default() };
        let scale = Attributes::Resource(ResourceAttributes {
            verb: "get".into(),
            group: "apps".into(),
            resource: "deployments".into(),
            subresource: "scale".into(),
            namespace: "shop".into(),
            name: "web".into(),
        });
        let status = scale.forbidden(&user, "").to_status();
        assert_eq!(
            status["message"],
            "deployments.apps \"web\" is forbidden: User \"ann\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"shop\""
        );
        assert_eq!(
            status["details"],
            serde_json::json!({"name": "web", "group": "apps", "kind": "deployments"})
        );

        let path = Attributes::Path { verb: "get".into(), path: "/metrics".into() };
        let status = path.forbidden(&user, "").to_status();
        assert_eq!(status["message"], "forbidden: User \"ann\" cannot get path \"/metrics\"");
        assert_eq!(status["details"], serde_json::json!({}));
    }
}
