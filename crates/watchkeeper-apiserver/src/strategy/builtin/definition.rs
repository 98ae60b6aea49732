//! Custom resource definitions; their rules and kinds are in [`crate::crd`].

use super::row::{CLUSTER, Row, StatusMeta};
use crate::crd;

pub(super) const DEFINITION: Row = Row {
    takes_unconditional_update: false,
    delete_returns_object: true,
    qualifies_finalizers: false,
    generation: &["spec"],
    status: Some(|| None),
    status_meta: StatusMeta::Old,
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
