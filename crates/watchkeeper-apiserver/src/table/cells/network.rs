//! The cells of network kinds: services, endpoints, ingresses and IP addresses.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{RowContext, first_few, joined, none_if_empty};

pub(super) fn cells(group: &str, plural: &str, row: &RowContext<'_>) -> Option<Vec<Value>> {
    let (name, age) = (row.name(), row.age());
    Some(match (group, plural) {
        ("", "services") => {
            let internal = row.list("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or("<none>");
            vec![
                name,
                row.text("spec.type").into(),
                internal.into(),
                external_address(row).into(),
                service_ports(row),
                age,
                row.labels("spec.selector"),
            ]
        }
        ("", "endpoints") => vec![name, endpoints(row).into(), age],
        ("discovery.k8s.io", "endpointslices") => {
            let ports: Vec<String> = row.list("ports").iter().map(slice_port).collect();
            let addresses: Vec<String> = row
                .list("endpoints")
                .iter()
                .flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten())
                .filter_map(|address| Some(address.as_str()?.to_owned()))
                .collect();
            vec![
                name,
                row.text("addressType").into(),
                first_few_or_unset(&ports),
                first_few_or_unset(&addresses),
                age,
            ]
        }
        ("networking.k8s.io", "ingresses") => vec![
            name,
            row.or("spec.ingressClassName", "<none>"),
            hosts(row).into(),
            balancer_addresses(row).into(),
            if row.count("spec.tls") > 0 { "80, 443".into() } else { "80".into() },
            age,
        ],
        ("networking.k8s.io", "ingressclasses") => {
            let is_default =
                row.at("metadata.annotations")["ingressclass.kubernetes.io/is-default-class"] == "true";
            let mark = if is_default { " (default)" } else { "" };
            vec![
                format!("{}{mark}", row.text("metadata.name")).into(),
                row.text("spec.controller").into(),
                class_parameters(row).into(),
                age,
            ]
        }
        ("networking.k8s.io", "networkpolicies") => vec![name, row.selector("spec.podSelector"), age],
        ("networking.k8s.io", "servicecidrs") => {
            vec![name, joined(row.list("spec.cidrs").iter(), ",").into(), age]
        }
        // Upstream sends the age too, although no column exists for it.
        ("networking.k8s.io", "ipaddresses") => vec![name, parent(row).into(), age],
        _ => return None,
    })
}

fn service_ports(service: &RowContext<'_>) -> Value {
    let ports = service.list("spec.ports").iter().map(|port| {
        let (number, protocol) = (&port["port"], port["protocol"].as_str().unwrap_or_default());
        match port["nodePort"].as_i64().unwrap_or_default() {
            0 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    });
    none_if_empty(ports.collect::<Vec<_>>().join(","))
}

fn external_address(service: &RowContext<'_>) -> String {
    let given = joined(service.list("spec.externalIPs").iter(), ",");
    match service.text("spec.type") {
        "ClusterIP" | "NodePort" if given.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => given,
        "LoadBalancer" => {
            let parts = [balancer_addresses(service), given];
            let known: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            if known.is_empty() { "<pending>".to_owned() } else { known.join(",") }
        }
        "ExternalName" => service.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn balancer_addresses(row: &RowContext<'_>) -> String {
    let addresses: BTreeSet<&str> = row
        .list("status.loadBalancer.ingress")
        .iter()
        .filter_map(|ingress| {
            let part = |member: &str| ingress[member].as_str().filter(|text| !text.is_empty());
            part("ip").or_else(|| part("hostname"))
        })
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn endpoints(row: &RowContext<'_>) -> String {
    let subsets = row.list("subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let list = |member: &str| subset[member].as_array().map(Vec::as_slice).unwrap_or_default();
        let addresses = || list("addresses").iter().map(|address| address["ip"].as_str().unwrap_or_default());
        if list("ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in list("ports") {
            all.extend(addresses().map(|address| {
                let port = &port["port"];
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            }));
        }
    }
    first_few(&all, 3, ",")
}

fn slice_port(port: &Value) -> String {
    match (&port["port"], port["name"].as_str()) {
        (Value::Null, Some(name)) => name.to_owned(),
        (Value::Null, None) => "*".to_owned(),
        (number, _) => number.to_string(),
    }
}

fn first_few_or_unset(all: &[String]) -> Value {
    if all.is_empty() { "<unset>".into() } else { first_few(all, 3, ",").into() }
}

fn hosts(ingress: &RowContext<'_>) -> String {
    let rules = ingress.list("spec.rules");
    let hosts: Vec<String> = rules
        .iter()
        .filter_map(|rule| rule["host"].as_str().filter(|host| !host.is_empty()).map(str::to_owned))
        .collect();
    if hosts.is_empty() { "*".to_owned() } else { first_few(&hosts, 3, ",") }
}

fn class_parameters(class: &RowContext<'_>) -> String {
    let parameters = class.at("spec.parameters");
    if !parameters.is_object() {
        return "<none>".to_owned();
    }
    let part = |member: &str| parameters[member].as_str();
    let group = part("apiGroup").map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", part("kind").unwrap_or_default(), part("name").unwrap_or_default())
}

fn parent(address: &RowContext<'_>) -> String {
    let parent = address.at("spec.parentRef");
    if !parent.is_object() {
        return "<none>".to_owned();
    }
    let part = |member: &str| parent[member].as_str().unwrap_or_default();
    let dot = if part("group").is_empty() { "" } else { "." };
    let resource = format!("{}{dot}{}", part("resource"), part("group")).to_lowercase();
    let names = [part("namespace"), part("name")];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    format!("{resource}/{}", names.join("/"))
}
