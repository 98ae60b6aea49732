//! Names of resources in quotas, limit ranges and containers.

use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
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
pub(super) fn is_standard_quota(name: &str) -> bool {
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

/// Returns whether a device plugin or a cluster administrator defines the resource.
pub(super) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified(&format!("requests.{name}")).is_empty()
}

/// Returns whether limits may exceed requests of the resource.
pub(super) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Returns whether amounts of the resource must be integers.
pub(super) fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

fn invalid(at: &Cursor<'_>, name: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, at.path(), Some(name.into()), detail)
}

/// Checks a resource name. `at` is the location of its amount.
pub(super) fn check(name: &str, at: &Cursor<'_>, errors: &mut Errors) {
    let wrong = names::qualified(name);
    if !wrong.is_empty() {
        errors.extend(wrong.into_iter().map(|detail| invalid(at, name, detail)));
    } else if !name.contains('/') && !is_standard(name) {
        errors.push(invalid(at, name, "must be a standard resource type or fully qualified"));
    }
}

/// Checks a resource name for containers.
pub(super) fn check_of_container(name: &str, at: &Cursor<'_>, errors: &mut Errors) {
    check(name, at, errors);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge_pages(name) {
            errors.push(invalid(at, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(invalid(at, name, "doesn't follow extended resource name standard"));
    }
}

/// Checks a resource name for quotas.
pub(super) fn check_of_quota(name: &str, at: &Cursor<'_>, errors: &mut Errors) {
    check(name, at, errors);
    if !name.contains('/') && !is_standard_quota(name) {
        errors.push(invalid(at, name, "must be a standard resource for quota"));
    }
}

/// Checks an amount of the resource `name`: not negative, and an integer for countable resources.
pub(super) fn check_amount(name: &str, amount: &Cursor<'_>, errors: &mut Errors) {
    let Some(quantity) = Quantity::from_value(amount.value) else { return };
    if quantity.is_negative() {
        errors.push(amount.invalid("must be greater than or equal to 0"));
    }
    if is_whole(name) && !quantity.rounded_up_to_milli().is_whole() {
        errors.push(amount.invalid("must be an integer"));
    }
}
