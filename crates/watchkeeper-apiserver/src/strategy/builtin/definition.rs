//! Custom resource definitions; their rules and kinds are in [`crate::crd`].

use super::row::{CLUSTER, StatusMetadata, StrategyRow};
use crate::crd;

pub(super) const DEFINITION: StrategyRow = StrategyRow {
    takes_unconditional_update: false,
    delete_returns_object: true,
    qualifies_finalizers: false,
    generation: &["spec"],
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    defaults: crd::defaults,
    prepare_create: |object| {
        crd::defaults(object);
        crd::stored_versions(object);
    },
    prepare_update: |object, _| crd::stored_versions(object),
    validate_create: |object, errors| crd::validate_definition(object.value, None, errors),
    validate_update: |object, old, errors| crd::validate_definition(object.value, Some(old.value), errors),
    ..CLUSTER
};
