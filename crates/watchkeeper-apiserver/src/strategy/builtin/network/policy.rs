//! `NetworkPolicy`.

use serde_json::Value;

use super::super::row::{PLAIN, StrategyRow};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, Str},
    },
    formats, names,
    table::{
        self,
        Rule::{Check, EnumIfSet, Format, LabelSelector, Pointer, Required, Struct},
        RuleTable,
    },
};

pub(super) const NETWORK_POLICY: StrategyRow = StrategyRow {
    generation: &["spec"],
    defaults: |object| {
        edit::fill_all(
            object,
            &[
                ("", "spec", EmptyObject),
                ("spec", "podSelector", EmptyObject),
                ("spec.ingress|egress[].ports[]", "protocol", Str("TCP")),
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
    table: &[
        ("spec.podSelector", &[LabelSelector]),
        ("spec.ingress[]", &[Struct(&[("ports[]", &[Struct(PORT)]), ("from[]", &[Struct(PEER)])])]),
        ("spec.egress[]", &[Struct(&[("ports[]", &[Struct(PORT)]), ("to[]", &[Struct(PEER)])])]),
        ("spec.policyTypes", &[Check(policy_types)]),
    ],
    ..PLAIN
};

const PORT: RuleTable = &[("protocol", &[EnumIfSet(&["TCP", "UDP", "SCTP"])]), ("", &[Check(port_range)])];

const PEER: RuleTable = &[
    ("podSelector", &[LabelSelector]),
    ("namespaceSelector", &[LabelSelector]),
    ("ipBlock", &[Pointer(&[("cidr", &[Required, Format(names::cidr)]), ("", &[Check(exceptions)])])]),
    ("", &[Check(one_peer)]),
];

fn policy_types(types: &Cursor<'_>, errors: &mut Errors) {
    if types.items().count() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for kind in types.items().filter(|kind| !matches!(kind.text(), "Ingress" | "Egress")) {
        errors.push(kind.unsupported(&["Ingress", "Egress"]));
    }
}

/// Checks a port range: the start must be a number, and the end must not precede it.
fn port_range(of: &Cursor<'_>, errors: &mut Errors) {
    let (port, end) = (of.at("port"), of.at("endPort"));
    let is_named = port.value.is_string();
    if !port.is_set() {
        if end.is_set() {
            errors.push(end.invalid("may not be specified when `port` is not specified"));
        }
        return;
    }
    if is_named && end.is_set() {
        errors.push(end.invalid("may not be specified when `port` is non-numeric"));
    }
    table::port_or_name(&port, errors);
    if let (false, Some(last)) = (is_named, end.int()) {
        if port.int().is_some_and(|first| last < first) {
            errors.push(end.invalid("must be greater than or equal to `port`"));
        }
        end.between(1, 65535, errors);
    }
}

fn exceptions(block: &Cursor<'_>, errors: &mut Errors) {
    let Some(network) = names::parse_cidr(block.at("cidr").text()) else { return };
    for except in block.at("except").items() {
        errors.extend(names::cidr(except.text()).into_iter().map(|detail| except.invalid(detail)));
        let Some(part) = names::parse_cidr(except.text()) else { continue };
        if !formats::is_strict_subset(part, network) {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

fn one_peer(peer: &Cursor<'_>, errors: &mut Errors) {
    let has_selector = peer.at("podSelector").is_set() || peer.at("namespaceSelector").is_set();
    match (peer.at("ipBlock").is_set(), has_selector) {
        (false, false) => errors.push(peer.missing("must specify a peer")),
        (true, true) => errors.push(peer.forbidden("may not specify both ipBlock and another peer")),
        _ => {}
    }
}
