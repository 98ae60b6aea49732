//! Requests and limits of containers and pods, and resource claims.

use std::collections::{BTreeMap, BTreeSet};

use super::super::resource_name;
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        names,
        quantity::Quantity,
        table::{
            self,
            Rule::{Check, FormatIfSet},
            RuleTable,
        },
    },
};

const POD_RESOURCES: &[&str] = &["cpu", "hugepages-", "memory"];

/// A check of a resource name, reported at the location of its amount.
type NameCheck = fn(&str, &Cursor<'_>, &mut Errors);

/// Checks the requests and limits of a container. `claims` are the names of the pod's claims.
pub(super) fn of_container(resources: &Cursor<'_>, claims: &BTreeSet<String>, errors: &mut Errors) {
    requirements(resources, resource_name::check_of_container, errors);
    claim_names(&resources.at("claims"), claims, errors);
}

/// Checks the overhead of a pod. Upstream checks it like limits of a container, at `overhead.limits`.
pub(super) fn overhead(spec: &Cursor<'_>, errors: &mut Errors) {
    let overhead = spec.at("overhead");
    let reported = overhead.named("limits", overhead.value);
    for (name, amount) in reported.entries() {
        resource_name::check_of_container(name, &amount, errors);
        resource_name::check_amount(name, &amount, errors);
        huge_pages(name, &amount, errors);
    }
    let has = |test: &dyn Fn(&str) -> bool| reported.entries().any(|(name, _)| test(name));
    if has(&|name| name.starts_with("hugepages-")) && !has(&|name| matches!(name, "cpu" | "memory")) {
        errors.push(overhead.forbidden("HugePages require cpu or memory"));
    }
}

/// Checks a resource name that is the value of a field.
pub(in super::super) fn resource_name_field(field: &Cursor<'_>, errors: &mut Errors) {
    resource_name::check_of_container(field.text(), field, errors);
}

/// Checks the requests and limits of a pod as a whole.
pub(super) fn of_pod(spec: &Cursor<'_>, errors: &mut Errors) {
    let resources = spec.at("resources");
    if !resources.is_set() {
        return;
    }
    if spec.at("os").at("name").text() == "windows" {
        errors.push(resources.forbidden("may not be set for a windows pod"));
        return;
    }
    if resources.at("claims").is_set() {
        errors.push(resources.at("claims").forbidden("claims may not be set for Resources at pod-level"));
    }
    requirements(&resources, pod_resource_name, errors);
    let requests = resources.at("requests");
    for (name, total) in total_requests(spec) {
        let of_pod = requests.key(&name);
        if Quantity::from_value(of_pod.value).is_some_and(|amount| total > amount) {
            errors.push(of_pod.invalid(format!(
                "must be greater than or equal to aggregate container requests of {}",
                total.canonical()
            )));
        }
    }
    let limits = resources.at("limits");
    let containers = spec.at("containers");
    for (index, container) in containers.items().enumerate() {
        let own = container.at("resources");
        for (name, limit) in own.at("limits").entries() {
            let amounts = (Quantity::from_value(limit.value), Quantity::from_value(limits.key(name).value));
            if let (Some(amount), Some(most)) = amounts
                && amount > most
            {
                errors.push(FieldError::new(
                    FieldErrorKind::Invalid,
                    format!("{}.containers[{index}][{name}].limits", resources.path()),
                    Some(amount.canonical().into()),
                    format!("must be less than or equal to pod limits of {}", most.canonical()),
                ));
            }
        }
    }
}

fn pod_resource_name(name: &str, amount: &Cursor<'_>, errors: &mut Errors) {
    let before = errors.len();
    resource_name::check(name, amount, errors);
    if errors.len() == before && !matches!(name, "cpu" | "memory") && !name.starts_with("hugepages-") {
        let mut error = amount.unsupported(POD_RESOURCES);
        error.bad_value = Some(name.into());
        errors.push(error);
    }
}

/// Returns the concurrent requests of the containers of a pod: the sum of the running ones, or the largest init container.
fn total_requests(spec: &Cursor<'_>) -> BTreeMap<String, Quantity> {
    let amounts = |container: &Cursor<'_>| -> Vec<(String, Quantity)> {
        let own = container.at("resources");
        own.at("requests")
            .entries()
            .filter_map(|(name, amount)| Some((name.to_owned(), Quantity::from_value(amount.value)?)))
            .collect()
    };
    let mut total: BTreeMap<String, Quantity> = BTreeMap::new();
    let add = |total: &mut BTreeMap<String, Quantity>, list: Vec<(String, Quantity)>| {
        for (name, amount) in list {
            total.entry(name).and_modify(|sum| *sum = sum.plus(amount)).or_insert(amount);
        }
    };
    for container in spec.at("containers").items() {
        add(&mut total, amounts(&container));
    }
    let mut sidecars = BTreeMap::new();
    let mut starting: BTreeMap<String, Quantity> = BTreeMap::new();
    for container in spec.at("initContainers").items() {
        let own = amounts(&container);
        if container.at("restartPolicy").text() == "Always" {
            add(&mut total, own.clone());
            add(&mut sidecars, own);
            continue;
        }
        let mut at_once = sidecars.clone();
        add(&mut at_once, own);
        for (name, amount) in at_once {
            let most = starting.entry(name).or_insert(amount);
            if amount > *most {
                *most = amount;
            }
        }
    }
    for (name, amount) in starting {
        let sum = total.entry(name).or_insert(amount);
        if amount > *sum {
            *sum = amount;
        }
    }
    total
}

