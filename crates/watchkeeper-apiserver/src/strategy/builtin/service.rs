//! Services. Addresses and ports of services are given out by
//! [`ServiceAllocator`](crate::strategy::ServiceAllocator).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    pod,
    row::{PLAIN, Row},
};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        at::{At, Errors},
        edit::{
            self,
            Lit::{B, O, S},
        },
        metadata,
        names::{self, NameRule},
    },
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

pub(super) const SERVICE: Row = Row {
    names: NameRule::Label,
    creates_on_update: true,
    delete_returns_object: true,
    status: Some(|| Some(json!({"loadBalancer": {}}))),
    defaults: service_defaults,
    zeros: &[("", "status", O), ("status", "loadBalancer", O)],
    prepare_create: |object| {
        cluster_ips(object, None);
        families(object, None);
    },
    prepare_update,
    validate: validate_service,
    validate_update: update_service,
    ..PLAIN
};

fn kind_of(service: &Value) -> &str {
    service.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default()
}

fn is_external_name(service: &Value) -> bool {
    kind_of(service) == "ExternalName"
}

fn has_node_ports(service: &Value) -> bool {
    matches!(kind_of(service), "NodePort" | "LoadBalancer")
}

fn is_headless(spec: &At<'_>) -> bool {
    spec.at("clusterIP").text() == "None"
}

/// Reached from outside: by a port of nodes, a balancer, or an address of its own.
fn is_external(service: &Value) -> bool {
    let has_addresses =
        service.pointer("/spec/externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    has_node_ports(service) || (kind_of(service) == "ClusterIP" && has_addresses)
}

fn service_defaults(object: &mut Value) {
    edit::object(object, "spec");
    edit::fill_all(
        object,
        &[
            ("spec", "sessionAffinity", S("None")),
            ("spec", "type", S("ClusterIP")),
            ("spec.ports[]", "protocol", S("TCP")),
        ],
    );
    edit::each(object, "spec", &mut |spec| match edit::text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let seconds = spec
                .get("sessionAffinityConfig")
                .and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
            if seconds.is_none_or(Value::is_null) {
                spec.insert(
                    "sessionAffinityConfig".to_owned(),
                    json!({"clientIP": {"timeoutSeconds": 10800}}),
                );
            }
        }
        _ => {}
    });
    edit::each(object, "spec.ports[]", &mut |port| {
        let is_unset = match port.get("targetPort") {
            None | Some(Value::Null) => true,
            Some(Value::String(name)) => name.is_empty(),
            Some(number) => number.as_i64() == Some(0),
        };
        if is_unset && let Some(number) = port.get("port").cloned() {
            port.insert("targetPort".to_owned(), number);
        }
    });
    if is_external(object) {
        edit::fill_all(object, &[("spec", "externalTrafficPolicy", S("Cluster"))]);
    }
    if !is_external_name(object) {
        edit::fill_all(object, &[("spec", "internalTrafficPolicy", S("Cluster"))]);
    }
    if kind_of(object) == "LoadBalancer" {
        edit::fill_all(object, &[("spec", "allocateLoadBalancerNodePorts", B(true))]);
        edit::each(object, "status.loadBalancer.ingress[]", &mut |ingress| {
            if !edit::text(ingress, "ip").is_empty() {
                edit::fill(ingress, "ipMode", S("VIP"));
            }
        });
    }
}

/// `clusterIP` and the first of `clusterIPs` are the same; clients that know only one of them may change that one.
fn cluster_ips(object: &mut Value, old: Option<&Value>) {
    let read = |service: &Value| {
        let ip = service.pointer("/spec/clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
        let ips = service.pointer("/spec/clusterIPs").and_then(Value::as_array).cloned().unwrap_or_default();
        (ip, ips)
    };
    let (ip, ips) = read(object);
    let (old_ip, old_ips) = old.map(read).unwrap_or_default();
    let same_list = ips == old_ips;
    let wanted = if old.is_none() {
        (!ip.is_empty() && ips.is_empty()).then(|| vec![Value::from(ip)])
    } else if ip != old_ip && same_list {
        Some(if ip.is_empty() { Vec::new() } else { vec![Value::from(ip)] })
    } else {
        (!old_ips.is_empty() && ips.is_empty() && ip == old_ip).then_some(old_ips)
    };
    if let (Some(wanted), Some(spec)) = (wanted, edit::object(object, "spec")) {
        if wanted.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.insert("clusterIPs".to_owned(), wanted.into());
        }
    }
}

