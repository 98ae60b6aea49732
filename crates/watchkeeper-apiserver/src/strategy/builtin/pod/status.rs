//! Rules of the status of a pod.

use super::annotations;
use crate::strategy::{
    cursor::{Cursor, Errors},
    names,
    table::{
        self,
        Rule::{Between, CheckChange, Immutable, UniqueBy},
        RuleTable,
    },
};

const MAX_ID: i64 = i32::MAX as i64;

const USER: RuleTable = &[
    ("uid", &[Between(0, u32::MAX as i64)]),
    ("gid", &[Between(0, MAX_ID)]),
    ("supplementalGroups[]", &[Between(0, MAX_ID)]),
];

const STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Checks a write of the status of a pod.
pub(super) fn validate(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, old_metadata) = (object.at("metadata"), old.at("metadata"));
    let all = metadata.at("annotations");
    annotations::check_change(&all, &old_metadata.at("annotations"), errors);
    annotations::check(&all, &object.at("spec"), errors);
    let (status, old_status, old_spec) = (object.at("status"), old.at("status"), old.at("spec"));
    conditions(&status.at("conditions"), errors);
    let was_bound = !old_spec.at("nodeName").is_empty();
    let (node, old_node) = (status.at("nominatedNodeName"), old_status.at("nominatedNodeName"));
    let generation = status.at("observedGeneration");
    table::check_change(&[("", &[CheckChange(nominated_node)])], &status, &old_status, errors);
    if was_bound && !node.is_empty() && node.value != old_node.value {
        errors.push(node.forbidden("may not be set on pods that are already bound to a node"));
    }
    if generation.int().is_some_and(|number| number < 0) {
        errors.push(generation.invalid("must be a non-negative integer"));
    }
    table::check_change(&[("qosClass", &[Immutable])], &status, &old_status, errors);
    for list in STATUSES {
        transitions(&status.at(list), &old_status.at(list), &old_spec, list, errors);
    }
    claim_statuses(object, errors);
    ips(&status, "podIP", "podIPs", errors);
    ips(&status, "hostIP", "hostIPs", errors);
    users(object, errors);
}

fn nominated_node(status: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (node, before) = (status.at("nominatedNodeName"), old.at("nominatedNodeName"));
    if node.value != before.value {
        node.format(names::dns_subdomain, errors);
    }
}

/// Checks conditions. Upstream writes the type of a condition with a capital letter in paths.
fn conditions(conditions: &Cursor<'_>, errors: &mut Errors) {
    for condition in conditions.items() {
        let (kind, generation) = (condition.at("type"), condition.at("observedGeneration"));
        if generation.int().is_some_and(|number| number < 0) {
            errors.push(generation.invalid("must be a non-negative integer"));
        }
        if !matches!(kind.text(), "PodScheduled" | "Ready" | "Initialized") {
            let reported = condition.named("Type", kind.value);
            errors.extend(names::qualified(kind.text()).into_iter().map(|detail| reported.invalid(detail)));
        }
    }
}

/// Checks that a terminated container stays terminated, unless its restart policy and rules restart it.
fn transitions(new: &Cursor<'_>, old: &Cursor<'_>, spec: &Cursor<'_>, list: &str, errors: &mut Errors) {
    let containers = match list {
        "containerStatuses" => "containers",
        "initContainerStatuses" => "initContainers",
        _ => "",
    };
    let restarts_all = !containers.is_empty()
        && ["containers", "initContainers"].iter().any(|list| {
            spec.at(list).items().any(|container| {
                let rules = container.at("restartPolicyRules");
                rules.items().any(|rule| rule.at("action").text() == "RestartAllContainers")
            })
        });
    if restarts_all {
        return;
    }
    for (index, before) in old.items().enumerate() {
        let state = before.at("state");
        let ended = state.at("terminated");
        let name = before.at("name").text();
        if !ended.is_set() {
            continue;
        }
        let code = ended.at("exitCode").int().unwrap_or(0);
        let can_restart = spec
            .at(containers)
            .items()
            .any(|container| container.at("name").text() == name && should_restart(&container, spec, code));
        let revives = new
            .items()
            .find(|status| status.at("name").text() == name)
            .is_some_and(|status| !status.at("state").at("terminated").is_set());
        if revives && !can_restart {
            let mut error = new.forbidden("may not be transitioned to non-terminated state");
            error.path = format!("{}[{index}].state", new.path());
            errors.push(error);
        }
    }
}

fn should_restart(container: &Cursor<'_>, spec: &Cursor<'_>, code: i64) -> bool {
    let own = container.at("restartPolicy");
    for rule in container.at("restartPolicyRules").items() {
        let codes = rule.at("exitCodes");
        let is_listed = codes.at("values").items().any(|value| value.int() == Some(code));
        let is_met = match codes.at("operator").text() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        if is_met && rule.at("action").text() == "Restart" {
            return true;
        }
    }
    let of_pod = spec.at("restartPolicy");
    let policy = if own.is_set() { own.text() } else { of_pod.text() };
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn claim_statuses(object: &Cursor<'_>, errors: &mut Errors) {
    let (spec, status) = (object.at("spec"), object.at("status"));
    let claims = spec.at("resourceClaims");
    table::check(&[("resourceClaimStatuses", &[UniqueBy("name")])], &status, errors);
    for claim in status.at("resourceClaimStatuses").items() {
        let name = claim.at("name");
        if !claims.items().any(|known| known.at("name").text() == name.text()) {
            errors.push(name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
        let generated_name = claim.at("resourceClaimName");
        if generated_name.is_set() {
            errors.extend(
                names::dns_subdomain(generated_name.text())
                    .into_iter()
                    .map(|detail| generated_name.invalid(detail)),
            );
        }
    }
}

/// Checks the addresses of a pod or its host: one, or one of each family. The first equals the single one.
fn ips(status: &Cursor<'_>, single: &str, list: &str, errors: &mut Errors) {
    let (ip, ips) = (status.at(single), status.at(list));
    let count = ips.items().count();
    let first_differs = |errors: &mut Errors| {
        if let Some(first) = ips.items().next().filter(|first| first.at("ip").text() != ip.text()) {
            errors.push(first.at("ip").invalid(format!("must be equal to `{single}`")));
        }
    };
    if single == "hostIP" {
        if count == 0 {
            return;
        }
        first_differs(errors);
    }
    for item in ips.items() {
        let address = item.at("ip").text();
        for detail in names::ip(address) {
            let mut error = item.invalid(detail);
            error.bad_value = Some(address.into());
            errors.push(error);
        }
    }
    let is_v6 = |item: &Cursor<'_>| item.at("ip").text().contains(':');
    let both = ips.items().any(|item| is_v6(&item)) && ips.items().any(|item| !is_v6(&item));
    if count > 1 && (!both || count > 2) {
        errors.push(ips.invalid("may specify no more than one IP for each IP family"));
    }
    if single == "podIP" {
        if ip.is_empty() == (count > 0) {
            errors.push(ips.invalid("podIP and podIPs must either both be set or both be unset"));
        } else {
            first_differs(errors);
        }
    }
}

fn users(object: &Cursor<'_>, errors: &mut Errors) {
    let (spec, status) = (object.at("spec"), object.at("status"));
    let is_windows = spec.at("os").at("name").text() == "windows";
    for list in STATUSES {
        for container in status.at(list).items() {
            let user = container.at("user");
            let linux = user.at("linux");
            if !linux.is_set() {
                continue;
            }
            if is_windows {
                errors.push(linux.forbidden("cannot be set for a windows pod"));
            } else {
                table::check(USER, &linux, errors);
            }
        }
    }
}
