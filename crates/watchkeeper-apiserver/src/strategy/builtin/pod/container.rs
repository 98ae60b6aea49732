//! What is wrong with the containers of a pod.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    field::FieldErrorKind,
    strategy::{
        at::{At, Errors},
        names,
        quantity::Quantity,
    },
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const ENV_SOURCES: [&str; 5] =
    ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// All containers of a spec. `volumes` are the names of its volumes.
pub(super) fn containers(spec: &At<'_>, volumes: &BTreeSet<String>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let containers = spec.at("containers");
    if containers.required(errors) {
        for container in containers.items() {
            common(&container, volumes, &mut seen, errors);
            running(&container, errors);
        }
        host_ports(&containers, errors);
    }
    for container in spec.at("initContainers").items() {
        common(&container, volumes, &mut seen, errors);
        let is_sidecar = container.at("restartPolicy").text() == "Always";
        if is_sidecar {
            running(&container, errors);
            continue;
        }
        for member in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let member = container.at(member);
            if member.is_set() {
                errors.push(
                    member.forbidden("may not be set for init containers without restartPolicy=Always"),
                );
            }
        }
    }
    for container in spec.at("ephemeralContainers").items() {
        common(&container, volumes, &mut seen, errors);
        for member in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
            let member = container.at(member);
            if !member.is_empty() {
                errors.push(member.forbidden("cannot be set for an Ephemeral Container"));
            }
        }
    }
}

fn common(container: &At<'_>, volumes: &BTreeSet<String>, seen: &mut BTreeSet<String>, errors: &mut Errors) {
    let name = container.at("name");
    name.required_format(names::dns_label, errors);
    if !seen.insert(name.text().to_owned()) {
        errors.push(name.duplicate());
    }
    container.at("image").required(errors);
    container.at("terminationMessagePolicy").required_one_of(&["File", "FallbackToLogsOnError"], errors);
    container.at("imagePullPolicy").required_one_of(&["Always", "IfNotPresent", "Never"], errors);
    ports(&container.at("ports"), errors);
    env(&container.at("env"), errors);
    env_from(&container.at("envFrom"), errors);
    mounts(container, volumes, errors);
    resources(&container.at("resources"), errors);
    security(&container.at("securityContext"), errors);
}

fn ports(ports: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.at("name");
        if !name.is_empty() {
            let wrong = names::port_name(name.text());
            if wrong.is_empty() && !seen.insert(name.text().to_owned()) {
                errors.push(name.duplicate());
            }
            errors.extend(wrong.into_iter().map(|detail| name.invalid(detail)));
        }
        let number = port.at("containerPort");
        match number.int() {
            None | Some(0) => errors.push(number.missing("")),
            Some(_) => number.between(1, 65535, errors),
        }
        if port.at("hostPort").int() != Some(0) {
            port.at("hostPort").between(1, 65535, errors);
        }
        port.at("protocol").required_one_of(&PROTOCOLS, errors);
    }
}

/// Two containers cannot have the same port of the host.
fn host_ports(containers: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for container in containers.items() {
        for port in container.at("ports").items() {
            let host = port.at("hostPort");
            let Some(number) = host.int().filter(|number| *number != 0) else { continue };
            let key = format!("{}/{}/{number}", port.at("protocol").text(), port.at("hostIP").text());
            if !seen.insert(key.clone()) {
                let mut error = host.duplicate();
                error.bad_value = Some(key.into());
                errors.push(error);
            }
        }
    }
}

fn env(env: &At<'_>, errors: &mut Errors) {
    for variable in env.items() {
        variable.at("name").required_format(names::env_name, errors);
        let from = variable.at("valueFrom");
        if !from.is_set() {
            continue;
        }
        let count = ENV_SOURCES.iter().filter(|source| from.at(source).is_set()).count();
        let wrong = if count == 0 {
            Some(
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            )
        } else if !variable.at("value").is_empty() {
            Some("may not be specified when `value` is not empty")
        } else if count > 1 {
            Some("may not have more than one field specified at a time")
        } else {
            None
        };
        if let Some(detail) = wrong {
            let mut error = from.invalid(detail);
            error.bad_value = Some("".into());
            errors.push(error);
        }
        for source in ["configMapKeyRef", "secretKeyRef"] {
            let source = from.at(source);
            if source.is_set() {
                source.at("name").required(errors);
                source.at("key").required_format(names::config_key, errors);
            }
        }
        let field = from.at("fieldRef");
        if field.is_set() {
            field.at("apiVersion").required(errors);
            field_path(&field.at("fieldPath"), errors);
        }
        if from.at("resourceFieldRef").is_set() {
            from.at("resourceFieldRef").at("resource").required(errors);
        }
    }
}

fn field_path(path: &At<'_>, errors: &mut Errors) {
    const PATHS: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    if !path.required(errors) {
        return;
    }
    let subscript = ["metadata.labels['", "metadata.annotations['"];
    if !subscript.iter().any(|prefix| path.text().starts_with(prefix)) {
        path.one_of(&PATHS, errors);
    }
}

