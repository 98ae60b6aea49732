//! Rules of a service, its updates and its status.

use std::collections::BTreeSet;

use serde_json::json;

use super::{is_external, is_headless, needs_health_check};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        formats, names,
        table::{
            self, FieldCondition,
            Rule::{
                Absent, Between, Check, CheckChange, CheckWith, EnumIfSet, Format, FormatIfSet, InRange,
                Labels, OneOf, PortOrName, Present, Required, Struct, When,
            },
            RuleTable,
        },
    },
};

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
/// The family of the addresses that the server allocates.
const CONFIGURED_FAMILY: &str = "IPv4";
const HINTS_ANNOTATION: &str = "service.kubernetes.io/topology-aware-hints";
const MODE_ANNOTATION: &str = "service.kubernetes.io/topology-mode";
const RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) const SERVICE: RuleTable = &[("", &[CheckWith(service)])];

const RULES: RuleTable = &[
    ("", &[CheckChange(cluster_ip_change), CheckChange(family_change), CheckChange(class_change)]),
    ("", &[CheckChange(health_check_change)]),
    ("metadata.annotations", &[Check(topology_annotations)]),
    ("spec", &[Struct(SPEC)]),
    ("", &[Check(source_ranges)]),
    ("spec", &[Struct(BALANCER)]),
    ("", &[Check(external_traffic)]),
    ("spec.internalTrafficPolicy", &[Check(internal_traffic)]),
    ("spec.trafficDistribution", &[EnumIfSet(&["PreferClose", "PreferSameZone", "PreferSameNode"])]),
];

const SPEC: RuleTable = &[
    ("", &[Check(has_ports), Check(by_type)]),
    ("ports", &[Check(port_names)]),
    ("selector", &[Labels]),
    ("sessionAffinity", &[Required, OneOf(&["ClientIP", "None"])]),
    (
        "",
        &[
            When(FieldCondition::Is("sessionAffinity", "ClientIP"), CLIENT_IP),
            When(
                FieldCondition::Is("sessionAffinity", "None"),
                &[("sessionAffinityConfig", &[Absent("must not be set when session affinity is None")])],
            ),
        ],
    ),
    ("externalIPs[]", &[Check(external_ip)]),
    ("type", &[Required, OneOf(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"])]),
    ("", &[Check(node_ports)]),
    ("ports", &[Check(unique_ports)]),
];

const PORT: RuleTable = &[
    ("port", &[InRange(1, 65535)]),
    ("protocol", &[Required, OneOf(&["SCTP", "TCP", "UDP"])]),
    ("targetPort", &[PortOrName]),
    ("appProtocol", &[FormatIfSet(names::qualified)]),
];

const CLIENT_IP: RuleTable = &[(
    "sessionAffinityConfig.clientIP.timeoutSeconds",
    &[Present("when session affinity type is ClientIP"), Between(1, 86400)],
)];

const BALANCER: RuleTable = &[(
    "",
    &[
        When(
            FieldCondition::IsNot("type", "LoadBalancer"),
            &[
                ("allocateLoadBalancerNodePorts", &[Absent(ONLY_BALANCED)]),
                ("loadBalancerClass", &[Absent(ONLY_BALANCED)]),
            ],
        ),
        When(
            FieldCondition::Is("type", "LoadBalancer"),
            &[("loadBalancerClass", &[FormatIfSet(names::qualified)])],
        ),
    ],
)];

pub(super) const STATUS: RuleTable = &[("", &[Check(balancer_status)])];

const BALANCER_INGRESS: RuleTable = &[
    ("ip", &[Format(names::ip)]),
    ("", &[Check(ip_mode)]),
    ("hostname", &[Format(names::dns_subdomain), Check(no_ip)]),
];

/// Checks a service. Addresses are allocated before all other checks, so their errors are reported alone.
fn service(object: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let before = errors.len();
    let spec = object.at("spec");
    addresses(&spec, errors);
    if errors.len() == before {
        configured_families(&spec, errors);
    }
    if errors.len() > before {
        return;
    }
    match old {
        Some(old) => table::check_change(RULES, object, old, errors),
        None => table::check(RULES, object, errors),
    }
}

/// Rejects IP families of which the server has no addresses. Headless services without a selector may have any.
fn configured_families(spec: &Cursor<'_>, errors: &mut Errors) {
    let (policy, families) = (spec.at("ipFamilyPolicy"), spec.at("ipFamilies"));
    if spec.at("type").text() == "ExternalName" {
        return;
    }
    let before = errors.len();
    if policy.text() == "SingleStack" {
        for (member, name) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if spec.at(member).items().count() == 2 {
                errors.push(policy.invalid(format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {name} are specified"
                )));
            }
        }
    }
    let is_free = spec.at("clusterIP").text() == "None" && spec.at("selector").is_empty();
    if errors.len() > before || is_free {
        return;
    }
    if policy.text() == "RequireDualStack" {
        errors.push(policy.invalid("this cluster is not configured for dual-stack services"));
    }
    for family in families.items().filter(|family| family.text() != CONFIGURED_FAMILY) {
        errors.push(family.invalid("not configured on this cluster"));
    }
}

fn topology_annotations(annotations: &Cursor<'_>, errors: &mut Errors) {
    let (mode, hints) = (annotations.key(MODE_ANNOTATION), annotations.key(HINTS_ANNOTATION));
    if mode.is_set() && hints.is_set() && mode.value != hints.value {
        errors.push(
            mode.invalid(format!("must match annotations[{HINTS_ANNOTATION}] when both are specified")),
        );
    }
}

fn has_ports(spec: &Cursor<'_>, errors: &mut Errors) {
    let ports = spec.at("ports");
    if ports.is_empty() && !is_headless(spec) && spec.at("type").text() != "ExternalName" {
        errors.push(ports.missing(""));
    }
}

fn by_type(spec: &Cursor<'_>, errors: &mut Errors) {
    let (kind, ips) = (spec.at("type"), spec.at("clusterIPs"));
    match kind.text() {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            if let Some(first) = ips.items().next() {
                errors.push(first.invalid(format!("may not be set to 'None' for {} services", kind.text())));
            }
        }
        "ExternalName" => {
            for member in ["clusterIPs", "ipFamilies"] {
                if !spec.at(member).is_empty() {
                    errors.push(spec.at(member).forbidden("may not be set for ExternalName services"));
                }
            }
            if spec.at("ipFamilyPolicy").is_set() {
                errors.push(spec.at("ipFamilyPolicy").forbidden("may not be set for ExternalName services"));
            }
            let name = spec.at("externalName");
            let host = name.text().strip_suffix('.').unwrap_or(name.text());
            if host.is_empty() {
                errors.push(name.missing(""));
            } else {
                errors.extend(names::dns_subdomain(host).into_iter().map(|detail| name.invalid(detail)));
            }
        }
        _ => {}
    }
}

