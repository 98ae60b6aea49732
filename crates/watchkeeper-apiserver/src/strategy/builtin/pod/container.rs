//! Rules of the containers of a pod.

use std::collections::{BTreeMap, BTreeSet};

use super::{env, probe, resources, security};
use crate::{
    field::FieldErrorKind,
    strategy::{
        cursor::{Cursor, Errors},
        formats, names,
        table::{
            self,
            Rule::{Absent, Check, Enum, Forbidden, Format, MaxItems, OneOf, Present, Required, Struct},
            RuleTable,
        },
    },
};

/// The parts of a pod that its containers refer to.
pub(super) struct Context {
    /// The valid volumes by name: whether each can be a block device, and whether it is an image.
    pub(super) volumes: BTreeMap<String, Volume>,
    /// The names of the resource claims.
    pub(super) claims: BTreeSet<String>,
    /// The grace period of the pod, in seconds.
    pub(super) grace: Option<i64>,
    /// The restart policy of the pod.
    pub(super) restart_policy: String,
    /// Whether the pod uses the user namespace of its host.
    pub(super) has_host_users: bool,
}

/// The properties of a volume that mounts and devices depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Volume {
    /// Whether the volume is a storage claim, which can be a block device.
    pub(super) is_claim: bool,
    /// Whether the volume is an image, whose mounts have no options.
    pub(super) is_image: bool,
}

const PORT: RuleTable = &[
    ("containerPort", &[Check(container_port)]),
    ("hostPort", &[Check(host_port)]),
    ("protocol", &[Required, OneOf(&["SCTP", "TCP", "UDP"])]),
];

const HEAD: RuleTable = &[
    ("name", &[Required, Format(names::dns_label)]),
    ("image", &[Required]),
    ("terminationMessagePolicy", &[Required, OneOf(&["File", "FallbackToLogsOnError"])]),
    ("ports", &[Check(ports)]),
    ("env", &[Check(env::env)]),
    ("envFrom", &[Check(env::env_from)]),
];

const PULL_POLICY: RuleTable =
    &[("imagePullPolicy", &[Required, OneOf(&["Always", "IfNotPresent", "Never"])])];

const NOT_FOR_INIT: &str = "may not be set for init containers without restartPolicy=Always";

const STARTING: RuleTable =
    &[("lifecycle|livenessProbe|readinessProbe|startupProbe", &[Absent(NOT_FOR_INIT)])];

const NOT_FOR_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

const EPHEMERAL: RuleTable = &[
    ("ports|resizePolicy|restartPolicyRules", &[Forbidden(NOT_FOR_EPHEMERAL)]),
    ("restartPolicy|livenessProbe|readinessProbe|startupProbe|lifecycle", &[Absent(NOT_FOR_EPHEMERAL)]),
    ("resources", &[Forbidden(NOT_FOR_EPHEMERAL)]),
    ("volumeMounts[].subPath|subPathExpr", &[Forbidden(NOT_FOR_EPHEMERAL)]),
];

const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];

const RESTART_RULE: RuleTable = &[
    ("action", &[Enum(&["Restart", "RestartAllContainers"])]),
    (
        "exitCodes",
        &[
            Present("must be specified"),
            Struct(&[("operator", &[Enum(&["In", "NotIn"])]), ("values", &[MaxItems(255)])]),
        ],
    ),
];

/// Checks all containers of a spec.
pub(super) fn containers(spec: &Cursor<'_>, context: &Context, errors: &mut Errors) {
    let containers = spec.at("containers");
    let mut names = BTreeSet::new();
    if containers.required(errors) {
        for container in containers.items() {
            common(&container, context, errors);
            unique_name(&container, &mut names, errors);
            probe::running(&container, context.grace, errors);
            restart_policy(&container, errors);
        }
        host_ports(containers.items(), errors);
    }
    for container in spec.at("initContainers").items() {
        init_container(&container, context, &mut names, errors);
    }
    let ephemeral = spec.at("ephemeralContainers");
    for container in ephemeral.items() {
        common(&container, context, errors);
        unpadded_image(&container, errors);
        let target = container.at("targetContainerName");
        let is_known = ["containers", "initContainers"]
            .iter()
            .any(|list| spec.at(list).items().any(|other| other.at("name").text() == target.text()));
        unique_name(&container, &mut names, errors);
        if !target.is_empty() && !is_known {
            errors.push(target.error(FieldErrorKind::NotFound, ""));
        }
        table::check(EPHEMERAL, &container, errors);
    }
}