/// One family of addresses, IPv4; both for services that have none of their own and let others say where they are.
fn families(object: &mut Value, old: Option<&Value>) {
    if is_external_name(object) {
        return;
    }
    let old_policy = old.and_then(|old| old.pointer("/spec/ipFamilyPolicy")).cloned();
    let Some(spec) = edit::object(object, "spec") else { return };
    let has_selector =
        spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    let is_selectorless = edit::text(spec, "clusterIP") == "None" && !has_selector;
    let policy =
        old_policy.unwrap_or_else(|| json!(if is_selectorless { "RequireDualStack" } else { "SingleStack" }));
    spec.entry("ipFamilyPolicy").or_insert(policy);
    let is_single = edit::text(spec, "ipFamilyPolicy") == "SingleStack";
    let given = spec.get("ipFamilies").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut families = if given.is_empty() { vec![json!("IPv4")] } else { given };
    if is_selectorless && !is_single && families.len() < 2 {
        families.push(json!(if families.first() == Some(&json!("IPv4")) { "IPv6" } else { "IPv4" }));
    }
    spec.insert("ipFamilies".to_owned(), families.into());
}

/// What was given out is kept when a client leaves it out, and dropped when the type has no more use for it.
fn prepare_update(object: &mut Value, old: &Value) {
    if !is_external_name(object) && !is_external_name(old) {
        let old_ip = old.pointer("/spec/clusterIP").cloned();
        let old_ips = old.pointer("/spec/clusterIPs").cloned();
        if let Some(spec) = edit::object(object, "spec") {
            let is_left_out = edit::text(spec, "clusterIP").is_empty();
            if let (true, Some(ip)) = (is_left_out, old_ip) {
                spec.insert("clusterIP".to_owned(), ip);
            }
            if is_left_out && let Some(ips) = old_ips {
                spec.entry("clusterIPs").or_insert(ips);
            }
        }
    }
    cluster_ips(object, Some(old));
    keep_node_ports(object, old);
    drop_type_dependent(object, old);
    families(object, Some(old));
}

fn node_ports(service: &Value) -> BTreeSet<i64> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    ports
        .into_iter()
        .flatten()
        .filter_map(|port| port.get("nodePort")?.as_i64())
        .filter(|port| *port != 0)
        .collect()
}

fn keep_node_ports(object: &mut Value, old: &Value) {
    if !has_node_ports(object) || !has_node_ports(old) {
        return;
    }
    let used: BTreeSet<i64> = node_ports(object).intersection(&node_ports(old)).copied().collect();
    let old_ports = old.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    edit::each(object, "spec.ports[]", &mut |port| {
        let same_name = |old: &&Value| {
            old.get("name").unwrap_or(&Value::Null) == port.get("name").unwrap_or(&Value::Null)
        };
        let before = old_ports.iter().find(same_name).and_then(|old| old.get("nodePort")?.as_i64());
        if let Some(before) = before.filter(|before| !used.contains(before)) {
            edit::fill(port, "nodePort", edit::Lit::I(before));
        }
    });
    let health = old.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64);
    if needs_health_check(object)
        && let Some(port) = health
    {
        edit::fill_all(object, &[("spec", "healthCheckNodePort", edit::Lit::I(port))]);
    }
}

fn needs_health_check(service: &Value) -> bool {
    let policy = service.pointer("/spec/externalTrafficPolicy").and_then(Value::as_str);
    kind_of(service) == "LoadBalancer" && policy == Some("Local")
}