fn huge_pages(name: &str, amount: &Cursor<'_>, errors: &mut Errors) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let (Some(page), Some(quantity)) = (Quantity::parse(size), Quantity::from_value(amount.value)) else {
        return;
    };
    if !page.is_zero() && !quantity.is_multiple_of(page) {
        let reported = quantity.canonical();
        let mut error = amount.invalid(format!("{reported} is not positive integer multiple of {size}"));
        error.bad_value = Some(reported.into());
        errors.push(error);
    }
}

fn requirements(resources: &Cursor<'_>, check_name: NameCheck, errors: &mut Errors) {
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    for (name, amount) in limits.entries() {
        check_name(name, &amount, errors);
        resource_name::check_amount(name, &amount, errors);
        huge_pages(name, &amount, errors);
    }
    for (name, amount) in requests.entries() {
        check_name(name, &amount, errors);
        resource_name::check_amount(name, &amount, errors);
        within_limit(name, &amount, &requests, &limits, errors);
        huge_pages(name, &amount, errors);
    }
    let has =
        |test: &dyn Fn(&str) -> bool| limits.entries().chain(requests.entries()).any(|(name, _)| test(name));
    if has(&|name| name.starts_with("hugepages-")) && !has(&|name| matches!(name, "cpu" | "memory")) {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
}

fn within_limit(
    name: &str,
    amount: &Cursor<'_>,
    requests: &Cursor<'_>,
    limits: &Cursor<'_>,
    errors: &mut Errors,
) {
    let limit = limits.key(name);
    let can_overcommit = resource_name::is_overcommit_allowed(name);
    if !limit.is_set() {
        if !can_overcommit {
            errors.push(limits.missing("Limit must be set for non overcommitable resources"));
        }
        return;
    }
    let (Some(request), Some(most)) = (Quantity::from_value(amount.value), Quantity::from_value(limit.value))
    else {
        return;
    };
    let relation = if !can_overcommit && request != most {
        "equal to"
    } else if request > most {
        "less than or equal to"
    } else {
        return;
    };
    let mut error = requests.invalid(format!("must be {relation} {name} limit of {}", most.canonical()));
    error.bad_value = Some(request.canonical().into());
    errors.push(error);
}

const CLAIM: RuleTable = &[
    ("", &[Check(one_claim_source)]),
    ("resourceClaimName", &[FormatIfSet(names::dns_subdomain)]),
    ("resourceClaimTemplateName", &[FormatIfSet(names::dns_subdomain)]),
];

/// Checks the claims of a pod. Returns their names.
pub(super) fn claims(claims: &Cursor<'_>, errors: &mut Errors) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.at("name");
        if name.required(errors) {
            if seen.insert(name.text().to_owned()) {
                name.format(names::dns_label, errors);
            } else {
                errors.push(name.duplicate());
            }
        }
        table::check(CLAIM, &claim, errors);
    }
    seen
}

fn one_claim_source(claim: &Cursor<'_>, errors: &mut Errors) {
    match (claim.at("resourceClaimName").is_set(), claim.at("resourceClaimTemplateName").is_set()) {
        (true, true) => {
            errors.push(claim.invalid(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ));
        }
        (false, false) => errors
            .push(claim.invalid("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")),
        _ => {}
    }
}

/// Checks the claims that a container uses: each one, or each request of one, at most once.
fn claim_names(list: &Cursor<'_>, known: &BTreeSet<String>, errors: &mut Errors) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for claim in list.items() {
        let (name, request) = (claim.at("name").text(), claim.at("request"));
        if name.is_empty() {
            errors.push(claim.missing(""));
            continue;
        }
        let duplicate = |key: &str| {
            let mut error = claim.duplicate();
            error.bad_value = Some(key.into());
            error
        };
        if seen.contains(name) {
            errors.push(duplicate(name));
        } else {
            request.format(names::dns_label, errors);
            let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{}", request.text()) };
            if seen.contains(&key) {
                errors.push(duplicate(&key));
            } else if request.is_empty() {
                let prefix = format!("{name}/");
                for _ in seen.iter().filter(|used| used.starts_with(&prefix)) {
                    errors.push(duplicate(name));
                }
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let mut error = claim.error(FieldErrorKind::NotFound, "");
            error.bad_value = Some(name.into());
            errors.push(error);
        }
    }
}
