//! The versions a kind is served in.

use serde_json::Value;

use super::Request;
use crate::{
    apply::Versions,
    convert::convert,
    kinds::{GroupVersionKind, Kind, Kinds},
    schema::TypeRef,
};

/// The other versions of the kind of a request, for managers that wrote in one of them.
#[derive(Debug)]
pub(super) struct ServedVersions<'a> {
    kind: &'a Kind,
    kinds: &'a Kinds,
}

impl<'a> ServedVersions<'a> {
    /// Those of the kind of `request`.
    pub(super) fn of(request: &'a Request) -> Self {
        Self { kind: &request.kind, kinds: &request.kinds }
    }
}

impl Versions for ServedVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, TypeRef)> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::new(group, version, self.kind.gvk.kind.as_str());
        let other = self.kinds.by_gvk(&gvk)?;
        Some((convert(object.clone(), self.kind, other), other.ty.clone()))
    }
}
