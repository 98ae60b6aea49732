//! Endpoints and endpoint slices.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv6Addr},
};

use serde_json::Value;

use super::row::{PLAIN, StrategyRow};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        edit::{
            self,
            DefaultValue::{EmptyObject, Null, Str},
        },
        names,
        table::{self, Rule, RuleTable},
    },
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) const ENDPOINTS: StrategyRow = StrategyRow {
    creates_on_update: true,
    defaults: |object| edit::fill_all(object, &[("subsets[].ports[]", "protocol", Str("TCP"))]),
    validate_create: |object, errors| table::check(SUBSETS, object, errors),
    // Values that were stored before a rule existed may stay.
    validate_update: |object, old, errors| {
        if object.at("subsets").value != old.at("subsets").value {
            table::check(SUBSETS, object, errors);
        }
    },
    warnings: |object, _| {
        let is_of_controller = label(object, "endpoints.kubernetes.io/managed-by") == "endpoint-controller";
        let root = Cursor::root(object);
        let mut warnings = Vec::new();
        if !is_of_controller {
            table::visit(&root, None, "subsets[].addresses|notReadyAddresses[].ip", &mut |ip, _| {
                warnings.extend(form_of_ip(ip));
            });
        }
        warnings
    },
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    ..PLAIN
};

pub(super) const ENDPOINT_SLICE: StrategyRow = StrategyRow {
    generation: &["endpoints", "ports", "addressType", "metadata.labels"],
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("ports[]", "name", Str("")),
                ("ports[]", "protocol", Str("TCP")),
                ("endpoints[]", "conditions", EmptyObject),
            ],
        );
    },
    zeros: &[("", "endpoints", Null), ("", "ports", Null)],
    // Topology is a field of older API versions.
    prepare_create: drop_topology,
    prepare_update: |object, _| drop_topology(object),
    table: SLICE,
    validate_create: endpoints,
    validate_update: |object, old, errors| {
        if object.at("endpoints").value != old.at("endpoints").value {
            endpoints(object, errors);
        }
    },
    warnings: |object, old| {
        let mut warnings = Vec::new();
        let root = Cursor::root(object);
        let kind = root.at("addressType");
        if old.is_none() && kind.text() == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        let manager = label(object, "endpointslice.kubernetes.io/managed-by");
        let is_of_controller =
            matches!(manager, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io");
        if !is_of_controller && kind.text() != "FQDN" {
            table::visit(&root, None, "endpoints[].addresses[]", &mut |ip, _| {
                warnings.extend(form_of_ip(ip));
            });
        }
        warnings
    },
    ..PLAIN
};

fn label<'a>(object: &'a Value, name: &str) -> &'a str {
    let labels = object.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a warning about an IPv6 address that is not in its canonical form.
fn form_of_ip(ip: &Cursor<'_>) -> Option<String> {
    let canonical = ip.text().parse::<Ipv6Addr>().ok()?.to_string();
    (canonical != ip.text()).then(|| {
        format!(
            "{}: IPv6 address {:?} should be in RFC 5952 canonical format ({canonical:?})",
            ip.path(),
            ip.text()
        )
    })
}

fn drop_topology(object: &mut Value) {
    edit::each(object, "endpoints[]", &mut |endpoint| {
        endpoint.remove("deprecatedTopology");
    });
}

const SUBSETS: RuleTable = &[("subsets[]", &[Rule::Struct(SUBSET)])];

const SUBSET: RuleTable = &[
    (
        "",
        &[Rule::Check(|subset, errors| {
            if subset.at("addresses").is_empty() && subset.at("notReadyAddresses").is_empty() {
                errors.push(subset.missing("must specify `addresses` or `notReadyAddresses`"));
            }
        })],
    ),
    ("addresses|notReadyAddresses[]", &[Rule::Struct(ADDRESS)]),
    ("ports", &[Rule::Check(named_ports)]),
];

const ADDRESS: RuleTable = &[
    ("ip", &[Rule::EvenEmpty(names::ip)]),
    ("hostname", &[Rule::Format(names::dns_label)]),
    ("nodeName", &[Rule::Check(node_name)]),
    ("ip", &[Rule::Check(reachable)]),
];

const PORT: RuleTable = &[
    ("name", &[Rule::Format(names::dns_label)]),
    ("port", &[Rule::InRange(1, 65535)]),
    ("protocol", &[Rule::Required, Rule::OneOf(&PROTOCOLS)]),
    ("appProtocol", &[Rule::Check(app_protocol)]),
];

