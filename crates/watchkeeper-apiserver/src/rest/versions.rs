//! The served versions of a kind.

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
    /// Creates the versions of the kind of `request`.
    pub(super) fn of(request: &'a Request) -> Self {
        Self { kind: &request.kind, kinds: &request.kinds }
    }

    /// Returns the kind in `api_version`, if it is served in that version.
    fn find(&self, api_version: &str) -> Option<&'a Kind> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::new(group, version, self.kind.gvk.kind.as_str());
        self.kinds.by_gvk(&gvk).map(|kind| &**kind)
    }
}

impl Versions for ServedVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, TypeRef)> {
        let to = self.find(api_version)?;
        // Apply prunes in the last applied version and converts back from it, so objects arrive in any version.
        let from = object.get("apiVersion").and_then(Value::as_str).and_then(|version| self.find(version));
        Some((convert(object.clone(), from.unwrap_or(self.kind), to), to.ty.clone()))
    }
}
