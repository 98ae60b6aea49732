//! Names of resources that quotas, limit ranges and containers count.

use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        at::{At, Errors},
        names,
        quantity::Quantity,
    },
};

const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const REQUESTS_AND_LIMITS: [&str; 7] = [
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_quota_huge_pages(name: &str) -> bool {
    is_huge_pages(name) || name.starts_with("requests.hugepages-")
}

/// Returns whether a quota can count the resource `name`, which has no domain.
fn is_standard_quota(name: &str) -> bool {
    CONTAINER.contains(&name)
        || REQUESTS_AND_LIMITS.contains(&name)
        || COUNTED.contains(&name)
        || is_quota_huge_pages(name)
}

fn is_standard(name: &str) -> bool {
    name == "storage" || is_standard_quota(name)
}

/// Returns whether the resource belongs to Kubernetes.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether the resource is one that a device plugin or a cluster administrator defines.
pub(super) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified(&format!("requests.{name}")).is_empty()
}

/// Returns whether limits may exceed requests of the resource.
pub(super) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Returns whether only whole numbers of the resource exist.
pub(super) fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

fn invalid(at: &At<'_>, name: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, at.path(), Some(name.into()), detail)
}

/// Checks the name of a resource; `at` is where its amount is.
pub(super) fn check(name: &str, at: &At<'_>, errors: &mut Errors) {
    let wrong = names::qualified(name);
    if !wrong.is_empty() {
        errors.extend(wrong.into_iter().map(|detail| invalid(at, name, detail)));
    } else if !name.contains('/') && !is_standard(name) {
        errors.push(invalid(at, name, "must be a standard resource type or fully qualified"));
    }
}

/// Checks the name of a resource that containers can use.
pub(super) fn check_of_container(name: &str, at: &At<'_>, errors: &mut Errors) {
    check(name, at, errors);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge_pages(name) {
            errors.push(invalid(at, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(invalid(at, name, "doesn't follow extended resource name standard"));
    }
}

/// Checks an amount of the resource `name`: not negative, and whole where the resource is counted.
pub(super) fn check_amount(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let Some(quantity) = Quantity::from_value(amount.value) else { return };
    if quantity.is_negative() {
        errors.push(amount.invalid("must be greater than or equal to 0"));
    }
    if is_whole(name) && !quantity.rounded_up_to_milli().is_whole() {
        errors.push(amount.invalid("must be an integer"));
    }
}
