//! `ServiceCIDR` and `IPAddress`: the ranges of service addresses, and the addresses in use.

use super::row::{CLUSTER, StatusMetadata, StrategyRow};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::DefaultValue::EmptyObject,
    names::{self, NameRule},
    table::{self, Rule, RuleTable},
};

pub(super) const IP_ADDRESS: StrategyRow = StrategyRow {
    names: NameRule::Ip,
    table: &[("spec.parentRef", &[Rule::Present(""), Rule::Immutable, Rule::Struct(PARENT)])],
    ..CLUSTER
};

const PARENT: RuleTable = &[
    ("group", &[Rule::Format(names::dns_subdomain)]),
    ("resource", &[Rule::Required, Rule::Format(names::path_segment)]),
    ("name", &[Rule::Required, Rule::Format(names::path_segment)]),
    ("namespace", &[Rule::Format(names::path_segment)]),
];

pub(super) const SERVICE_CIDR: StrategyRow = StrategyRow {
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    zeros: &[("", "status", EmptyObject)],
    validate_create: |object, errors| cidrs(&object.at("spec"), errors),
    validate_update: |object, old, errors| {
        let (spec, old) = (object.at("spec"), old.at("spec"));
        let (now, before) = (spec.at("cidrs"), old.at("cidrs"));
        let (count, old_count) = (now.items().count(), before.items().count());
        if count != old_count && (old_count, count) != (1, 2) {
            errors.push(now.invalid("field is immutable"));
            return;
        }
        for (cidr, before) in now.items().zip(before.items()) {
            if cidr.text() != before.text() {
                errors.push(cidr.invalid("field is immutable"));
            }
        }
        if count != old_count {
            cidrs(&spec, errors);
        }
    },
    ..CLUSTER
};

fn cidrs(spec: &Cursor<'_>, errors: &mut Errors) {
    let cidrs = spec.at("cidrs");
    let count = cidrs.items().count();
    if count == 0 {
        errors.push(cidrs.missing("at least one CIDR required"));
        return;
    }
    if count > 2 {
        errors.push(cidrs.invalid("may only hold up to 2 values"));
        return;
    }
    table::check(&[("cidrs[]", &[Rule::EvenEmpty(names::canonical_cidr)])], spec, errors);
    let families: Vec<bool> = cidrs
        .items()
        .filter(|cidr| names::cidr(cidr.text()).is_empty())
        .map(|cidr| cidr.text().contains(':'))
        .collect();
    if families.len() == 2 && families.first() == families.last() {
        errors.push(cidrs.invalid(
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        ));
    }
}
