//! Warnings about valid pods with probably unintended settings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::node_selector::deprecation;
use crate::strategy::{cursor::Cursor, names, quantity::Quantity};

const DEPRECATED_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const MATCHES_NOTHING: &str = "a null labelSelector results in matching no pod";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Returns the warnings about a new pod. Updates cause no warnings, because they change little.
pub(super) fn pod_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let root = Cursor::root(object);
    let mut warnings = Vec::new();
    let metadata = root.at("metadata");
    let wrong = names::dns_label(metadata.at("name").text());
    if !wrong.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
    spec_warnings(&root, &mut warnings);
    warnings
}

/// Returns the warnings about the pod template at `path`, if it is new or changed.
pub(in super::super) fn template_warnings(path: &[&str], object: &Value, old: Option<&Value>) -> Vec<String> {
    let pointer: String = path.iter().flat_map(|step| ["/", step]).collect();
    let template = object.pointer(&pointer);
    if old.is_some_and(|old| old.pointer(&pointer) == template) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    descend(&Cursor::root(object), path, &mut warnings);
    warnings
}

fn descend(at: &Cursor<'_>, path: &[&str], warnings: &mut Vec<String>) {
    match path.split_first() {
        Some((step, rest)) => descend(&at.at(step), rest, warnings),
        None => spec_warnings(at, warnings),
    }
}

/// Collects the warnings about `metadata` and `spec` of `of`.
fn spec_warnings(of: &Cursor<'_>, warnings: &mut Vec<String>) {
    let (metadata, spec) = (of.at("metadata"), of.at("spec"));
    let annotations = metadata.at("annotations");
    let mut warn = |at: &Cursor<'_>, text: &str| warnings.push(format!("{}: {text}", at.path()));
    for (name, value) in spec.at("nodeSelector").entries() {
        if let Some(text) = deprecation(name) {
            warn(&value, text);
        }
    }
    for constraint in spec.at("topologySpreadConstraints").items() {
        let key = constraint.at("topologyKey");
        if let Some(text) = deprecation(key.text()) {
            warn(&key, &format!("{} is {text}", key.text()));
        }
        if !constraint.at("labelSelector").is_set() {
            warn(&constraint.at("labelSelector"), MATCHES_NOTHING);
        }
    }
    for volume in spec.at("volumes").items() {
        for (name, text) in DEPRECATED_VOLUMES {
            if volume.at(name).is_set() {
                warn(&volume.at(name), text);
            }
        }
    }
    let mut aliases = BTreeSet::new();
    for alias in spec.at("hostAliases").items() {
        let ip = alias.at("ip");
        if !aliases.insert(ip.text().to_owned()) {
            warn(&ip, &format!("duplicate ip {:?}", ip.text()));
        }
    }
    let mut secrets = BTreeSet::new();
    for secret in spec.at("imagePullSecrets").items() {
        let name = secret.at("name");
        if name.is_empty() {
            warn(&name, "invalid empty name \"\"");
        } else if !secrets.insert(name.text().to_owned()) {
            warn(&name, &format!("duplicate name {:?}", name.text()));
        }
    }
    fraction_warnings(&spec.at("overhead"), &mut warn);
    let seccomp = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    if annotations.key(SECCOMP_POD).is_set() && !spec.at("securityContext").at("seccompProfile").is_set() {
        warn(&annotations.key(SECCOMP_POD), seccomp);
    }
    let mut ports: BTreeMap<String, Vec<HostPort>> = BTreeMap::new();
    let mut port_names: BTreeMap<String, String> = BTreeMap::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.at(list).items() {
            let annotation = format!("{SECCOMP_CONTAINER}{}", container.at("name").text());
            let has_field = container.at("securityContext").at("seccompProfile").is_set();
            if annotations.key(&annotation).is_set() && !has_field {
                warn(&annotations.key(&annotation), seccomp);
            }
            container_warnings(&container, &mut warn);
            for port in container.at("ports").items() {
                port_warnings(&port, &mut ports, &mut port_names, &mut warn);
            }
        }
    }
    if spec.at("terminationGracePeriodSeconds").int().is_some_and(|seconds| seconds < 0) {
        let grace = spec.at("terminationGracePeriodSeconds");
        warn(&grace, "must be >= 0; negative values are invalid and will be treated as 1");
    }
    affinity_warnings(&spec.at("affinity"), &mut warn);
}

