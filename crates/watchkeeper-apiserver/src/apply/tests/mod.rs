//! Apply by example and by property.

mod builtin;
mod conflicts;
mod fast_path;
mod growth;
mod laws;
mod lists;
mod ownership;
mod parts;
mod sets;
pub(crate) mod types;
mod updates;
mod versions;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Manager, OneVersion, Versions, WriteTarget, mask::Mask, track_update};
use crate::{kinds::GroupVersionKind, schema::TypeRef, status::ApiError};

/// An object with a sequence of writes, one second apart.
#[derive(Debug)]
struct TrackedObject {
    gvk: GroupVersionKind,
    ty: TypeRef,
    object: Option<Value>,
    seconds: i64,
    /// Whether the type counts as one that never changes.
    has_fixed_type: bool,
}

impl TrackedObject {
    fn new(api_version: &str, kind: &str, ty: TypeRef) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() };
        Self { gvk, ty, object: None, seconds: 0, has_fixed_type: true }
    }

    fn config_map() -> Self {
        Self::new("v1", "ConfigMap", types::config_map())
    }

    fn deployment() -> Self {
        Self::new("apps/v1", "Deployment", types::deployment())
    }

    fn gizmo() -> Self {
        Self::new("example.com/v1", "Gizmo", types::gizmo())
    }

    fn now(&mut self) -> Timestamp {
        self.seconds += 1;
        Timestamp::from_second(1_700_000_000 + self.seconds).unwrap()
    }

    fn with_identity(&self, mut object: Value) -> Value {
        let GroupVersionKind { group, version, kind } = &self.gvk;
        object["apiVersion"] =
            if group.is_empty() { json!(version) } else { json!(format!("{group}/{version}")) };
        object["kind"] = json!(kind);
        object["metadata"]["name"] = json!("a");
        object
    }

    fn write(
        &mut self,
        part: (&str, Mask),
        versions: &dyn Versions,
        write: impl FnOnce(Option<&Value>, &WriteTarget<'_>, Timestamp) -> Result<Value, ApiError>,
    ) -> Result<&Value, ApiError> {
        let now = self.now();
        let subject = WriteTarget {
            has_fixed_type: self.has_fixed_type,
            ..WriteTarget::new(&self.gvk, &self.ty, versions).through(part.0, part.1)
        };
        let mut object = write(self.object.as_ref(), &subject, now)?;
        object["metadata"]["uid"] = json!("u");
        Ok(self.object.insert(object))
    }

    fn apply_with(&mut self, name: &str, config: Value, force: bool) -> Result<&Value, ApiError> {
        let config = self.with_identity(config);
        self.write(("", Mask::All), &OneVersion, |live, subject, now| {
            super::apply(live, &config, subject, &Manager { name, now }, force)
        })
    }

    fn apply(&mut self, name: &str, config: Value) -> Result<&Value, ApiError> {
        self.apply_with(name, config, false)
    }

    fn force(&mut self, name: &str, config: Value) -> &Value {
        self.apply_with(name, config, true).unwrap()
    }

    /// Creates or replaces the object.
    fn put(&mut self, name: &str, object: Value) -> &Value {
        let object = self.with_identity(object);
        let written = self.write(("", Mask::All), &OneVersion, |live, subject, now| {
            let mut object = object;
            track_update(live, &mut object, subject, &Manager { name, now });
            Ok(object)
        });
        written.unwrap()
    }

    /// Applies a merge patch.
    fn patch(&mut self, name: &str, patch: Value) -> &Value {
        let object = crate::patch::merge(self.object.as_ref().unwrap(), patch);
        self.put(name, object)
    }

    fn content(&self, member: &str) -> Value {
        self.object.as_ref().and_then(|object| object.get(member)).cloned().unwrap_or_default()
    }

    /// Returns manager, operation and fields of each entry, with `@` and the seconds of its time if it has one.
    fn managers(&self) -> Vec<(String, Value)> {
        let entries = self.object.as_ref().unwrap()["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        entries
            .into_iter()
            .map(|entry| {
                let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
                let time: Option<Timestamp> = entry["time"].as_str().map(|time| time.parse().unwrap());
                let at =
                    time.map(|time| format!("@{}", time.as_second() - 1_700_000_000)).unwrap_or_default();
                let through = if text("subresource").is_empty() { "" } else { "/" };
                let manager =
                    format!("{}{through}{} {}{at}", text("manager"), text("subresource"), text("operation"));
                (manager, entry["fieldsV1"].clone())
            })
            .collect()
    }
}

fn managers<const N: usize>(expected: [(&str, Value); N]) -> Vec<(String, Value)> {
    expected.into_iter().map(|(manager, fields)| (manager.to_owned(), fields)).collect()
}
