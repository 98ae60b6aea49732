//! Services. [`ServiceAllocator`](crate::strategy::ServiceAllocator) allocates their addresses and ports.

#[cfg(test)]
mod rule_tests;
mod validate;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::row::{PLAIN, StrategyRow};
use crate::strategy::{
    cursor::Cursor,
    edit::{
        self,
        DefaultValue::{Bool, EmptyObject, Str},
    },
    names::NameRule,
};

/// Fields that are ignored or deprecated.
fn warnings(object: &Value) -> Vec<String> {
    let root = Cursor::root(object);
    let spec = root.at("spec");
    let has = |member: &str| !spec.at(member).is_empty();
    let is_named_outside = spec.at("type").text() == "ExternalName";
    let is_headless = spec.at("type").text() == "ClusterIP" && spec.at("clusterIP").text() == "None";
    let mut warnings = Vec::new();
    if is_headless {
        for member in ["loadBalancerIP", "externalIPs"].into_iter().filter(|member| has(member)) {
            warnings.push(format!("spec.{member} is ignored for headless services"));
        }
        if spec.at("sessionAffinity").text() != "None" {
            warnings.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    if has("externalIPs") && !is_headless && !is_named_outside {
        warnings.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    if is_named_outside && has("externalIPs") {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_named_outside && has("externalName") {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.at("trafficDistribution").text() == "PreferClose" {
        warnings.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
    warnings
}

pub(super) const SERVICE: StrategyRow = StrategyRow {
    names: NameRule::Label,
    creates_on_update: true,
    delete_returns_object: true,
    status: Some(|| Some(json!({"loadBalancer": {}}))),
    defaults: service_defaults,
    zeros: &[("", "status", EmptyObject), ("status", "loadBalancer", EmptyObject)],
    prepare_create: |object| {
        cluster_ips(object, None);
        families(object, None);
    },
    prepare_update,
    table: validate::SERVICE,
    status_table: validate::STATUS,
    warnings: |object, _| warnings(object),
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

/// Returns whether a service is headless: its only cluster IP is `None`.
fn is_headless(spec: &Cursor<'_>) -> bool {
    let ips = spec.at("clusterIPs");
    ips.items().count() == 1 && ips.items().all(|ip| ip.text() == "None")
}

/// Returns whether a service is reachable from outside: by node ports, a load balancer, or external IPs.
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
            ("spec", "sessionAffinity", Str("None")),
            ("spec", "type", Str("ClusterIP")),
            ("spec.ports[]", "protocol", Str("TCP")),
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
        edit::fill_all(object, &[("spec", "externalTrafficPolicy", Str("Cluster"))]);
    }
    if !is_external_name(object) {
        edit::fill_all(object, &[("spec", "internalTrafficPolicy", Str("Cluster"))]);
    }
    if kind_of(object) == "LoadBalancer" {
        edit::fill_all(object, &[("spec", "allocateLoadBalancerNodePorts", Bool(true))]);
        edit::each(object, "status.loadBalancer.ingress[]", &mut |ingress| {
            if !edit::text(ingress, "ip").is_empty() {
                edit::fill(ingress, "ipMode", Str("VIP"));
            }
        });
    }
}

/// Synchronizes `clusterIP` and the first of `clusterIPs`. Clients that support only one of them may change only that one.
fn cluster_ips(object: &mut Value, old: Option<&Value>) {
    let read = |service: &Value| {
        let ip = service.pointer("/spec/clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
        let ips = service.pointer("/spec/clusterIPs").and_then(Value::as_array).cloned().unwrap_or_default();
        (ip, ips)
    };
    let (ip, ips) = read(object);
    let (old_ip, old_ips) = old.map(read).unwrap_or_default();
    let same_list = ips == old_ips;
    let expected = if old.is_none() {
        (!ip.is_empty() && ips.is_empty()).then(|| vec![Value::from(ip)])
    } else if ip != old_ip && same_list {
        Some(if ip.is_empty() { Vec::new() } else { vec![Value::from(ip)] })
    } else {
        (!old_ips.is_empty() && ips.is_empty() && ip == old_ip).then_some(old_ips)
    };
    if let (Some(expected), Some(spec)) = (expected, edit::object(object, "spec")) {
        if expected.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.insert("clusterIPs".to_owned(), expected.into());
        }
    }
}

/// Sets the IP families: IPv4, or both for headless services without a selector.
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

/// Keeps allocations that a client omits, and drops those that the type no longer uses.
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
            edit::fill(port, "nodePort", edit::DefaultValue::Int(before));
        }
    });
    let health = old.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64);
    if needs_health_check(object)
        && let Some(port) = health
    {
        edit::fill_all(object, &[("spec", "healthCheckNodePort", edit::DefaultValue::Int(port))]);
    }
}

fn needs_health_check(service: &Value) -> bool {
    let policy = service.pointer("/spec/externalTrafficPolicy").and_then(Value::as_str);
    kind_of(service) == "LoadBalancer" && policy == Some("Local")
}

/// Drops fields of the old type if a client changes only the type.
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
    fn changing_only_the_type_drops_fields_of_the_old_type() {
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
    fn allocated_addresses_and_node_ports_are_kept_when_an_update_omits_them() {
        let old = service(&json!({"type": "NodePort", "clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"],
            "ports": [{"port": 80, "nodePort": 30001}]}));
        let mut new = service(&json!({"type": "NodePort", "ports": [{"port": 81}]}));
        prepare_update(&mut new, &old);
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.96.0.2"]));
        assert_eq!(new["spec"]["ports"][0]["nodePort"], 30001);
    }
}