/// Terms without a selector, which match no pod.
fn affinity_warnings(affinity: &Cursor<'_>, warn: &mut impl FnMut(&Cursor<'_>, &str)) {
    let mut check = |selector: &Cursor<'_>| {
        if !selector.is_set() {
            warn(selector, MATCHES_NOTHING);
        }
    };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let rules = affinity.at(kind);
        for term in rules.at("requiredDuringSchedulingIgnoredDuringExecution").items() {
            check(&term.at("labelSelector"));
        }
        for term in rules.at("preferredDuringSchedulingIgnoredDuringExecution").items() {
            check(&term.at("podAffinityTerm").at("labelSelector"));
        }
    }
}

/// Amounts of bytes that are not whole.
fn fraction_warnings(amounts: &Cursor<'_>, warn: &mut impl FnMut(&Cursor<'_>, &str)) {
    for name in ["memory", "ephemeral-storage"] {
        let amount = amounts.key(name);
        if let Some(quantity) = Quantity::from_value(amount.value).filter(|amount| !amount.is_whole()) {
            let text = quantity.canonical();
            warn(&amount, &format!("fractional byte value {text:?} is invalid, must be an integer"));
        }
    }
}

fn container_warnings(container: &Cursor<'_>, warn: &mut impl FnMut(&Cursor<'_>, &str)) {
    let resources = container.at("resources");
    for list in ["limits", "requests"] {
        fraction_warnings(&resources.at(list), warn);
    }
    let mut seen = BTreeSet::new();
    for variable in container.at("env").items() {
        let name = variable.at("name").text();
        if seen.insert(name.to_owned()) {
            continue;
        }
        // X="$(X)123" uses the previous value; any other definition discards it.
        let reference = format!("$({name})");
        let value = variable.at("value").text();
        let builds_on = value.contains(&reference) && value != reference;
        if variable.at("valueFrom").is_set() || !builds_on {
            warn(
                &variable,
                &format!("hides previous definition of {name:?}, which may be dropped when using apply"),
            );
        }
    }
}

/// A port of a container, as far as another one can collide with it on the host.
struct HostPort {
    path: String,
    address: String,
    number: i64,
}

/// Port definitions beyond this count are not compared with each other.
const COMPARED_PORTS: usize = 100;

fn port_warnings(
    port: &Cursor<'_>,
    ports: &mut BTreeMap<String, Vec<HostPort>>,
    port_names: &mut BTreeMap<String, String>,
    warn: &mut impl FnMut(&Cursor<'_>, &str),
) {
    let number = port.at("containerPort").int().unwrap_or(0);
    let (name, protocol) = (port.at("name"), port.at("protocol"));
    let this = HostPort {
        path: port.path(),
        address: port.at("hostIP").text().to_owned(),
        number: port.at("hostPort").int().unwrap_or(0),
    };
    if !this.address.is_empty() && this.number == 0 {
        warn(
            port,
            &format!(
                "hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{number} Protocol:{} HostIP:{}}}",
                name.text(),
                protocol.text(),
                this.address
            ),
        );
    }
    let others = ports.entry(format!("{number}/{}", protocol.text())).or_default();
    for other in others.iter() {
        let relation = if this.address == other.address && this.number == other.number {
            "duplicate"
        } else if this.number == 0 || other.number == 0 {
            "overlapping"
        } else if this.number == other.number && this.address.is_empty() != other.address.is_empty() {
            "dangerously ambiguous"
        } else {
            continue;
        };
        warn(port, &format!("{relation} port definition with {}", other.path));
    }
    if others.len() < COMPARED_PORTS {
        others.push(this);
    }
    if name.is_empty() {
        return;
    }
    match port_names.get(name.text()) {
        Some(first) => warn(
            port,
            &format!(
                "duplicate port name {:?} with {first}, services and probes that select ports by name will use {first}",
                name.text()
            ),
        ),
        None => {
            port_names.insert(name.text().to_owned(), port.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::pod_warnings;

    #[test]
    fn questionable_pod_fields_cause_warnings_only_on_create() {
        let pod = json!({
            "metadata": {"name": "p", "annotations": {"seccomp.security.alpha.kubernetes.io/pod": "runtime/default"}},
            "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": [{"name": "c", "env": [
                {"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}]}]},
        });
        assert_eq!(
            pod_warnings(&pod, None),
            [
                "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \"seccompProfile\" field instead",
                "spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when using apply",
            ]
        );
        assert_eq!(pod_warnings(&pod, Some(&pod)), Vec::<String>::new());
    }
}
