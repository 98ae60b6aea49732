//! The spec of a storage claim, in a `PersistentVolumeClaim` and in claim templates.

use crate::strategy::{
    cursor::{Cursor, Errors},
    edit, names,
    quantity::Quantity,
    table::{
        self,
        Rule::{Check, EnumIfSet, Format, LabelSelector, Pointer, Required, RequiredAs, Struct},
        RuleTable,
    },
};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

const SPEC: RuleTable = &[
    ("accessModes", &[RequiredAs("at least 1 access mode is required")]),
    ("selector", &[LabelSelector]),
    ("accessModes", &[Check(access_modes)]),
    ("resources", &[Check(storage)]),
    ("storageClassName", &[Format(names::dns_subdomain)]),
    ("volumeMode", &[EnumIfSet(&["Block", "Filesystem"])]),
    ("dataSource", &[Pointer(&[("", &[Struct(DATA_SOURCE)])])]),
    (
        "dataSourceRef",
        &[Pointer(&[("", &[Struct(DATA_SOURCE)]), ("namespace", &[Format(names::dns_label)])])],
    ),
    ("", &[Check(same_source)]),
    ("volumeAttributesClassName", &[Format(names::dns_subdomain)]),
];

const DATA_SOURCE: RuleTable = &[
    ("name", &[Required]),
    ("kind", &[Required]),
    ("", &[Check(core_source)]),
    ("apiGroup", &[Format(names::dns_subdomain)]),
];

/// Checks the spec of a claim.
pub(super) fn claim_spec(spec: &Cursor<'_>, errors: &mut Errors) {
    table::check(SPEC, spec, errors);
}

fn access_modes(modes: &Cursor<'_>, errors: &mut Errors) {
    let (mut has_pod, mut has_other) = (false, false);
    for mode in modes.items() {
        if !ACCESS_MODES.contains(&mode.text()) {
            let mut error = modes.unsupported(&ACCESS_MODES);
            error.bad_value = Some(mode.value.clone());
            errors.push(error);
        } else if mode.text() == "ReadWriteOncePod" {
            has_pod = true;
        } else {
            has_other = true;
        }
    }
    if has_pod && has_other {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// Checks the amount of storage. Upstream reports it at `resources[storage]`, without `requests`.
fn storage(resources: &Cursor<'_>, errors: &mut Errors) {
    let requests = resources.at("requests");
    let amount = requests.key("storage");
    let mut error = match Quantity::from_value(amount.value) {
        None => amount.missing(""),
        Some(quantity) if quantity.is_zero() || quantity.is_negative() => {
            amount.invalid("must be greater than zero")
        }
        Some(_) => return,
    };
    error.path = format!("{}[storage]", resources.path());
    errors.push(error);
}

fn core_source(source: &Cursor<'_>, errors: &mut Errors) {
    if source.at("apiGroup").is_empty() && source.at("kind").text() != "PersistentVolumeClaim" {
        let mut error =
            source.invalid("must be 'PersistentVolumeClaim' when referencing the default apiGroup");
        error.bad_value = Some(source.at("kind").text().into());
        errors.push(error);
    }
}

fn same_source(spec: &Cursor<'_>, errors: &mut Errors) {
    let (source, reference) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    if !source.is_set() || !reference.is_set() {
        return;
    }
    if !reference.at("namespace").is_empty() {
        errors.push(spec.invalid("may not be specified when dataSourceRef.namespace is specified"));
    } else if ["apiGroup", "kind", "name"]
        .iter()
        .any(|member| !edit::is_same(source.at(member).value, reference.at(member).value))
    {
        errors.push(spec.invalid("must match dataSourceRef"));
    }
}
