//! Where services lead to.

use std::collections::BTreeSet;

use super::row::{PLAIN, Row};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        at::{At, Errors},
        edit::{
            self,
            Lit::{O, S, Z},
        },
        names,
    },
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) const ENDPOINTS: Row = Row {
    creates_on_update: true,
    defaults: |object| edit::fill_all(object, &[("subsets[].ports[]", "protocol", S("TCP"))]),
    validate: validate_endpoints,
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    ..PLAIN
};

pub(super) const ENDPOINT_SLICE: Row = Row {
    generation: &["endpoints", "ports", "addressType", "metadata.labels"],
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("ports[]", "name", S("")),
                ("ports[]", "protocol", S("TCP")),
                ("endpoints[]", "conditions", O),
            ],
        );
    },
    zeros: &[("", "endpoints", Z), ("", "ports", Z)],
    validate: validate_slice,
    validate_update: |object, old, errors| object.at("addressType").immutable(&old.at("addressType"), errors),
    ..PLAIN
};

fn validate_endpoints(object: &At<'_>, errors: &mut Errors) {
    for subset in object.at("subsets").items() {
        let (ready, unready) = (subset.at("addresses"), subset.at("notReadyAddresses"));
        if ready.is_empty() && unready.is_empty() {
            errors.push(subset.missing("must specify `addresses` or `notReadyAddresses`"));
        }
        for list in [&ready, &unready] {
            for address in list.items() {
                address.at("ip").required_format(names::ip, errors);
                address.at("hostname").format(names::dns_label, errors);
                address.at("nodeName").format(names::dns_subdomain, errors);
            }
        }
        let ports = subset.at("ports");
        let needs_name = ports.items().count() > 1;
        for port in ports.items() {
            let name = port.at("name");
            if needs_name && name.is_empty() {
                errors.push(name.missing(""));
            }
            name.format(names::dns_label, errors);
            if port.at("port").is_set() {
                port.at("port").between(1, 65535, errors);
            } else {
                errors.push(port.at("port").invalid("must be between 1 and 65535, inclusive"));
            }
            port.at("protocol").required_one_of(&PROTOCOLS, errors);
        }
    }
}

fn validate_slice(object: &At<'_>, errors: &mut Errors) {
    let kind = object.at("addressType");
    kind.required_one_of(&["FQDN", "IPv4", "IPv6"], errors);
    let mut seen = BTreeSet::new();
    for port in object.at("ports").items() {
        let name = port.at("name");
        name.format(names::dns_label, errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        port.at("protocol").required_one_of(&PROTOCOLS, errors);
        port.at("port").between(1, 65535, errors);
        port.at("appProtocol").format(names::qualified, errors);
    }
    for endpoint in object.at("endpoints").items() {
        let addresses = endpoint.at("addresses");
        if addresses.is_empty() {
            errors.push(addresses.missing("must contain at least 1 address"));
        }
        if addresses.items().count() > 100 {
            let count = addresses.items().count();
            errors.push(FieldError::new(
                FieldErrorKind::TooMany,
                addresses.path(),
                Some(count.into()),
                "must have at most 100 items",
            ));
        }
        for address in addresses.items() {
            match kind.text() {
                "FQDN" => address.format(names::dns_subdomain, errors),
                "IPv4" | "IPv6" => {
                    address.format(names::ip, errors);
                    let is_other = address
                        .text()
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|ip| ip.is_ipv4() != (kind.text() == "IPv4"));
                    if is_other {
                        let detail = format!("must be an {} address", kind.text());
                        errors.push(FieldError::new(
                            FieldErrorKind::Invalid,
                            addresses.path(),
                            Some(address.text().into()),
                            detail,
                        ));
                    }
                }
                _ => {}
            }
        }
        endpoint.at("nodeName").format(names::dns_subdomain, errors);
        endpoint.at("hostname").format(names::dns_label, errors);
    }
}
