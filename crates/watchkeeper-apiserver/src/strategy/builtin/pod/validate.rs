//! What is wrong with a pod, or with a template of pods.

use std::collections::BTreeSet;

use super::{container, volume};
use crate::strategy::{
    at::{At, Errors},
    metadata, names,
};

const MAX_SECONDS: i64 = i32::MAX as i64;
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// A pod, on create and on update.
pub(super) fn pod(object: &At<'_>, errors: &mut Errors) {
    pod_spec(&object.at("spec"), errors);
}

/// What may not be there when a pod is made.
pub(super) fn pod_create(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    let node = spec.at("nodeName");
    if !node.is_empty() && !spec.at("schedulingGates").is_empty() {
        errors.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
}

/// A template of pods: metadata of its own, and a spec.
pub(in super::super) fn template(template: &At<'_>, errors: &mut Errors) {
    let own = template.at("metadata");
    metadata::labels(&own.at("labels"), errors);
    let spec = template.at("spec");
    pod_spec(&spec, errors);
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// The spec of a pod, wherever it is.
fn pod_spec(spec: &At<'_>, errors: &mut Errors) {
    let volumes = volume::volumes(&spec.at("volumes"), errors);
    container::containers(spec, &volumes, errors);
    spec.at("restartPolicy").required_one_of(&["Always", "OnFailure", "Never"], errors);
    spec.at("dnsPolicy")
        .required_one_of(&["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"], errors);
    metadata::labels(&spec.at("nodeSelector"), errors);
    spec.at("serviceAccountName").format(names::dns_subdomain, errors);
    spec.at("nodeName").format(names::dns_subdomain, errors);
    spec.at("hostname").format(names::dns_label, errors);
    spec.at("subdomain").format(names::dns_label, errors);
    spec.at("priorityClassName").format(names::dns_subdomain, errors);
    spec.at("runtimeClassName").format(names::dns_subdomain, errors);
    spec.at("activeDeadlineSeconds").between(1, MAX_SECONDS, errors);
    spec.at("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
    for alias in spec.at("hostAliases").items() {
        alias.at("ip").required_format(names::ip, errors);
        for name in alias.at("hostnames").items() {
            name.format(names::dns_subdomain, errors);
        }
    }
    for toleration in spec.at("tolerations").items() {
        self::toleration(&toleration, errors);
    }
    unique_names(&spec.at("schedulingGates"), "name", names::qualified, errors);
    for gate in spec.at("readinessGates").items() {
        gate.at("conditionType").format(names::qualified, errors);
    }
    for constraint in spec.at("topologySpreadConstraints").items() {
        spread(&constraint, errors);
    }
    affinity(&spec.at("affinity"), errors);
    dns_config(spec, errors);
    security(spec, errors);
}

fn unique_names(list: &At<'_>, member: &str, format: names::Format, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let name = item.at(member);
        name.required_format(format, errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

fn toleration(toleration: &At<'_>, errors: &mut Errors) {
    let (key, operator) = (toleration.at("key"), toleration.at("operator"));
    let (value, effect) = (toleration.at("value"), toleration.at("effect"));
    key.format(names::qualified, errors);
    if key.is_empty() && operator.text() != "Exists" {
        errors.push(operator.invalid(
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        ));
    }
    if toleration.at("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        errors.push(effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    match operator.text() {
        "" | "Equal" => value.format(names::label_value, errors),
        "Exists" if !value.is_empty() => {
            errors.push(operator.invalid("value must be empty when `operator` is 'Exists'"));
        }
        _ => operator.one_of(&["Equal", "Exists", "Lt", "Gt"], errors),
    }
    effect.one_of(&EFFECTS, errors);
}

fn spread(constraint: &At<'_>, errors: &mut Errors) {
    let skew = constraint.at("maxSkew");
    if skew.int().is_none_or(|skew| skew <= 0) {
        errors.push(skew.invalid("must be greater than zero"));
    }
    let key = constraint.at("topologyKey");
    if key.is_empty() {
        errors.push(key.missing("can not be empty"));
    }
    constraint.at("whenUnsatisfiable").required_one_of(&["DoNotSchedule", "ScheduleAnyway"], errors);
    metadata::label_selector(&constraint.at("labelSelector"), errors);
}

fn affinity(affinity: &At<'_>, errors: &mut Errors) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let kind = affinity.at(kind);
        for term in kind.at("requiredDuringSchedulingIgnoredDuringExecution").items() {
            affinity_term(&term, errors);
        }
        for weighted in kind.at("preferredDuringSchedulingIgnoredDuringExecution").items() {
            weight(&weighted, errors);
            affinity_term(&weighted.at("podAffinityTerm"), errors);
        }
    }
    let nodes = affinity.at("nodeAffinity");
    let required = nodes.at("requiredDuringSchedulingIgnoredDuringExecution");
    if required.is_set() {
        let terms = required.at("nodeSelectorTerms");
        if terms.is_empty() {
            errors.push(terms.missing("must have at least one node selector term"));
        }
        for term in terms.items() {
            node_term(&term, errors);
        }
    }
    for weighted in nodes.at("preferredDuringSchedulingIgnoredDuringExecution").items() {
        weight(&weighted, errors);
        node_term(&weighted.at("preference"), errors);
    }
}

fn weight(weighted: &At<'_>, errors: &mut Errors) {
    let weight = weighted.at("weight");
    if weight.int().is_none_or(|weight| !(1..=100).contains(&weight)) {
        errors.push(weight.invalid("must be in the range 1-100"));
    }
}

fn affinity_term(term: &At<'_>, errors: &mut Errors) {
    metadata::label_selector(&term.at("labelSelector"), errors);
    metadata::label_selector(&term.at("namespaceSelector"), errors);
    let key = term.at("topologyKey");
    if key.is_empty() {
        errors.push(key.missing("can not be empty"));
    } else {
        key.format(names::qualified, errors);
    }
}

fn node_term(term: &At<'_>, errors: &mut Errors) {
    for requirement in term.at("matchExpressions").items() {
        let (operator, values) = (requirement.at("operator"), requirement.at("values"));
        let count = values.items().count();
        match operator.text() {
            "In" | "NotIn" if count == 0 => {
                errors.push(values.missing("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if count > 0 => errors
                .push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")),
            "Gt" | "Lt" if count != 1 => {
                errors.push(values.missing("must be specified single value when `operator` is 'Lt' or 'Gt'"));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
        let key = requirement.at("key");
        errors.extend(names::qualified(key.text()).into_iter().map(|detail| key.invalid(detail)));
    }
}

fn dns_config(spec: &At<'_>, errors: &mut Errors) {
    let config = spec.at("dnsConfig");
    let servers = config.at("nameservers");
    if spec.at("dnsPolicy").text() == "None" && servers.is_empty() {
        errors.push(servers.missing("must provide at least one DNS nameserver when `dnsPolicy` is None"));
    }
    if servers.items().count() > 3 {
        errors.push(servers.invalid("must not have more than 3 nameservers"));
    }
    for server in servers.items() {
        server.format(names::ip, errors);
    }
    for option in config.at("options").items() {
        let name = option.at("name");
        if name.is_empty() {
            errors.push(name.missing("must not be empty"));
        }
    }
}

fn security(spec: &At<'_>, errors: &mut Errors) {
    let context = spec.at("securityContext");
    for user in ["runAsUser", "runAsGroup", "fsGroup"] {
        context.at(user).between(0, MAX_SECONDS, errors);
    }
    for group in context.at("supplementalGroups").items() {
        group.between(0, MAX_SECONDS, errors);
    }
    context.at("fsGroupChangePolicy").one_of(&["Always", "OnRootMismatch"], errors);
    for profile in ["seccompProfile", "appArmorProfile"] {
        let profile = context.at(profile);
        if profile.is_set() {
            profile.at("type").required_one_of(&["Localhost", "RuntimeDefault", "Unconfined"], errors);
        }
    }
    if spec.at("shareProcessNamespace").is_true() && spec.at("hostPID").is_true() {
        let share = spec.at("shareProcessNamespace");
        errors.push(share.invalid("ShareProcessNamespace and HostPID cannot both be enabled"));
    }
}