fn port_names(ports: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let needs_name = ports.items().count() > 1;
    for port in ports.items() {
        let name = port.at("name");
        if name.is_empty() {
            if needs_name {
                errors.push(name.missing(""));
            }
        } else {
            name.format(names::dns_label, errors);
            if !seen.insert(name.text().to_owned()) {
                errors.push(name.duplicate());
            }
        }
        table::check(PORT, &port, errors);
    }
}

fn node_ports(spec: &Cursor<'_>, errors: &mut Errors) {
    let ports = spec.at("ports");
    let given = |port: &Cursor<'_>| port.at("nodePort").int().filter(|number| *number != 0);
    if spec.at("type").text() == "ClusterIP" {
        for port in ports.items().filter(|port| given(port).is_some()) {
            errors.push(port.at("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let Some(number) = given(&port) else { continue };
        if !seen.insert((number, port.at("protocol").text().to_owned())) {
            errors.push(port.at("nodePort").duplicate());
        }
    }
}

fn unique_ports(ports: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.at("protocol"), port.at("port"));
        if !seen.insert((number.int(), protocol.text().to_owned())) {
            let reported = json!({"protocol": protocol.text(), "port": number.value});
            errors.push(FieldError::new(FieldErrorKind::Duplicate, port.path(), Some(reported), ""));
        }
    }
}

fn addresses(spec: &Cursor<'_>, errors: &mut Errors) {
    if spec.at("type").text() == "ExternalName" {
        return;
    }
    let (ip, ips) = (spec.at("clusterIP"), spec.at("clusterIPs"));
    match (ip.is_empty(), ips.items().next()) {
        (false, None) => errors.push(ips.missing("")),
        (false, Some(first)) if first.text() != ip.text() => {
            errors.push(ips.invalid("first value must match `clusterIP`"));
        }
        (true, Some(_)) => errors.push(ips.invalid("must be empty when `clusterIP` is not specified")),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    let families = spec.at("ipFamilies");
    for family in families.items() {
        if !FAMILIES.contains(&family.text()) {
            errors.push(family.unsupported(&FAMILIES));
        }
        if !seen.insert(family.text().to_owned()) {
            errors.push(family.duplicate());
        }
    }
    let policies = &["PreferDualStack", "RequireDualStack", "SingleStack"];
    let policy = spec.at("ipFamilyPolicy");
    if policy.is_set() && !policies.contains(&policy.text()) {
        errors.push(policy.unsupported(policies));
    }
    cluster_ips(&ips, &families, errors);
}

fn cluster_ips(ips: &Cursor<'_>, families: &Cursor<'_>, errors: &mut Errors) {
    let count = ips.items().count();
    let mut is_wrong = false;
    for (index, ip) in ips.items().enumerate() {
        if index == 0 && ip.text() == "None" {
            if count > 1 {
                is_wrong = true;
                errors.push(ips.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        let wrong = names::ip(ip.text());
        is_wrong |= !wrong.is_empty();
        errors.extend(wrong.into_iter().map(|detail| ip.invalid(detail)));
    }
    if count > 2 {
        errors.push(ips.invalid("may only hold up to 2 values"));
    }
    if is_wrong {
        return;
    }
    let is_v6 = |ip: &Cursor<'_>| ip.text().contains(':');
    let both = ips.items().any(|ip| is_v6(&ip)) && ips.items().any(|ip| !is_v6(&ip));
    if count > 1 && !both {
        errors.push(ips.invalid("may specify no more than one IP for each IP family"));
    }
    for (index, (ip, family)) in ips.items().zip(families.items()).enumerate() {
        let required = family.text();
        let differs = (required == "IPv4" && is_v6(&ip)) || (required == "IPv6" && !is_v6(&ip));
        if differs && ip.text() != "None" {
            errors.push(
                ip.invalid(format!("expected an {required} value as indicated by `ipFamilies[{index}]`")),
            );
        }
    }
}

fn external_ip(ip: &Cursor<'_>, errors: &mut Errors) {
    let mut wrong = names::ip(ip.text());
    if wrong.is_empty() {
        wrong = formats::endpoint_ip(ip.text());
    }
    errors.extend(wrong.into_iter().map(|detail| ip.invalid(detail)));
}

/// Checks the source ranges, in the field or in the older annotation.
fn source_ranges(object: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.at("metadata"), object.at("spec"));
    let ranges = spec.at("loadBalancerSourceRanges");
    // Upstream writes the field with a capital letter in paths.
    let reported = spec.named("LoadBalancerSourceRanges", ranges.value);
    let annotations = metadata.at("annotations");
    let annotation = annotations.key(RANGES_ANNOTATION);
    let is_balanced = spec.at("type").text() == "LoadBalancer";
    let check = |at: &Cursor<'_>, range: &str, errors: &mut Errors| {
        errors.extend(names::cidr(range.trim()).into_iter().map(|detail| at.invalid(detail)));
    };
    if !ranges.is_empty() {
        if !is_balanced {
            errors.push(reported.forbidden(ONLY_BALANCED));
        }
        for range in reported.items() {
            check(&range, range.text(), errors);
        }
    } else if annotation.is_set() {
        if !is_balanced {
            errors.push(annotation.forbidden(ONLY_BALANCED));
        }
        for range in annotation.text().split(',').filter(|_| !annotation.text().trim().is_empty()) {
            check(&annotation, range, errors);
        }
    }
}

fn external_traffic(object: &Cursor<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let (policy, health) = (spec.at("externalTrafficPolicy"), spec.at("healthCheckNodePort"));
    if is_external(object.value) {
        policy.required_one_of(&["Cluster", "Local"], errors);
    } else if !policy.is_empty() {
        errors.push(policy.invalid("may only be set for externally-accessible services"));
    }
    let port = health.int().unwrap_or(0);
    if port != 0 && !needs_health_check(object.value) {
        errors.push(
            health.invalid(
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            ),
        );
    } else if port != 0 {
        health.between(1, 65535, errors);
    }
}

fn internal_traffic(policy: &Cursor<'_>, errors: &mut Errors) {
    if policy.is_set() && !matches!(policy.text(), "Cluster" | "Local") {
        errors.push(policy.unsupported(&["Cluster", "Local"]));
    }
}

fn is_named(object: &Cursor<'_>) -> bool {
    object.at("spec").at("type").text() == "ExternalName"
}

fn cluster_ip_change(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    if is_named(object) || is_named(old) || (is_headless(&spec) && is_headless(&old_spec)) {
        return;
    }
    let (ips, old_ips) = (spec.at("clusterIPs"), old_spec.at("clusterIPs"));
    let (count, old_count) = (ips.items().count(), old_ips.items().count());
    let mut reject = |index: usize, detail: &str| {
        let path = format!("{}[{index}]", ips.path());
        errors.push(FieldError::new(FieldErrorKind::Invalid, path, Some(ips.value.clone()), detail));
    };
    if old_count > count && count == 0 {
        reject(0, "primary clusterIP can not be unset");
    }
    // Only the first address is immutable when one is added or removed.
    let compared = if count == old_count { count } else { 1 };
    for (index, (now, before)) in ips.items().zip(old_ips.items()).take(compared).enumerate() {
        if now.value != before.value {
            reject(index, "may not change once set");
        }
    }
    let policy = spec.at("ipFamilyPolicy");
    if old_count > count && count == 1 && policy.text() != "SingleStack" {
        errors.push(policy.invalid("must be set to 'SingleStack' when releasing the secondary clusterIP"));
    }
}

fn family_change(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    if is_named(object) || is_named(old) || is_headless(&spec) || is_headless(&old_spec) {
        return;
    }
    let (families, old_families) = (spec.at("ipFamilies"), old_spec.at("ipFamilies"));
    let (count, old_count) = (families.items().count(), old_families.items().count());
    let mut reject = |detail: &str| {
        let path = format!("{}[0]", families.path());
        errors.push(FieldError::new(FieldErrorKind::Invalid, path, Some(families.value.clone()), detail));
    };
    if old_count > count && spec.at("clusterIPs").is_empty() {
        reject("primary ipFamily can not be unset");
    }
    let compared = if count == old_count { count } else { 1 };
    for (now, before) in families.items().zip(old_families.items()).take(compared) {
        if now.value != before.value {
            reject("may not change once set");
        }
    }
    let policy = spec.at("ipFamilyPolicy");
    if old_count > count && count == 1 && policy.text() != "SingleStack" {
        errors.push(policy.invalid("must be set to 'SingleStack' when releasing the secondary ipFamily"));
    }
}

fn class_change(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    let (class, old_class) = (spec.at("loadBalancerClass"), old_spec.at("loadBalancerClass"));
    let both_balance = [&spec, &old_spec].iter().all(|spec| spec.at("type").text() == "LoadBalancer");
    if both_balance && class.value != old_class.value {
        errors.push(class.invalid("may not change once set"));
    }
}

fn health_check_change(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (spec, old_spec) = (object.at("spec"), old.at("spec"));
    let (port, old_port) = (spec.at("healthCheckNodePort"), old_spec.at("healthCheckNodePort"));
    if needs_health_check(object.value)
        && needs_health_check(old.value)
        && port.int().unwrap_or(0) != old_port.int().unwrap_or(0)
    {
        errors.push(port.forbidden("field is immutable"));
    }
}

fn balancer_status(object: &Cursor<'_>, errors: &mut Errors) {
    let (spec, status) = (object.at("spec"), object.at("status"));
    let balancer = status.at("loadBalancer");
    let ingress = balancer.at("ingress");
    if spec.at("type").text() != "LoadBalancer" && !ingress.is_empty() {
        errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    for item in ingress.items() {
        table::check(BALANCER_INGRESS, &item, errors);
    }
}

fn ip_mode(ingress: &Cursor<'_>, errors: &mut Errors) {
    let (ip, mode) = (ingress.at("ip"), ingress.at("ipMode"));
    match (mode.is_set(), !ip.is_empty()) {
        (false, true) => errors.push(mode.missing("must be specified when `ip` is set")),
        (true, false) => errors.push(mode.forbidden("may not be specified when `ip` is not set")),
        (true, true) if !matches!(mode.text(), "VIP" | "Proxy") => {
            errors.push(mode.unsupported(&["Proxy", "VIP"]));
        }
        _ => {}
    }
}

fn no_ip(host: &Cursor<'_>, errors: &mut Errors) {
    if formats::is_ip(host.text()) {
        errors.push(host.invalid("must be a DNS name, not an IP address"));
    }
}