fn env_from(sources: &At<'_>, errors: &mut Errors) {
    for source in sources.items() {
        source.at("prefix").format(names::env_name, errors);
        let given = ["configMapRef", "secretRef"].into_iter().filter(|name| source.at(name).is_set());
        for name in given.clone() {
            source.at(name).at("name").required(errors);
        }
        match given.count() {
            0 => errors.push(source.invalid("must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(source.invalid("may not have more than one field specified at a time")),
        }
    }
}

fn mounts(container: &At<'_>, volumes: &BTreeSet<String>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for mount in container.at("volumeMounts").items() {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        name.required(errors);
        if !volumes.contains(name.text()) {
            errors.push(name.error(FieldErrorKind::NotFound, ""));
        }
        path.required(errors);
        if !seen.insert(path.text().to_owned()) {
            errors.push(path.invalid("must be unique"));
        }
        let sub = mount.at("subPath");
        if sub.text().starts_with('/') {
            errors.push(sub.invalid("must be a relative path"));
        }
        if sub.text().split('/').any(|part| part == "..") {
            errors.push(sub.invalid("must not contain '..'"));
        }
    }
    for device in container.at("volumeDevices").items() {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        name.required(errors);
        if !volumes.contains(name.text()) {
            errors.push(name.error(FieldErrorKind::NotFound, ""));
        }
        path.required(errors);
    }
}

/// Requests and limits of a container or of storage.
fn resources(resources: &At<'_>, errors: &mut Errors) {
    let limits = resources.at("limits");
    for list in [&limits, &resources.at("requests")] {
        for (name, amount) in list.entries() {
            resource_name(name, &amount, errors);
            self::amount(&amount, errors);
        }
    }
    let requests = resources.at("requests");
    for (name, amount) in requests.entries() {
        let limit = limits.key(name);
        let (Some(request), Some(most)) =
            (Quantity::from_value(amount.value), Quantity::from_value(limit.value))
        else {
            continue;
        };
        let relation = if can_overcommit(name) { "less than or equal to" } else { "equal to" };
        let is_wrong = request > most || (!can_overcommit(name) && request != most);
        if is_wrong {
            let mut error =
                requests.invalid(format!("must be {relation} {name} limit of {}", most.canonical()));
            error.bad_value = Some(request.canonical().into());
            errors.push(error);
        }
    }
    for (name, _) in requests.entries() {
        if !can_overcommit(name) && !limits.key(name).is_set() {
            errors.push(limits.missing("Limit must be set for non overcommitable resources"));
        }
    }
}

fn can_overcommit(name: &str) -> bool {
    !name.contains('/') && !name.starts_with("hugepages-")
}

fn resource_name(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let mut push = |detail: String| {
        let mut error = amount.invalid(detail);
        error.bad_value = Some(name.into());
        errors.push(error);
    };
    let wrong = names::qualified(name);
    if !wrong.is_empty() {
        wrong.into_iter().for_each(push);
        return;
    }
    let is_standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !is_standard && !name.contains('/') {
        push("must be a standard resource for containers".to_owned());
        push("must be a standard resource type or fully qualified".to_owned());
    }
}

/// An amount that is not negative.
fn amount(amount: &At<'_>, errors: &mut Errors) {
    if Quantity::from_value(amount.value).is_some_and(Quantity::is_negative) {
        errors.push(amount.invalid("must be greater than or equal to 0"));
    }
}

/// What only a container that keeps running can have.
fn running(container: &At<'_>, errors: &mut Errors) {
    for name in PROBES {
        let probe = container.at(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, errors);
        for number in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            probe.at(number).at_least(0, errors);
        }
        let grace = probe.at("terminationGracePeriodSeconds");
        if grace.is_set() && name == "readinessProbe" {
            errors.push(grace.invalid("must not be set for readinessProbes"));
        } else if grace.int().is_some_and(|seconds| seconds <= 0) {
            errors.push(grace.invalid("must be greater than 0"));
        }
        let threshold = probe.at("successThreshold");
        if name != "readinessProbe" && threshold.int().is_some_and(|count| count != 1) {
            errors.push(threshold.invalid("must be 1"));
        }
    }
    let lifecycle = container.at("lifecycle");
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.at(hook);
        if hook.is_set() {
            handler(&hook, errors);
        }
    }
}

fn handler(of: &At<'_>, errors: &mut Errors) {
    let mut given = HANDLERS.iter().filter(|name| of.at(name).is_set());
    let Some(first) = given.next() else {
        errors.push(of.missing("must specify a handler type"));
        return;
    };
    for second in given {
        errors.push(of.at(second).forbidden("may not specify more than 1 handler type"));
    }
    let handler = of.at(first);
    match *first {
        "exec" => {
            handler.at("command").required(errors);
        }
        "httpGet" => {
            handler.at("path").required(errors);
            port(&handler.at("port"), errors);
            handler.at("scheme").one_of(&["HTTP", "HTTPS"], errors);
        }
        "tcpSocket" => port(&handler.at("port"), errors),
        "grpc" => handler.at("port").between(1, 65535, errors),
        _ => {}
    }
}

/// A port by number or by name.
pub(in super::super) fn port(port: &At<'_>, errors: &mut Errors) {
    if port.value.is_string() {
        errors.extend(names::port_name(port.text()).into_iter().map(|detail| port.invalid(detail)));
    } else if port.int().is_none_or(|number| !(1..=65535).contains(&number)) {
        errors.push(port.invalid("must be between 1 and 65535, inclusive"));
    }
}

fn security(context: &At<'_>, errors: &mut Errors) {
    for user in ["runAsUser", "runAsGroup"] {
        context.at(user).between(0, i64::from(i32::MAX), errors);
    }
    let escalation = context.at("allowPrivilegeEscalation");
    if escalation.value.as_bool() == Some(false) && context.at("privileged").is_true() {
        errors.push(
            escalation.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"),
        );
    }
    let kinds: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("seccompProfile", &["Localhost", "RuntimeDefault", "Unconfined"][..]),
        ("appArmorProfile", &["Localhost", "RuntimeDefault", "Unconfined"][..]),
    ]);
    for (name, allowed) in kinds {
        let profile = context.at(name);
        if profile.is_set() {
            profile.at("type").required_one_of(allowed, errors);
        }
    }
}