fn init_container(
    container: &Cursor<'_>,
    context: &Context,
    names: &mut BTreeSet<String>,
    errors: &mut Errors,
) {
    common(container, context, errors);
    restart_policy(container, errors);
    unique_name(container, names, errors);
    host_ports(std::iter::once(*container), errors);
    let is_sidecar = container.at("restartPolicy").text() == "Always";
    if is_sidecar {
        probe::running(container, context.grace, errors);
        return;
    }
    table::check(STARTING, container, errors);
    for policy in container.at("resizePolicy").items() {
        let restart = policy.at("restartPolicy");
        if restart.text() == "RestartContainer" {
            errors.push(
                restart.invalid("must not be set to 'RestartContainer' for non-sidecar initContainers"),
            );
        }
    }
}

fn unique_name(container: &Cursor<'_>, names: &mut BTreeSet<String>, errors: &mut Errors) {
    let name = container.at("name");
    if !names.insert(name.text().to_owned()) {
        errors.push(name.duplicate());
    }
}

/// Rejects an image name with surrounding spaces, which only templates may have.
pub(super) fn unpadded_image(container: &Cursor<'_>, errors: &mut Errors) {
    let image = container.at("image");
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

fn common(container: &Cursor<'_>, context: &Context, errors: &mut Errors) {
    table::check(HEAD, container, errors);
    mounts(container, context, errors);
    devices(container, context, errors);
    table::check(PULL_POLICY, container, errors);
    resources::of_container(&container.at("resources"), &context.claims, errors);
    resize_policy(&container.at("resizePolicy"), context, errors);
    security::container(&container.at("securityContext"), context.has_host_users, errors);
}

fn ports(ports: &Cursor<'_>, errors: &mut Errors) {
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
        table::check(PORT, &port, errors);
    }
}

fn container_port(number: &Cursor<'_>, errors: &mut Errors) {
    match number.int() {
        None | Some(0) => errors.push(number.missing("")),
        Some(_) => number.between(1, 65535, errors),
    }
}

fn host_port(number: &Cursor<'_>, errors: &mut Errors) {
    if number.int() != Some(0) {
        number.between(1, 65535, errors);
    }
}