/// A client that changes only the type does not mean to keep what came with the old one.
fn drop_type_dependent(object: &mut Value, old: &Value) {
    let same = |object: &Value, member: &str| {
        let at = |service: &Value| service.get("spec").and_then(|spec| spec.get(member)).cloned();
        at(object) == at(old)
    };
    let mut drops = Vec::new();
    if !is_external_name(old) && is_external_name(object) {
        drops.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
    }
    if needs_health_check(old) && !needs_health_check(object) {
        drops.push("healthCheckNodePort");
    }
    if kind_of(old) == "LoadBalancer" && kind_of(object) != "LoadBalancer" {
        drops.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_external(old) && !is_external(object) {
        drops.push("externalTrafficPolicy");
    }
    drops.retain(|member| same(object, member));
    let loses_ports =
        has_node_ports(old) && !has_node_ports(object) && node_ports(old).is_superset(&node_ports(object));
    if let Some(spec) = edit::object(object, "spec") {
        spec.retain(|name, _| !drops.contains(&name.as_str()));
    }
    if loses_ports {
        edit::each(object, "spec.ports[]", &mut |port| {
            port.remove("nodePort");
        });
    }
    if kind_of(object) != "LoadBalancer"
        && let Some(status) = edit::object(object, "status")
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

fn validate_service(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let kind = spec.at("type");
    let (ports, ips) = (spec.at("ports"), spec.at("clusterIPs"));
    let is_headless = is_headless(&spec);
    if ports.is_empty() && !is_headless && kind.text() != "ExternalName" {
        errors.push(ports.missing(""));
    }
    match kind.text() {
        "LoadBalancer" | "NodePort" if is_headless => {
            if let Some(first) = ips.items().next() {
                errors.push(first.invalid(format!("may not be set to 'None' for {} services", kind.text())));
            }
        }
        "ExternalName" => {
            for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let member = spec.at(member);
                if !member.is_empty() {
                    errors.push(member.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.at("externalName");
            let host = name.text().trim_end_matches('.');
            if host.is_empty() {
                errors.push(name.missing(""));
            } else {
                errors.extend(names::dns_subdomain(host).into_iter().map(|detail| name.invalid(detail)));
            }
        }
        "ClusterIP" => {
            for port in
                ports.items().filter(|port| port.at("nodePort").int().is_some_and(|number| number != 0))
            {
                errors.push(port.at("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
            }
        }
        _ => {}
    }
    service_ports(&ports, errors);
    metadata::labels(&spec.at("selector"), errors);
    let affinity = spec.at("sessionAffinity");
    affinity.required_one_of(&["ClientIP", "None"], errors);
    if affinity.text() == "ClientIP" {
        let config = spec.at("sessionAffinityConfig");
        config.at("clientIP").at("timeoutSeconds").between(1, 86400, errors);
    }
    kind.required_one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], errors);
    addresses(&spec, errors);
    for ip in spec.at("externalIPs").items() {
        ip.format(names::ip, errors);
    }
    let policy = spec.at("externalTrafficPolicy");
    if is_external(object.value) {
        policy.required_one_of(&["Cluster", "Local"], errors);
    } else if !policy.is_empty() {
        errors.push(policy.invalid("may only be set for externally-accessible services"));
    }
    spec.at("internalTrafficPolicy").one_of(&["Cluster", "Local"], errors);
    spec.at("trafficDistribution").one_of(&["PreferClose", "PreferSameZone", "PreferSameNode"], errors);
    for range in spec.at("loadBalancerSourceRanges").items() {
        range.format(names::cidr, errors);
    }
    let health = spec.at("healthCheckNodePort");
    if health.int().is_some_and(|port| port != 0) && !needs_health_check(object.value) {
        errors.push(
            health.invalid(
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            ),
        );
    }
    for member in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        let member = spec.at(member);
        if member.is_set() && kind.text() != "LoadBalancer" {
            errors.push(member.forbidden("may only be used when `type` is 'LoadBalancer'"));
        }
    }
}

fn service_ports(ports: &At<'_>, errors: &mut Errors) {
    let (mut seen, mut numbers, mut node_ports) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
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
        let number = port.at("port");
        if number.int().is_none_or(|number| !(1..=65535).contains(&number)) {
            let mut error = number.invalid("must be between 1 and 65535, inclusive");
            error.bad_value = Some(number.int().unwrap_or(0).into());
            errors.push(error);
        }
        let protocol = port.at("protocol");
        protocol.required_one_of(&PROTOCOLS, errors);
        pod::port(&port.at("targetPort"), errors);
        port.at("appProtocol").format(names::qualified, errors);
        // The same number twice is fine for ports without names only in error already told.
        if !numbers.insert((number.int(), protocol.text().to_owned())) && !name.is_empty() {
            let shown = json!({"protocol": protocol.text(), "port": number.value});
            errors.push(FieldError::new(FieldErrorKind::Duplicate, port.path(), Some(shown), ""));
        }
        let node = port.at("nodePort");
        if node.int().is_some_and(|port| port != 0)
            && !node_ports.insert((node.int(), protocol.text().to_owned()))
        {
            errors.push(node.duplicate());
        }
    }
}

fn addresses(spec: &At<'_>, errors: &mut Errors) {
    if spec.at("type").text() == "ExternalName" {
        return;
    }
    let (ip, ips) = (spec.at("clusterIP"), spec.at("clusterIPs"));
    let first = ips.items().next().map(|first| first.text().to_owned());
    match (ip.is_empty(), first) {
        (false, None) => errors.push(ips.missing("")),
        (false, Some(first)) if first != ip.text() => {
            errors.push(ips.invalid("first value must match `clusterIP`"));
        }
        (true, Some(_)) => errors.push(ips.invalid("must be empty when `clusterIP` is not specified")),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    let families = spec.at("ipFamilies");
    for family in families.items() {
        family.one_of(&FAMILIES, errors);
        if !seen.insert(family.text().to_owned()) {
            errors.push(family.duplicate());
        }
    }
    spec.at("ipFamilyPolicy").one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"], errors);
    for (place, ip) in ips.items().enumerate() {
        if place == 0 && ip.text() == "None" {
            if ips.items().count() > 1 {
                errors.push(ips.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        ip.format(names::ip, errors);
    }
    if ips.items().count() > 2 {
        errors.push(ips.invalid("may only hold up to 2 values"));
    }
}

fn update_service(object: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (spec, old) = (object.at("spec"), old.at("spec"));
    let is_named = |spec: &At<'_>| spec.at("type").text() == "ExternalName";
    let both_headless = is_headless(&spec) && is_headless(&old);
    if !is_named(&spec) && !is_named(&old) && !both_headless {
        let (ips, old_ips) = (spec.at("clusterIPs"), old.at("clusterIPs"));
        for (place, before) in old_ips.items().enumerate() {
            let path = format!("{}[{place}]", ips.path());
            let shown = Some(ips.value.clone());
            match ips.value.get(place) {
                Some(now) if now == before.value => {}
                Some(_) => errors.push(FieldError::new(
                    FieldErrorKind::Invalid,
                    path,
                    shown,
                    "may not change once set",
                )),
                None if place == 0 => errors.push(FieldError::new(
                    FieldErrorKind::Invalid,
                    path,
                    shown,
                    "primary clusterIP can not be unset",
                )),
                None => {}
            }
        }
    }
    let class = (spec.at("loadBalancerClass"), old.at("loadBalancerClass"));
    let both_balance = [&spec, &old].iter().all(|spec| spec.at("type").text() == "LoadBalancer");
    if both_balance && class.0.value != class.1.value {
        errors.push(class.0.invalid("may not change once set"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{prepare_update, service_defaults};

    fn service(spec: &Value) -> Value {
        let mut service = json!({"metadata": {"name": "s"}, "spec": spec});
        service_defaults(&mut service);
        service
    }

    #[test]
    fn a_client_that_changes_only_the_type_loses_what_came_with_the_old_one() {
        let old = service(&json!({"type": "NodePort", "clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"],
            "ports": [{"port": 80, "nodePort": 30001}]}));
        let mut new = old.clone();
        new["spec"]["type"] = json!("ClusterIP");
        service_defaults(&mut new);
        prepare_update(&mut new, &old);
        assert_eq!(new["spec"]["ports"], json!([{"port": 80, "targetPort": 80, "protocol": "TCP"}]));
        assert!(new["spec"].get("externalTrafficPolicy").is_none());
        assert_eq!(new["spec"]["clusterIP"], "10.96.0.2");
    }

    #[test]
    fn what_was_given_out_is_kept_when_a_client_leaves_it_out() {
        let old = service(&json!({"type": "NodePort", "clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"],
            "ports": [{"port": 80, "nodePort": 30001}]}));
        let mut new = service(&json!({"type": "NodePort", "ports": [{"port": 81}]}));
        prepare_update(&mut new, &old);
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.96.0.2"]));
        assert_eq!(new["spec"]["ports"][0]["nodePort"], 30001);
    }
}
