//! Kinds of the group `networking.k8s.io`.

mod ingress;
mod policy;
#[cfg(test)]
mod tests;

use super::row::{CLUSTER, Row};
use crate::strategy::{
    at::{At, Errors},
    edit::Lit::O,
    names::{self, NameRule},
    table::{
        self,
        Rule::{Format, Immutable, Present, Required, Struct},
        Table,
    },
};

/// Returns the row of a kind of the group `networking.k8s.io`.
pub(super) fn find(kind: &str) -> Option<Row> {
    Some(match kind {
        "Ingress" => ingress::INGRESS,
        "IngressClass" => ingress::INGRESS_CLASS,
        "NetworkPolicy" => policy::NETWORK_POLICY,
        "IPAddress" => IP_ADDRESS,
        "ServiceCIDR" => SERVICE_CIDR,
        _ => return None,
    })
}

const IP_ADDRESS: Row = Row {
    names: NameRule::Ip,
    table: &[("spec.parentRef", &[Immutable])],
    validate_create: |object, errors| {
        table::check(&[("spec.parentRef", &[Present(""), Struct(PARENT)])], object, errors);
    },
    ..CLUSTER
};

const PARENT: Table = &[
    ("group", &[Format(names::dns_subdomain)]),
    ("resource", &[Required, Format(names::path_segment)]),
    ("name", &[Required, Format(names::path_segment)]),
    ("namespace", &[Format(names::path_segment)]),
];

const SERVICE_CIDR: Row = Row {
    status: Some(|| None),
    zeros: &[("", "status", O)],
    validate_create: |object, errors| cidrs(&object.at("spec").at("cidrs"), errors),
    validate_update: |object, old, errors| {
        kept_cidrs(&object.at("spec").at("cidrs"), &old.at("spec").at("cidrs"), errors);
    },
    ..CLUSTER
};

/// Checks one or two ranges of service addresses, at most one for each IP family.
fn cidrs(ranges: &At<'_>, errors: &mut Errors) {
    let count = ranges.items().count();
    if count == 0 {
        errors.push(ranges.missing("at least one CIDR required"));
        return;
    }
    if count > 2 {
        errors.push(ranges.invalid("may only hold up to 2 values"));
        return;
    }
    let mut families = Vec::new();
    for range in ranges.items() {
        errors.extend(names::canonical_cidr(range.text()).into_iter().map(|detail| range.invalid(detail)));
        families.extend(names::parse_cidr(range.text()).map(|(address, _)| address.is_ipv4()));
    }
    if families.len() == 2 && families.first() == families.last() {
        errors.push(ranges.invalid(
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        ));
    }
}

/// Rejects changes of the ranges other than adding a second one.
fn kept_cidrs(ranges: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let counts = (old.items().count(), ranges.items().count());
    if counts.0 != counts.1 && counts != (1, 2) {
        errors.push(ranges.invalid("field is immutable"));
        return;
    }
    for (before, now) in old.items().zip(ranges.items()) {
        if now.value != before.value {
            errors.push(now.invalid("field is immutable"));
        }
    }
    if counts == (1, 2) {
        cidrs(ranges, errors);
    }
}
