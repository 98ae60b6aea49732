//! Volume attachments.

use serde_json::json;

use super::{
    super::row::{CLUSTER, StatusMetadata, StrategyRow},
    DRIVER_NAME, source, volume,
};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit, names, quantity,
    table::{Rule, RuleTable},
};

pub(super) const VOLUME_ATTACHMENT: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    delete_returns_object: true,
    status: Some(|| Some(json!({"attached": false}))),
    status_meta: StatusMetadata::Immutable,
    defaults: |object| {
        source::defaults(object, "spec.source.inlineVolumeSpec");
        edit::each(object, "spec.source.inlineVolumeSpec.capacity", &mut quantity::canonicalize);
    },
    table: &[
        ("spec", &[Rule::Immutable]),
        ("spec.attacher", DRIVER_NAME),
        ("spec.source", &[Rule::Check(source)]),
        ("spec.nodeName", &[Rule::EvenEmpty(names::dns_subdomain)]),
        ("status", &[Rule::Struct(STATUS)]),
        (
            "spec.source.persistentVolumeName",
            &[Rule::Check(|name, errors| {
                if name.is_set() {
                    errors.extend(
                        names::dns_subdomain(name.text()).into_iter().map(|detail| name.invalid(detail)),
                    );
                }
            })],
        ),
    ],
    ..CLUSTER
};

const STATUS: RuleTable = &[
    (
        "attachmentMetadata",
        &[Rule::Check(|map, errors| {
            let size: usize = map.entries().map(|(name, value)| name.len() + value.text().len()).sum();
            if size > 256 * 1024 {
                errors.push(crate::strategy::metadata::too_long(map, 256 * 1024));
            }
        })],
    ),
    ("attachError|detachError.message", &[Rule::MaxLength(1024)]),
    ("attachError|detachError.errorCode", &[Rule::Between(0, i32::MAX as i64)]),
];

fn source(source: &Cursor<'_>, errors: &mut Errors) {
    const DETAIL: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let (inline, name) = (source.at("inlineVolumeSpec"), source.at("persistentVolumeName"));
    match (inline.is_set(), name.is_set()) {
        (false, false) => errors.push(source.missing(DETAIL)),
        (true, true) => errors.push(source.forbidden(DETAIL)),
        (false, true) if name.is_empty() => {
            errors.push(name.missing("must specify non empty persistentVolumeName"));
        }
        (false, true) => {}
        (true, false) => volume::check_inline(&inline, errors),
    }
}
