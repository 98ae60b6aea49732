//! The status of resource claims: only the scheduler writes allocations, and only a driver writes the devices of that
//! driver.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    attributes::{Attributes, ResourceAttributes},
    content::ContentWrite,
    rbac::RbacPolicy,
    service_account::{AccountName, NODE_NAME},
    user::User,
};
use crate::{
    field::{FieldError, FieldErrorKind},
    rest::errors,
    status::ApiError,
};

const GROUP: &str = "resource.k8s.io";
const KIND: &str = "ResourceClaim";

/// Checks the permissions for the changed parts of the status of a resource claim; other writes pass.
///
/// # Errors
/// 422 naming the parts that the user may not change. Upstream checks this during validation, hence the code.
pub(super) fn check(policy: &RbacPolicy, user: &User, write: &ContentWrite<'_>) -> Result<(), ApiError> {
    let (Some(KIND), "status", Some(old)) = (write.kind_in(GROUP), write.subresource, write.old) else {
        return Ok(());
    };
    let (new, old) = (&write.object["status"], &old["status"]);
    let mut wrong = Vec::new();
    let is_changed = |member: &str| new[member] != old[member];
    if (is_changed("allocation") || is_changed("reservedFor"))
        && !may(policy, user, write.verb, "binding", "", "")
    {
        let detail = format!(
            "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
             verb={:?} permission",
            write.verb
        );
        wrong.push(FieldError::new(FieldErrorKind::Forbidden, "status.allocation", None, detail));
    }
    // The devices of an unallocated claim are dropped.
    if !new["allocation"].is_null() {
        let verbs = driver_verbs(user, write.verb, &new["allocation"]);
        let namespace = write.metadata("namespace");
        for driver in changed_drivers(new, old) {
            if !verbs.iter().any(|verb| may(policy, user, verb, "driver", namespace, driver)) {
                let detail = format!(
                    "changing status.devices requires resource=\"resourceclaims/driver\", verb={verbs:?} \
                     permission for the driver {driver:?}"
                );
                wrong.push(FieldError::new(FieldErrorKind::Forbidden, "status.devices", None, detail));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(errors::invalid_as(KIND, GROUP, write.metadata("name"), &wrong))
}

fn may(policy: &RbacPolicy, user: &User, verb: &str, part: &str, namespace: &str, name: &str) -> bool {
    let attributes = ResourceAttributes {
        verb: verb.into(),
        group: GROUP.into(),
        resource: "resourceclaims".into(),
        subresource: part.into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    policy.decide(user, &Attributes::Resource(attributes)).is_allowed
}

/// Returns the verbs of which the user needs one. A service account on the node of the allocation may use one more verb.
fn driver_verbs(user: &User, verb: &str, allocation: &Value) -> Vec<String> {
    let on_any_node = format!("arbitrary-node:{verb}");
    let is_associated = AccountName::parse(&user.name).is_some()
        && allocated_node(allocation)
            .is_some_and(|node| user.extra.get(NODE_NAME).is_some_and(|names| *names == [node]));
    if is_associated { vec![format!("associated-node:{verb}"), on_any_node] } else { vec![on_any_node] }
}

/// Returns the node that an allocation is limited to, if the allocation names a single node.
fn allocated_node(allocation: &Value) -> Option<&str> {
    let only = |list: &'_ Value| -> bool { list.as_array().is_some_and(|items| items.len() == 1) };
    let terms = &allocation["nodeSelector"]["nodeSelectorTerms"];
    let term = &terms[0];
    let has_expressions = term["matchExpressions"].as_array().is_some_and(|items| !items.is_empty());
    let field = &term["matchFields"][0];
    let is_one_node = only(terms)
        && !has_expressions
        && only(&term["matchFields"])
        && field["key"] == "metadata.name"
        && field["operator"] == "In"
        && only(&field["values"]);
    field["values"][0].as_str().filter(|node| is_one_node && !node.is_empty())
}

/// Returns the drivers whose devices differ between two statuses.
fn changed_drivers<'a>(new: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    fn devices(status: &Value) -> Vec<(String, &Value)> {
        let devices = status["devices"].as_array().into_iter().flatten();
        devices.map(|device| (device.to_string(), device)).collect()
    }
    let texts =
        |devices: &[(String, &Value)]| devices.iter().map(|(text, _)| text.clone()).collect::<BTreeSet<_>>();
    let (new, old) = (devices(new), devices(old));
    let (new_texts, old_texts) = (texts(&new), texts(&old));
    let added = new.iter().filter(|(text, _)| !old_texts.contains(text));
    let removed = old.iter().filter(|(text, _)| !new_texts.contains(text));
    added.chain(removed).map(|(_, device)| device["driver"].as_str().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::rbac::RbacObjects;
    use serde_json::json;

    fn policy(verb: &str, part: &str) -> RbacPolicy {
        RbacPolicy::new(RbacObjects {
            cluster_roles: &[json!({"metadata": {"name": "r"}, "rules": [
                {"verbs": [verb], "apiGroups": [GROUP], "resources": [format!("resourceclaims/{part}")]}]})],
            cluster_role_bindings: &[
                json!({"metadata": {"name": "r"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "User", "name": "ann"}, {"kind": "ServiceAccount", "namespace": "n", "name": "plugin"}]}),
            ],
            ..RbacObjects::default()
        })
    }

    fn claim(status: &Value) -> Value {
        json!({"kind": KIND, "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c", "namespace": "n"}, "status": status})
    }

    #[test]
    fn allocations_need_binding_and_devices_need_their_driver() {
        let ann = User { name: "ann".into(), ..User::default() };
        let field = json!({"key": "metadata.name", "operator": "In", "values": ["worker"]});
        let allocation = json!({"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}});
        let plugin = |node: &str| User {
            name: "system:serviceaccount:n:plugin".into(),
            extra: [(NODE_NAME.to_owned(), vec![node.to_owned()])].into(),
            ..User::default()
        };
        let bare = claim(&json!({}));
        let allocated = claim(&json!({"allocation": allocation}));
        let device = json!({"driver": "acme.io", "pool": "p", "device": "d"});
        let reported = claim(&json!({"allocation": allocation, "devices": [device]}));
        let cases = [
            (&ann, "update", "status", &bare, &allocated, Some("status.allocation")),
            (&ann, "update", "binding", &bare, &allocated, None),
            (&ann, "update", "binding", &allocated, &reported, Some("status.devices")),
            (&ann, "arbitrary-node:update", "driver", &allocated, &reported, None),
            (&ann, "arbitrary-node:update", "driver", &reported, &allocated, None),
            (&ann, "associated-node:update", "driver", &allocated, &reported, Some("status.devices")),
            (&plugin("worker"), "associated-node:update", "driver", &allocated, &reported, None),
            (
                &plugin("other"),
                "associated-node:update",
                "driver",
                &allocated,
                &reported,
                Some("status.devices"),
            ),
            (&ann, "get", "binding", &reported, &reported, None),
        ];
        for (user, verb, part, old, object, expected) in cases {
            let write = ContentWrite { verb: "update", subresource: "status", object, old: Some(old) };
            let checked = check(&policy(verb, part), user, &write);
            let field = checked.err().and_then(|error| {
                assert_eq!(error.code, 422);
                error.details.and_then(|details| details.causes.first().and_then(|cause| cause.field.clone()))
            });
            assert_eq!(field.as_deref(), expected, "{} with {verb} on {part}", user.name);
        }
    }
}
