//! Rules of a pod and of a pod template.

use super::{
    annotations,
    container::{self, Context},
    resources, scheduling, security, volume,
};
use crate::{
    field::FieldErrorKind,
    strategy::{
        cursor::{Cursor, Errors},
        formats, metadata, names,
        table::{
            self, FieldCondition,
            Rule::{
                Absent, Between, Check, EnumIfSet, EvenEmpty, Format, FormatIfSet, Labels, MaxLength, OneOf,
                Required, Struct, When,
            },
            RuleTable,
        },
    },
};

const MAX_SECONDS: i64 = i32::MAX as i64;

/// Checks a pod, on create and on update.
pub(super) fn pod(object: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.at("metadata"), object.at("spec"));
    annotations::check(&metadata.at("annotations"), &spec, errors);
    pod_spec(&spec, Some(metadata.at("name").text()), errors);
    if spec.at("serviceAccountName").is_empty() {
        for volume in spec.at("volumes").items() {
            let projected = volume.at("projected");
            for source in projected.at("sources").items() {
                let token = source.at("serviceAccountToken");
                if token.is_set() {
                    errors.push(token.forbidden("must not be specified when serviceAccountName is not set"));
                }
            }
        }
    }
    spec.at("terminationGracePeriodSeconds").at_least(0, errors);
    for list in ["containers", "initContainers"] {
        for container in spec.at(list).items() {
            container::unpadded_image(&container, errors);
        }
    }
}

/// Checks rules that apply only to the creation of a pod.
pub(super) fn pod_create(object: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.at("metadata"), object.at("spec"));
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    let node = spec.at("nodeName");
    if !node.is_empty() && !spec.at("schedulingGates").is_empty() {
        errors.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    annotations::same_as_fields(&metadata.at("annotations"), &spec, errors);
}

