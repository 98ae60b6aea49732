use serde_json::{Value, json};

use super::{TrackedObject, managers};

fn causes(status: &Value) -> Vec<(&str, &str)> {
    let causes = status["details"]["causes"].as_array().unwrap();
    assert!(causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict"));
    causes
        .iter()
        .map(|cause| (cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
        .collect()
}

#[test]
fn changing_a_field_of_another_manager_is_a_conflict() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    let before = tracked.object.clone();
    let status = tracked.apply("b", json!({"data": {"x": "2"}})).unwrap_err().to_status();
    assert_eq!((&status["code"], &status["reason"]), (&json!(409), &json!("Conflict")));
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"a\": .data.x");
    assert_eq!(causes(&status), [(".data.x", "conflict with \"a\"")]);
    assert_eq!(tracked.object, before);
}

#[test]
fn a_conflict_lists_every_field_and_manager() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"data": {"z": "1"}}));
    tracked.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    let status = tracked.apply("b", json!({"data": {"x": "2", "y": "2", "z": "2"}})).unwrap_err().to_status();
    assert_eq!(
        status["message"],
        "Apply failed with 3 conflicts: conflicts with \"a\":\n- .data.x\n- .data.y\nconflicts with \"u\" using v1:\n- \
         .data.z"
    );
    let expected = [
        (".data.x", "conflict with \"a\""),
        (".data.y", "conflict with \"a\""),
        (".data.z", "conflict with \"u\" using v1"),
    ];
    assert_eq!(causes(&status), expected);
}

#[test]
fn force_transfers_ownership_of_the_field() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    tracked.force("b", json!({"data": {"x": "2"}}));
    assert_eq!(tracked.content("data"), json!({"x": "2", "y": "1"}));
    assert_eq!(
        tracked.managers(),
        managers([
            ("a Apply@1", json!({"f:data": {"f:y": {}}})),
            ("b Apply@2", json!({"f:data": {"f:x": {}}}))
        ])
    );
}

#[test]
fn force_leaves_an_updater_the_parents_of_its_fields() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"data": {"x": "1"}}));
    tracked.force("a", json!({"data": {"x": "2"}}));
    assert_eq!(
        tracked.managers(),
        managers([("a Apply@2", json!({"f:data": {"f:x": {}}})), ("u Update@1", json!({"f:data": {}}))])
    );
}

#[test]
fn applying_an_equal_value_shares_ownership() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1"}})).unwrap();
    tracked.apply("b", json!({"data": {"x": "1"}})).unwrap();
    let fields = json!({"f:data": {"f:x": {}}});
    assert_eq!(tracked.managers(), managers([("b Apply", fields.clone()), ("a Apply@1", fields)]));
    tracked.apply("a", json!({"data": {"x": "2"}})).unwrap_err();
}

#[test]
fn atomic_values_conflict_as_a_whole_and_keyed_items_by_member() {
    let mut tracked = TrackedObject::gizmo();
    let spec = json!({"atom": {"a": "1"}, "items": [{"name": "x", "v": 1}], "plain": ["p"], "tags": ["t"]});
    tracked.apply("a", json!({"spec": spec})).unwrap();
    let refused = |tracked: &mut TrackedObject, spec: Value| {
        let status = tracked.apply("b", json!({"spec": spec})).unwrap_err().to_status();
        causes(&status).into_iter().map(|(field, _)| field.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        refused(&mut tracked, json!({"items": [{"name": "x", "v": 3}]})),
        [".spec.items[name=\"x\"].v"]
    );
    assert_eq!(
        refused(&mut tracked, json!({"atom": {"b": "1"}, "plain": ["q"]})),
        [".spec.atom", ".spec.plain"]
    );
    tracked
        .apply("b", json!({"spec": {"items": [{"name": "x", "w": 1}, {"name": "y"}], "tags": ["t", "u"]}}))
        .unwrap();
    assert_eq!(tracked.content("spec")["items"], json!([{"name": "x", "v": 1, "w": 1}, {"name": "y"}]));
}

#[test]
fn applied_configurations_of_another_kind_or_with_managed_fields_are_bad_requests() {
    let mut tracked = TrackedObject::config_map();
    let managed = tracked.apply("a", json!({"metadata": {"managedFields": []}})).unwrap_err();
    assert_eq!((managed.code, &*managed.message), (400, "metadata.managedFields must be nil"));
    tracked.apply("a", json!({"metadata": {"managedFields": null}})).unwrap();

    tracked.gvk.kind = "Secret".into();
    let config = tracked.with_identity(json!({}));
    tracked.gvk.kind = "ConfigMap".into();
    let subject = super::WriteTarget::new(&tracked.gvk, &tracked.ty, &super::OneVersion);
    let manager = super::Manager { name: "a", now: jiff::Timestamp::UNIX_EPOCH };
    for (config, message) in [
        (config, "invalid object type: /v1, Kind=Secret"),
        (json!({}), "invalid object type: /, Kind="),
        (json!([]), "error decoding patch: an applied configuration must be an object"),
    ] {
        let error = crate::apply::apply(None, &config, &subject, &manager, true).unwrap_err();
        assert_eq!((error.code, &*error.message), (400, message));
    }
}

#[test]
fn applied_configurations_that_violate_the_schema_are_rejected_with_paths() {
    let cases = [
        (json!({"spce": {}}), ".spce: field not declared in schema"),
        (json!({"spec": {"tags": ["a", "a"]}}), ".spec.tags: duplicate entries for key [=\"a\"]"),
        (
            json!({"spec": {"items": [{"v": 1}]}}),
            ".spec.items: element 0: associative list with keys has an element \
            that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"spec": {"items": [{"name": "x", "q": 1}]}}),
            ".spec.items[name=\"x\"].q: field not declared in schema",
        ),
        (
            json!({"spec": {"items": ["x"]}}),
            ".spec.items: element 0: associative list with keys may not have non-map \
            elements",
        ),
        (json!({"spec": {"size": "big"}}), ".spec.size: expected numeric (int or float), got string"),
        (json!({"spec": {"plain": "p"}}), ".spec.plain: expected list, got string"),
        (json!({"spec": {"plain": ["p", 1]}}), ".spec.plain[1]: expected string, got int64"),
        (json!({"spec": []}), ".spec: expected map, got list"),
        (
            json!({"spec": {"tags": [{}, 1]}}),
            ".spec.tags: element 0: associative list without keys has an element \
            that's a map type",
        ),
        (
            json!({"spec": {"size": "big", "plain": "p"}}),
            "errors:\n  .spec.plain: expected list, got string\n  \
            .spec.size: expected numeric (int or float), got string",
        ),
    ];
    for (config, expected) in cases {
        let status = TrackedObject::gizmo().apply("a", config).unwrap_err().to_status();
        let expected =
            format!("failed to create typed patch object (/a; example.com/v1, Kind=Gizmo): {expected}");
        assert_eq!((&status["code"], &status["message"]), (&json!(500), &json!(expected)));
        assert_eq!(status.get("reason"), None);
    }
}
