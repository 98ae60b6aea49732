use serde_json::{Value, json};

use super::{OneVersion, TrackedObject, managers};
use crate::{
    apply::{
        Manager, Mask,
        options::{check_patch, manager_name},
        scale::{ReplicasPaths, to_parent, to_scale},
        track_update,
    },
    field::FieldErrorKind,
    kinds::GroupVersionKind,
    strategy::Part,
};

fn mask(group: &str, kind: &str, is_custom: bool, part: Part<'_>) -> Mask {
    let gvk = GroupVersionKind { group: group.into(), version: "v1".into(), kind: kind.into() };
    Mask::of(&gvk, is_custom, true, part)
}

fn write_part(tracked: &mut TrackedObject, part: Part<'_>, is_custom: bool, name: &str, patch: Value) {
    let mask = mask(&tracked.gvk.group, &tracked.gvk.kind, is_custom, part);
    let subresource = if let Part::Subresource(name) = part { name } else { "" };
    let mut object = crate::patch::merge(tracked.object.as_ref().unwrap_or(&Value::Null), patch);
    object = tracked.with_identity(object);
    let written = tracked.write((subresource, mask), &OneVersion, |live, subject, now| {
        track_update(live, &mut object, subject, &Manager { name, now });
        Ok(object)
    });
    written.unwrap();
}

#[test]
fn the_status_subresource_manages_only_the_status() {
    let mut tracked = TrackedObject::deployment();
    let both =
        json!({"metadata": {"labels": {"l": "1"}}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
    write_part(&mut tracked, Part::Main, false, "u", both);
    assert_eq!(tracked.managers()[0].1.get("f:status"), None);
    let both = json!({"metadata": {"labels": {"m": "1"}, "annotations": {"n": "1"}},
        "spec": {"replicas": 2}, "status": {"replicas": 2}});
    write_part(&mut tracked, Part::Subresource("status"), false, "ctl", both);
    let fields =
        json!({"f:metadata": {"f:annotations": {".": {}, "f:n": {}}}, "f:status": {"f:replicas": {}}});
    assert_eq!(tracked.managers()[1], ("ctl/status Update@2".to_owned(), fields));
}

#[test]
fn managers_sent_through_a_subresource_are_ignored() {
    let mut tracked = TrackedObject::deployment();
    write_part(&mut tracked, Part::Main, false, "u", json!({"spec": {"replicas": 1}}));
    let before = tracked.managers();
    let reset = json!({"metadata": {"managedFields": []}});
    write_part(&mut tracked, Part::Subresource("status"), false, "u", reset);
    assert_eq!(tracked.managers(), before);
}

#[test]
fn a_status_can_be_applied() {
    let mut tracked = TrackedObject::gizmo();
    tracked.apply("a", json!({"spec": {"size": 1}})).unwrap();
    let config = tracked.with_identity(json!({"metadata": {"labels": {"l": "1"}}, "status": {"s": 1}}));
    let mask = mask("example.com", "Gizmo", true, Part::Subresource("status"));
    tracked
        .write(("status", mask), &OneVersion, |live, subject, now| {
            crate::apply::apply(live, &config, subject, &Manager { name: "ctl", now }, false)
        })
        .unwrap();
    let expected = [
        ("a Apply@1", json!({"f:spec": {"f:size": {}}})),
        ("ctl/status Apply@2", json!({"f:status": {"f:s": {}}})),
    ];
    assert_eq!(tracked.managers(), managers(expected));
}

#[test]
fn the_resize_subresource_manages_only_container_fields() {
    let mut set = crate::apply::codec::decode(&json!({"f:spec": {
        "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:resources": {"f:limits": {}}}},
        "f:nodeName": {},
    }}))
    .unwrap();
    mask("", "Pod", false, Part::Subresource("resize")).apply(&mut set);
    let expected = json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:resources": {"f:limits": {}}}}}});
    assert_eq!(crate::apply::codec::encode(&set), expected);
}

#[test]
fn scaling_records_the_client_as_manager_of_replicas() {
    let paths = ReplicasPaths::default().with("apps/v1", Some(&["spec", "replicas"]));
    let mut tracked = TrackedObject::deployment();
    tracked.apply("a", json!({"spec": {"replicas": 1, "selector": {}}})).unwrap();
    let entries = tracked.content("metadata")["managedFields"].clone();
    let scale = to_scale(Some(&entries), &paths).unwrap().unwrap();
    assert_eq!(scale[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(scale[0]["apiVersion"], "autoscaling/v1");

    assert_eq!(to_parent(Some(&entries), Some(&scale), "apps/v1", &paths).unwrap().unwrap(), entries);
    let stolen = json!([{"manager": "hpa", "operation": "Update", "subresource": "scale", "apiVersion": "autoscaling/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}, "time": "2020-01-01T00:00:00Z"}]);
    let parent = to_parent(Some(&entries), Some(&stolen), "apps/v1", &paths).unwrap().unwrap();
    assert_eq!(parent[0]["fieldsV1"], json!({"f:spec": {"f:selector": {}}}));
    assert_eq!((&parent[1]["manager"], &parent[1]["apiVersion"]), (&json!("hpa"), &json!("apps/v1")));
    assert_eq!(parent[1]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
}

#[test]
fn the_manager_name_is_the_field_manager_or_the_user_agent() {
    assert_eq!(manager_name("m", "kubectl/v1"), "m");
    assert_eq!(manager_name("", "kubectl/v1.37 (linux)"), "kubectl");
    assert_eq!(manager_name("", "a\u{1}b/x"), "ab");
    assert_eq!(manager_name("", ""), "");
    assert_eq!(manager_name("", &"é".repeat(100)).len(), 128);
}

#[test]
fn patch_options_are_validated() {
    let kinds = |name: &str, force, is_apply| {
        let errors = check_patch(name, force, is_apply);
        errors.into_iter().map(|error| (error.kind, error.path)).collect::<Vec<_>>()
    };
    assert_eq!(kinds("m", Some(true), true), []);
    assert_eq!(kinds("", None, true), [(FieldErrorKind::Required, "fieldManager".to_owned())]);
    assert_eq!(kinds("", Some(false), false), [(FieldErrorKind::Forbidden, "force".to_owned())]);
    assert_eq!(kinds(&"x".repeat(129), None, false), [(FieldErrorKind::TooLong, "fieldManager".to_owned())]);
    let [error] = &*check_patch("bad\u{1}", None, false) else { panic!("one error") };
    assert_eq!(error.detail, "invalid character U+0001 (at position 3)");
}

#[test]
fn an_apply_fails_when_stored_managed_fields_are_malformed() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"data": {"k": "1"}}));
    tracked.object.as_mut().unwrap()["metadata"]["managedFields"][0]["operation"] = json!("Bogus");
    let error = tracked.apply("a", json!({})).unwrap_err();
    assert_eq!((error.code, error.reason), (500, ""));
    assert_eq!(error.message, "failed to decode managed fields: operation must be `Apply` or `Update`");
}