/// Checks a pod template. Upstream reports its labels and annotations without `metadata`.
pub(in super::super) fn template(template: &Cursor<'_>, errors: &mut Errors) {
    template_metadata(template, errors);
    let (own, spec) = (template.at("metadata"), template.at("spec"));
    pod_spec(&spec, None, errors);
    annotations::same_as_fields(&own.at("annotations"), &spec, errors);
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// Checks the labels and annotations of a template.
pub(in super::super) fn template_metadata(template: &Cursor<'_>, errors: &mut Errors) {
    let own = template.at("metadata");
    metadata::labels(&template.named("labels", own.at("labels").value), errors);
    let annotations = own.at("annotations");
    let reported = template.named("annotations", annotations.value);
    metadata::annotations(&reported, errors);
    annotations::check(&reported, &template.at("spec"), errors);
}

/// The fields of a spec that are checked after its containers.
const BASICS: RuleTable = &[
    ("", &[Check(host_network_ports)]),
    ("restartPolicy", &[Required, OneOf(&["Always", "OnFailure", "Never"])]),
    ("dnsPolicy", &[Required, OneOf(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"])]),
    ("nodeSelector", &[Labels]),
    ("", &[Check(security::pod)]),
    ("", &[Check(share_process_namespace)]),
    ("affinity", &[Struct(scheduling::AFFINITY)]),
    ("", &[Check(dns_config)]),
    ("readinessGates[].conditionType", &[EvenEmpty(names::qualified)]),
    ("schedulingGates", &[Check(scheduling::gates)]),
    ("topologySpreadConstraints", &[Check(scheduling::spread)]),
    ("", &[Check(security::host_processes), Check(host_users), Check(hostname_override)]),
    ("serviceAccountName", &[Format(names::dns_subdomain)]),
    ("nodeName", &[Format(names::dns_subdomain)]),
    ("activeDeadlineSeconds", &[Between(1, MAX_SECONDS)]),
    ("hostname", &[Format(names::dns_label)]),
    ("subdomain", &[Format(names::dns_label)]),
    ("tolerations", &[Check(scheduling::tolerations)]),
    ("hostAliases[]", &[Struct(HOST_ALIAS)]),
    ("priorityClassName", &[Format(names::dns_subdomain)]),
    ("runtimeClassName", &[FormatIfSet(names::dns_subdomain)]),
    ("preemptionPolicy", &[EnumIfSet(&["PreemptLowerPriority", "Never"])]),
    ("", &[Check(resources::overhead)]),
    ("", &[Check(security::operating_system)]),
    ("", &[Check(file_volumes)]),
];

const HOST_ALIAS: RuleTable =
    &[("ip", &[EvenEmpty(names::ip)]), ("hostnames[]", &[EvenEmpty(names::dns_subdomain)])];

/// Checks the spec of a pod named `pod`, or of a template if there is no name.
fn pod_spec(spec: &Cursor<'_>, pod: Option<&str>, errors: &mut Errors) {
    let volumes = volume::volumes(&spec.at("volumes"), pod.unwrap_or_default(), errors);
    let claims = resources::claims(&spec.at("resourceClaims"), errors);
    let context = Context {
        volumes,
        claims,
        grace: spec.at("terminationGracePeriodSeconds").int(),
        restart_policy: spec.at("restartPolicy").text().to_owned(),
        has_host_users: spec.at("hostUsers").value.as_bool() != Some(false),
    };
    container::containers(spec, &context, errors);
    resources::of_pod(spec, errors);
    table::check(BASICS, spec, errors);
}

/// Checks that on the host network a container port equals the host port. Templates may omit the host port.
fn host_network_ports(spec: &Cursor<'_>, errors: &mut Errors) {
    if !spec.at("hostNetwork").is_true() {
        return;
    }
    let containers = spec.at("containers");
    for container in containers.items() {
        for port in container.at("ports").items() {
            let (host, own) = (port.at("hostPort"), port.at("containerPort"));
            if host.int().is_some_and(|number| number != 0 && Some(number) != own.int()) {
                errors.push(host.invalid("must match `containerPort` when `hostNetwork` is true"));
            }
        }
    }
}

fn share_process_namespace(spec: &Cursor<'_>, errors: &mut Errors) {
    let share = spec.at("shareProcessNamespace");
    if share.is_true() && spec.at("hostPID").is_true() {
        errors.push(share.invalid("ShareProcessNamespace and HostPID cannot both be enabled"));
    }
}

fn dns_config(spec: &Cursor<'_>, errors: &mut Errors) {
    let config = spec.at("dnsConfig");
    let (servers, searches) = (config.at("nameservers"), config.at("searches"));
    if spec.at("dnsPolicy").text() == "None" {
        if !config.is_set() {
            errors.push(config.missing("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            errors.push(servers.missing("must provide at least one DNS nameserver when `dnsPolicy` is None"));
            return;
        }
    }
    if servers.items().count() > 3 {
        errors.push(servers.invalid("must not have more than 3 nameservers"));
    }
    table::check(&[("nameservers[]", &[EvenEmpty(names::ip)])], &config, errors);
    if searches.items().count() > 32 {
        errors.push(searches.invalid("must not have more than 32 search paths"));
    }
    let length: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if length > 2048 + 1 {
        errors.push(
            searches.invalid("must not have more than 2048 characters (including spaces) in the search list"),
        );
    }
    table::check(&[("searches[]", &[EvenEmpty(formats::search_domain)])], &config, errors);
    for option in config.at("options").items() {
        if option.at("name").is_empty() {
            errors.push(option.missing("must not be empty"));
        }
    }
}

/// Checks that a pod with its own user namespace shares no other namespaces of its host.
fn host_users(spec: &Cursor<'_>, errors: &mut Errors) {
    if spec.at("hostUsers").value.as_bool() != Some(false) {
        return;
    }
    // Upstream writes two of the fields with a capital letter in paths.
    for (member, reported) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        let flag = spec.at(member);
        if flag.is_true() {
            errors.push(spec.named(reported, flag.value).forbidden("when `hostUsers` is false"));
        }
    }
    for list in security::ALL_CONTAINERS {
        for container in spec.at(list).items() {
            let devices = container.at("volumeDevices");
            if !devices.is_empty() {
                errors.push(devices.forbidden("when `hostUsers` is false"));
            }
        }
    }
}

fn hostname_override(spec: &Cursor<'_>, errors: &mut Errors) {
    const NAME: RuleTable = &[("hostnameOverride", &[MaxLength(64), FormatIfSet(names::dns_subdomain)])];
    const CONFLICTS: RuleTable = &[(
        "",
        &[
            When(
                FieldCondition::IsTrue("setHostnameAsFQDN"),
                &[("hostnameOverride", &[Absent("may not be specified when setHostnameAsFQDN is true")])],
            ),
            When(
                FieldCondition::IsTrue("hostNetwork"),
                &[("hostnameOverride", &[Absent("may not be specified when hostNetwork is true")])],
            ),
        ],
    )];
    table::check(CONFLICTS, spec, errors);
    table::check(NAME, spec, errors);
}

/// Checks that variables from files refer to an empty directory volume.
fn file_volumes(spec: &Cursor<'_>, errors: &mut Errors) {
    let volumes = spec.at("volumes");
    for list in security::ALL_CONTAINERS {
        for container in spec.at(list).items() {
            for variable in container.at("env").items() {
                let from = variable.at("valueFrom");
                let reference = from.at("fileKeyRef");
                let name = reference.at("volumeName");
                if !reference.is_set() {
                    continue;
                }
                match volumes.items().find(|volume| volume.at("name").text() == name.text()) {
                    None => errors.push(name.error(FieldErrorKind::NotFound, "")),
                    Some(volume) if !volume.at("emptyDir").is_set() => {
                        errors.push(name.invalid("referenced volume must be of type emptyDir"));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
