use serde_json::{Value, json};

use super::{TrackedObject, managers};

#[test]
fn an_applier_manages_what_it_applies() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    assert_eq!(tracked.content("data"), json!({"x": "1", "y": "1"}));
    assert_eq!(tracked.managers(), managers([("a Apply@1", json!({"f:data": {"f:x": {}, "f:y": {}}}))]));
}

#[test]
fn fields_no_longer_applied_are_removed() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    tracked.apply("a", json!({"data": {"y": "1"}})).unwrap();
    assert_eq!(tracked.content("data"), json!({"y": "1"}));
    assert_eq!(tracked.managers(), managers([("a Apply@2", json!({"f:data": {"f:y": {}}}))]));
    tracked.apply("a", json!({})).unwrap();
    assert_eq!(tracked.content("data"), Value::Null, "the emptied object is removed");
    assert_eq!(tracked.managers(), []);
}

#[test]
fn fields_shared_with_another_manager_are_kept() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    tracked.apply("b", json!({"data": {"x": "1"}})).unwrap();
    tracked.apply("a", json!({"data": {"y": "1"}})).unwrap();
    assert_eq!(tracked.content("data"), json!({"x": "1", "y": "1"}));
    assert_eq!(
        tracked.managers(),
        managers([
            ("b Apply", json!({"f:data": {"f:x": {}}})),
            ("a Apply@1", json!({"f:data": {"f:y": {}}}))
        ]),
        "timestamps record changes of the object: b never changed it, and a did not change it again"
    );
    tracked.apply("b", json!({})).unwrap();
    assert_eq!(tracked.content("data"), json!({"y": "1"}), "no manager is left");
}

#[test]
fn fields_of_an_updater_survive_an_apply_that_never_owned_them() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"data": {"mine": "1"}}));
    tracked.apply("a", json!({"data": {"x": "1"}})).unwrap();
    tracked.apply("a", json!({})).unwrap();
    assert_eq!(tracked.content("data"), json!({"mine": "1"}));
}

#[test]
fn reapplying_an_equal_configuration_keeps_the_timestamp() {
    let mut tracked = TrackedObject::config_map();
    let config = json!({"metadata": {"labels": {"l": "1"}}, "data": {"x": "1"}});
    let first = tracked.apply("a", config.clone()).unwrap().clone();
    assert_eq!(*tracked.apply("a", config).unwrap(), first);
}

#[test]
fn empty_objects_and_nulls_are_managed_as_leaves() {
    let mut tracked = TrackedObject::gizmo();
    tracked.apply("a", json!({"spec": {"nested": {}, "size": null}})).unwrap();
    assert_eq!(
        tracked.managers(),
        managers([("a Apply@1", json!({"f:spec": {"f:nested": {}, "f:size": {}}}))])
    );
}

#[test]
fn members_of_untyped_objects_are_managed_with_their_parents() {
    let mut tracked = TrackedObject::gizmo();
    tracked.apply("a", json!({"spec": {"free": {"o": {"p": 1}, "l": [1]}}})).unwrap();
    let fields = json!({"f:spec": {"f:free": {"f:l": {}, "f:o": {".": {}, "f:p": {}}}}});
    assert_eq!(tracked.managers(), managers([("a Apply@1", fields)]));
}

#[test]
fn the_first_apply_records_existing_fields_as_before_first_apply() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"data": {"x": "3", "z": "1"}}));
    tracked.patch("u", json!({"metadata": {"managedFields": [{}]}}));
    assert_eq!(tracked.managers(), []);
    tracked.patch("v", json!({"data": {"q": "1"}}));
    assert_eq!(tracked.managers(), [], "managers are not tracked before the first apply");
    tracked.apply("a", json!({"data": {"q": "1"}})).unwrap();
    assert_eq!(
        tracked.managers(),
        managers([
            ("a Apply", json!({"f:data": {"f:q": {}}})),
            ("before-first-apply Update@4", json!({"f:data": {".": {}, "f:q": {}, "f:x": {}, "f:z": {}}})),
        ])
    );
}

#[test]
fn identifying_metadata_has_no_manager() {
    let mut tracked = TrackedObject::config_map();
    tracked
        .apply("a", json!({"metadata": {"namespace": "n", "generation": 1, "labels": {"l": "1"}}}))
        .unwrap();
    assert_eq!(
        tracked.managers(),
        managers([("a Apply@1", json!({"f:metadata": {"f:labels": {"f:l": {}}}}))])
    );
}

#[test]
fn kubectl_takes_over_fields_of_client_side_apply() {
    let mut tracked = TrackedObject::config_map();
    let last = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1", "l": "1"}});
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let annotations = json!({annotation: last.to_string()});
    tracked.put(
        "kubectl-client-side-apply",
        json!({"metadata": {"annotations": annotations}, "data": {"k": "1", "l": "1"}}),
    );
    tracked.patch("somebody", json!({"data": {"l": "2"}}));

    let refused = tracked.apply("kubectl", json!({"data": {"k": "9", "l": "9"}})).unwrap_err();
    assert_eq!(
        refused.message, "Apply failed with 1 conflict: conflict with \"somebody\" using v1: .data.l",
        "k still has the value of the annotation"
    );
    tracked.apply("kubectl", json!({"data": {"k": "9"}})).unwrap();
    assert_eq!(tracked.content("data"), json!({"k": "9", "l": "2"}));
    let fast_update =
        json!({"apiVersion": "v1", "data": {"k": "9"}, "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(tracked.content("metadata")["annotations"][annotation], json!(format!("{fast_update}\n")));
}

#[test]
fn other_appliers_ignore_the_last_applied_annotation() {
    let mut tracked = TrackedObject::config_map();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    tracked.put("u", json!({"metadata": {"annotations": annotations}, "data": {"k": "1"}}));
    tracked.apply("a", json!({"data": {"k": "2"}})).unwrap_err();
    tracked.force("a", json!({"data": {"k": "2"}}));
    assert_eq!(tracked.content("metadata")["annotations"], annotations);
}

#[test]
fn emptied_objects_are_removed_and_stay_managed_by_their_creators() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"metadata": {"labels": {"l": "1"}}, "data": {"x": "1"}}));
    tracked.force("a", json!({"metadata": {"labels": {"l": "2"}}}));
    tracked.apply("a", json!({"data": {"x": "1"}})).unwrap();
    assert_eq!(tracked.content("metadata").get("labels"), None);
    let of_u = json!({"f:data": {".": {}, "f:x": {}}, "f:metadata": {"f:labels": {}}});
    assert_eq!(tracked.managers()[1], ("u Update@1".to_owned(), of_u));
}
