//! Ways into the cluster and between pods.

use serde_json::Value;

use super::{
    address,
    row::{CLUSTER, PLAIN, Row},
};
use crate::strategy::{
    at::{At, Errors},
    edit::{
        self,
        Lit::{O, S},
    },
    metadata, names,
};

/// The row of a kind of the group `networking.k8s.io`.
pub(super) fn find(kind: &str) -> Option<Row> {
    Some(match kind {
        "Ingress" => INGRESS,
        "IngressClass" => INGRESS_CLASS,
        "NetworkPolicy" => NETWORK_POLICY,
        "IPAddress" => address::IP_ADDRESS,
        "ServiceCIDR" => address::SERVICE_CIDR,
        _ => return None,
    })
}

const INGRESS: Row = Row {
    generation: &["spec"],
    status: Some(|| None),
    zeros: &[("", "spec", O), ("", "status", O), ("status", "loadBalancer", O)],
    validate: validate_ingress,
    warnings: |object, old| {
        let annotation = "/metadata/annotations/kubernetes.io~1ingress.class";
        if old.is_none() && object.pointer(annotation).is_some() {
            return vec!["annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead".to_owned()];
        }
        Vec::new()
    },
    ..PLAIN
};

const INGRESS_CLASS: Row = Row {
    generation: &["spec"],
    defaults: |object| edit::fill_all(object, &[("", "spec", O), ("spec.parameters", "scope", S("Cluster"))]),
    validate: |object, errors| {
        let spec = object.at("spec");
        let controller = spec.at("controller");
        if controller.required(errors) && !controller.text().contains('/') {
            errors.push(controller.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")"));
        }
        let parameters = spec.at("parameters");
        if parameters.is_set() {
            parameters.at("kind").required(errors);
            parameters.at("name").required(errors);
            parameters.at("scope").one_of(&["Cluster", "Namespace"], errors);
        }
    },
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        spec.at("controller").immutable(&old.at("controller"), errors);
    },
    ..CLUSTER
};

const NETWORK_POLICY: Row = Row {
    generation: &["spec"],
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "spec", O),
                ("spec", "podSelector", O),
                ("spec.ingress|egress[].ports[]", "protocol", S("TCP")),
            ],
        );
        edit::each(object, "spec", &mut |spec| {
            let has = |member: &str| {
                spec.get(member).and_then(Value::as_array).is_some_and(|items| !items.is_empty())
            };
            if !has("policyTypes") {
                let types: &[&str] = if has("egress") { &["Ingress", "Egress"] } else { &["Ingress"] };
                spec.insert("policyTypes".to_owned(), types.into());
            }
        });
    },
    validate: validate_policy,
    ..PLAIN
};

fn validate_ingress(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let (backend, rules) = (spec.at("defaultBackend"), spec.at("rules"));
    if rules.is_empty() && !backend.is_set() {
        let mut error = spec.invalid("either `defaultBackend` or `rules` must be specified");
        error.bad_value = Some(Value::Null);
        errors.push(error);
    }
    if backend.is_set() {
        self::backend(&backend, errors);
    }
    for rule in rules.items() {
        host(&rule.at("host"), errors);
        let http = rule.at("http");
        if !http.is_set() {
            continue;
        }
        let paths = http.at("paths");
        paths.required(errors);
        for path in paths.items() {
            ingress_path(&path, errors);
        }
    }
    for tls in spec.at("tls").items() {
        for host in tls.at("hosts").items() {
            self::host(&host, errors);
        }
        tls.at("secretName").format(names::dns_subdomain, errors);
    }
    spec.at("ingressClassName").format(names::dns_subdomain, errors);
}

fn host(host: &At<'_>, errors: &mut Errors) {
    if host.text().parse::<std::net::IpAddr>().is_ok() {
        errors.push(host.invalid("must be a DNS name, not an IP address"));
    }
    if host.text().contains('*') {
        host.format(names::wildcard_subdomain, errors);
    } else {
        host.format(names::dns_subdomain, errors);
    }
}

fn ingress_path(of: &At<'_>, errors: &mut Errors) {
    let (kind, path) = (of.at("pathType"), of.at("path"));
    if kind.is_empty() {
        errors.push(kind.missing("pathType must be specified"));
        return;
    }
    match kind.text() {
        "Exact" | "Prefix" => {
            if !path.text().starts_with('/') {
                let mut error = path.invalid("must be an absolute path");
                error.bad_value = Some(path.text().into());
                errors.push(error);
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.text().contains(sequence) {
                    errors.push(path.invalid(format!("must not contain '{sequence}'")));
                }
            }
            for suffix in ["/..", "/."] {
                if path.text().ends_with(suffix) {
                    errors.push(path.invalid(format!("cannot end with '{suffix}'")));
                }
            }
        }
        "ImplementationSpecific" if !path.is_empty() && !path.text().starts_with('/') => {
            errors.push(path.invalid("must be an absolute path"));
        }
        _ => kind.one_of(&["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    backend(&of.at("backend"), errors);
}

fn backend(backend: &At<'_>, errors: &mut Errors) {
    let empty = |detail: &str| {
        let mut error = backend.invalid(detail);
        error.bad_value = Some("".into());
        error
    };
    let (service, resource) = (backend.at("service"), backend.at("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => errors.push(empty("cannot set both resource and service backends")),
        (false, false) => errors.push(empty("resource or service backend is required")),
        (false, true) => {
            resource.at("kind").required(errors);
            resource.at("name").required(errors);
        }
        (true, false) => {
            service.at("name").required_format(names::dns_label, errors);
            let port = service.at("port");
            let (name, number) = (port.at("name"), port.at("number"));
            let has_number = number.int().is_some_and(|number| number != 0);
            match (!name.is_empty(), has_number) {
                (true, true) => errors.push(empty("cannot set both port name & port number")),
                (true, false) => name.format(names::port_name, errors),
                (false, true) => number.between(1, 65535, errors),
                (false, false) => errors.push(backend.missing("port name or number is required")),
            }
        }
    }
}

fn validate_policy(object: &At<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    metadata::label_selector(&spec.at("podSelector"), errors);
    for kind in spec.at("policyTypes").items() {
        kind.one_of(&["Egress", "Ingress"], errors);
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.at(direction).items() {
            for port in rule.at("ports").items() {
                port.at("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
                if port.at("port").is_set() {
                    super::pod::port(&port.at("port"), errors);
                }
            }
            for peer in rule.at(peers).items() {
                policy_peer(&peer, errors);
            }
        }
    }
}

fn policy_peer(peer: &At<'_>, errors: &mut Errors) {
    let (pods, namespaces, block) =
        (peer.at("podSelector"), peer.at("namespaceSelector"), peer.at("ipBlock"));
    metadata::label_selector(&pods, errors);
    metadata::label_selector(&namespaces, errors);
    if block.is_set() {
        block.at("cidr").required_format(names::cidr, errors);
        for except in block.at("except").items() {
            except.format(names::cidr, errors);
        }
        if pods.is_set() || namespaces.is_set() {
            errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
        }
    } else if !pods.is_set() && !namespaces.is_set() {
        errors.push(peer.missing("must specify a peer"));
    }
}
