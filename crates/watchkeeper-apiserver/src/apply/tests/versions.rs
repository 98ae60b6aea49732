#![expect(clippy::needless_pass_by_value, reason = "objects written in place read better")]

use serde_json::{Value, json};

use super::{Manager, Mask, Timestamp, TrackedObject, Versions, managers, types};
use crate::{apply::track_update, schema::TypeRef};

/// Two versions of a gizmo: `v2` renames `spec.size` to `spec.nested.x`.
#[derive(Debug)]
struct TwoVersions;

impl Versions for TwoVersions {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, TypeRef)> {
        let mut object = object.clone();
        let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        object["apiVersion"] = json!(api_version);
        let spec = object.get_mut("spec").and_then(Value::as_object_mut);
        match (from.as_str(), api_version, spec) {
            (from, to, _) if from == to => {}
            (_, "example.com/v1", Some(spec)) => {
                if let Some(Value::Object(mut nested)) = spec.remove("nested") {
                    spec.extend(nested.remove("x").map(|size| ("size".to_owned(), size)));
                }
            }
            (_, "example.com/v2", Some(spec)) => {
                if let Some(size) = spec.remove("size") {
                    spec.insert("nested".to_owned(), json!({"x": size}));
                }
            }
            (_, "example.com/v1" | "example.com/v2", None) => {}
            _ => return None,
        }
        Some((object, types::gizmo()))
    }
}

/// Applies a configuration. A gizmo is stored in `v1`; a write in another version converts it there and back.
fn apply(
    tracked: &mut TrackedObject,
    version: &str,
    name: &str,
    spec: Value,
    force: bool,
) -> Result<(), String> {
    tracked.gvk.version = version.to_owned();
    let config = tracked.with_identity(json!({"spec": spec}));
    let to = format!("example.com/{version}");
    tracked.object = tracked.object.as_ref().map(|object| TwoVersions.convert(object, &to).unwrap().0);
    let applied = tracked.write(("", Mask::All), &TwoVersions, |live, subject, now: Timestamp| {
        crate::apply::apply(live, &config, subject, &Manager { name, now }, force)
    });
    applied.map(drop).map_err(|error| error.message)
}

#[test]
fn a_conflict_is_detected_in_the_api_version_of_the_other_manager() {
    let mut tracked = TrackedObject::gizmo();
    apply(&mut tracked, "v1", "a", json!({"size": 1}), false).unwrap();
    apply(&mut tracked, "v2", "b", json!({"nested": {"x": 1}}), false).unwrap();
    let refused = apply(&mut tracked, "v2", "b", json!({"nested": {"x": 2}}), false).unwrap_err();
    assert_eq!(refused, "Apply failed with 1 conflict: conflict with \"a\": .spec.size");
    apply(&mut tracked, "v2", "b", json!({"nested": {"x": 2}}), true).unwrap();
    assert_eq!(tracked.managers(), managers([("b Apply@4", json!({"f:spec": {"f:nested": {"f:x": {}}}}))]));
}

#[test]
fn an_applier_keeps_its_identity_across_api_versions() {
    let mut tracked = TrackedObject::gizmo();
    apply(&mut tracked, "v1", "a", json!({"size": 1, "plain": ["p"]}), false).unwrap();
    apply(&mut tracked, "v2", "a", json!({"plain": ["p"]}), false).unwrap();
    assert_eq!(tracked.content("spec"), json!({"plain": ["p"]}), "the fields applied in v1 were removed");
    assert_eq!(tracked.managers(), managers([("a Apply@2", json!({"f:spec": {"f:plain": {}}}))]));
}

#[test]
fn fields_managed_in_another_api_version_are_kept() {
    let mut tracked = TrackedObject::gizmo();
    apply(&mut tracked, "v1", "a", json!({"size": 1, "plain": ["p"]}), false).unwrap();
    apply(&mut tracked, "v2", "b", json!({"nested": {"x": 1}}), false).unwrap();
    apply(&mut tracked, "v1", "a", json!({"plain": ["p"]}), false).unwrap();
    assert_eq!(tracked.content("spec"), json!({"plain": ["p"], "size": 1}));
}

#[test]
fn managers_in_removed_api_versions_are_dropped() {
    let mut tracked = TrackedObject::gizmo();
    tracked.put("u", json!({"spec": {"size": 1}}));
    let fields = &mut tracked.object.as_mut().unwrap()["metadata"]["managedFields"][0];
    fields["apiVersion"] = json!("example.com/v0");
    let mut object = tracked.object.clone().unwrap();
    object["spec"]["plain"] = json!(["p"]);
    let name = "v";
    tracked
        .write(("", Mask::All), &TwoVersions, |live, subject, now| {
            track_update(live, &mut object, subject, &Manager { name, now });
            Ok(object)
        })
        .unwrap();
    assert_eq!(tracked.managers(), managers([("v Update@2", json!({"f:spec": {"f:plain": {}}}))]));
}

#[test]
fn fields_that_became_atomic_are_managed_as_a_whole() {
    let mut tracked = TrackedObject::gizmo();
    tracked.apply("a", json!({"spec": {"nested": {"x": 1}, "items": [{"name": "x"}]}})).unwrap();
    let nested = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties":
        {"x": {"type": "integer"}, "y": {"type": "integer"}}});
    tracked.ty = types::gizmo_with(
        &json!({"nested": nested, "items": {"type": "array", "items": {"type": "object"}}}),
    );
    tracked.patch("u", json!({"spec": {"size": 1}}));
    assert_eq!(tracked.managers()[0].1, json!({"f:spec": {"f:items": {}, "f:nested": {}}}));
    let refused = tracked.apply("b", json!({"spec": {"nested": {"y": 1}}})).unwrap_err();
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"a\": .spec.nested");
}