/// Checks an optional node name. A present empty string is checked.
fn node_name(name: &Cursor<'_>, errors: &mut Errors) {
    if name.is_set() {
        errors.extend(names::dns_subdomain(name.text()).into_iter().map(|detail| name.invalid(detail)));
    }
}

fn app_protocol(protocol: &Cursor<'_>, errors: &mut Errors) {
    if protocol.is_set() {
        errors.extend(names::qualified(protocol.text()).into_iter().map(|detail| protocol.invalid(detail)));
    }
}

/// Requires names for several ports.
fn named_ports(ports: &Cursor<'_>, errors: &mut Errors) {
    let needs_names = ports.items().count() > 1;
    for port in ports.items() {
        if needs_names && port.at("name").is_empty() {
            errors.push(port.at("name").missing(""));
        }
        table::check(PORT, &port, errors);
    }
}

/// Rejects addresses that not all nodes can reach, such as loopback.
fn reachable(ip: &Cursor<'_>, errors: &mut Errors) {
    let Ok(address) = ip.text().parse::<IpAddr>() else {
        errors.push(ip.invalid("must be a valid IP address"));
        return;
    };
    let (is_link_local, is_link_local_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(address) => (address.is_unicast_link_local(), address.segments().first() == Some(&0xff02)),
    };
    if address.is_unspecified() {
        errors.push(ip.invalid(format!("may not be unspecified ({})", ip.text())));
    }
    if address.is_loopback() {
        errors.push(ip.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if is_link_local {
        errors.push(ip.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if is_link_local_multicast {
        errors.push(ip.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
    }
}

const SLICE: RuleTable = &[
    ("addressType", &[Rule::Required, Rule::OneOf(&["FQDN", "IPv4", "IPv6"]), Rule::Immutable]),
    ("ports", &[Rule::MaxItems(20_000), Rule::Check(slice_ports)]),
];

const SLICE_PORT: RuleTable = &[
    ("name", &[Rule::Format(names::dns_label)]),
    ("protocol", &[Rule::Enum(&PROTOCOLS)]),
    ("appProtocol", &[Rule::Check(app_protocol)]),
];

fn slice_ports(ports: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.at("name");
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        table::check(SLICE_PORT, &port, errors);
    }
}

const ENDPOINT: RuleTable = &[
    ("nodeName", &[Rule::Check(node_name)]),
    (
        "hostname",
        &[Rule::Check(|hostname, errors| {
            if hostname.is_set() {
                errors.extend(
                    names::dns_label(hostname.text()).into_iter().map(|detail| hostname.invalid(detail)),
                );
            }
        })],
    ),
    ("hints.forZones", &[Rule::MaxItems(8), Rule::UniqueBy("name")]),
    ("hints.forZones[].name", &[Rule::Format(names::label_value)]),
    ("hints.forNodes", &[Rule::MaxItems(8), Rule::UniqueBy("name")]),
    ("hints.forNodes[].name", &[Rule::EvenEmpty(names::dns_subdomain)]),
];

fn endpoints(object: &Cursor<'_>, errors: &mut Errors) {
    let kind = object.at("addressType");
    let endpoints = object.at("endpoints");
    if endpoints.items().count() > 1000 {
        errors.push(table::too_many(&endpoints, 1000));
        return;
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.at("addresses");
        if addresses.is_empty() {
            errors.push(addresses.missing("must contain at least 1 address"));
        } else if addresses.items().count() > 100 {
            errors.push(table::too_many(&addresses, 100));
        }
        for address in addresses.items() {
            slice_address(kind.text(), &addresses, &address, errors);
        }
        table::check(ENDPOINT, &endpoint, errors);
    }
}

fn slice_address(kind: &str, addresses: &Cursor<'_>, address: &Cursor<'_>, errors: &mut Errors) {
    let wrong = match kind {
        "FQDN" if address.is_empty() => {
            errors.push(address.missing(""));
            return;
        }
        "FQDN" => names::fully_qualified_domain(address.text()),
        "IPv4" => names::ip(address.text()),
        "IPv6" => names::canonical_ip(address.text()),
        _ => return,
    };
    if kind == "FQDN" || !wrong.is_empty() {
        errors.extend(wrong.into_iter().map(|detail| address.invalid(detail)));
        return;
    }
    let is_v4 = address.text().parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4());
    if is_v4 != (kind == "IPv4") {
        errors.push(FieldError::new(
            FieldErrorKind::Invalid,
            addresses.path(),
            Some(address.text().into()),
            format!("must be an {kind} address"),
        ));
    }
    reachable(address, errors);
}