/// Rejects duplicate host ports.
fn host_ports<'a>(containers: impl Iterator<Item = Cursor<'a>>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for container in containers {
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

fn mounts(container: &Cursor<'_>, context: &Context, errors: &mut Errors) {
    let (mounts, devices) = (container.at("volumeMounts"), container.at("volumeDevices"));
    let is_privileged = container.at("securityContext").at("privileged").is_true();
    let mut seen = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        name.required(errors);
        let volume = context.volumes.get(name.text());
        if volume.is_none() {
            errors.push(name.error(FieldErrorKind::NotFound, ""));
        }
        path.required(errors);
        if !seen.insert(path.text().to_owned()) {
            errors.push(path.invalid("must be unique"));
        }
        if devices.items().any(|device| device.at("name").text() == name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if devices.items().any(|device| device.at("devicePath").text() == path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        // Upstream reports some fields of a mount without its index.
        let reported =
            |member| mounts.named(member, mount.value.get(member).unwrap_or(&serde_json::Value::Null));
        reported("subPath").format(formats::descending_path, errors);
        let expression = mount.at("subPathExpr");
        if !expression.is_empty() && !mount.at("subPath").is_empty() {
            errors.push(expression.invalid("subPathExpr and subPath are mutually exclusive"));
        }
        reported("subPathExpr").format(formats::descending_path, errors);
        propagation(&reported("mountPropagation"), is_privileged, errors);
        recursive_read_only(&reported("recursiveReadOnly"), &mount, errors);
        let options = mount.at("bindMountOptions");
        if !options.is_empty() && volume.is_some_and(|volume| volume.is_image) {
            errors.push(options.invalid("bindMountOptions may not be used with image volumes"));
        }
    }
}

fn propagation(mode: &Cursor<'_>, is_privileged: bool, errors: &mut Errors) {
    if !mode.is_set() {
        return;
    }
    if !matches!(mode.text(), "Bidirectional" | "HostToContainer" | "None") {
        errors.push(mode.unsupported(&["Bidirectional", "HostToContainer", "None"]));
    }
    if mode.text() == "Bidirectional" && !is_privileged {
        errors.push(
            mode.forbidden("Bidirectional mount propagation is available only to privileged containers"),
        );
    }
}

fn recursive_read_only(mode: &Cursor<'_>, mount: &Cursor<'_>, errors: &mut Errors) {
    match mode.text() {
        "Enabled" | "IfPossible" => {
            if !mount.at("readOnly").is_true() {
                errors.push(mode.forbidden("may only be specified when readOnly is true"));
            }
            let propagation = mount.at("mountPropagation");
            if propagation.is_set() && propagation.text() != "None" {
                errors.push(
                    mode.forbidden("may only be specified when mountPropagation is None or not specified"),
                );
            }
        }
        "Disabled" => {}
        _ if !mode.is_set() => {}
        _ => errors.push(mode.unsupported(&["Disabled", "Enabled", "IfPossible"])),
    }
}

fn devices(container: &Cursor<'_>, context: &Context, errors: &mut Errors) {
    let mounts = container.at("volumeMounts");
    let (mut paths, mut names) = (BTreeSet::new(), BTreeSet::new());
    for device in container.at("volumeDevices").items() {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        name.required(errors);
        if !name.is_empty() && !names.insert(name.text().to_owned()) {
            errors.push(name.invalid("must be unique"));
        }
        match context.volumes.get(name.text()) {
            Some(volume) if !volume.is_claim => errors.push(name.invalid(
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )),
            Some(_) => {}
            None => errors.push(name.error(FieldErrorKind::NotFound, "")),
        }
        path.required(errors);
        if paths.contains(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if path.text().split('/').any(|part| part == "..") {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            paths.insert(path.text().to_owned());
        }
        if mounts.items().any(|mount| mount.at("name").text() == name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mounts.items().any(|mount| mount.at("mountPath").text() == path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}

/// Checks the resize policy of a container. Upstream reports most errors at the whole list.
fn resize_policy(policies: &Cursor<'_>, context: &Context, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for policy in policies.items() {
        let (resource, restart) = (policy.at("resourceName"), policy.at("restartPolicy"));
        if !seen.insert(resource.text().to_owned()) {
            let mut error = policy.duplicate();
            error.bad_value = Some(resource.text().into());
            errors.push(error);
        }
        for (field, allowed) in
            [(&resource, &["cpu", "memory"]), (&restart, &["NotRequired", "RestartContainer"])]
        {
            if field.is_empty() {
                errors.push(policies.missing(""));
            } else if !allowed.contains(&field.text()) {
                let mut error = policies.unsupported(allowed);
                error.bad_value = Some(field.value.clone());
                errors.push(error);
            }
        }
        if context.restart_policy == "Never" && restart.text() != "NotRequired" {
            let mut error = policies.invalid("must be 'NotRequired' when pod `restartPolicy` is 'Never'");
            error.bad_value = Some(restart.text().into());
            errors.push(error);
        }
    }
}

fn restart_policy(container: &Cursor<'_>, errors: &mut Errors) {
    let (policy, rules) = (container.at("restartPolicy"), container.at("restartPolicyRules"));
    if !policy.is_set() {
        if !rules.is_empty() {
            errors.push(policy.missing("must specify restartPolicy when restart rules are used"));
        }
    } else if !RESTART_POLICIES.contains(&policy.text()) {
        errors.push(policy.unsupported(RESTART_POLICIES));
    }
    table::check(&[("restartPolicyRules", &[MaxItems(20)])], container, errors);
    for rule in rules.items() {
        table::check(RESTART_RULE, &rule, errors);
    }
}
