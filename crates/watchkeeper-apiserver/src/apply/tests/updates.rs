use serde_json::{Value, json};

use super::{TrackedObject, managers};

#[test]
fn creating_an_object_manages_every_field_and_its_parents() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"metadata": {"labels": {"l": "1"}, "finalizers": ["f/x"]}, "data": {"k": "1"}}));
    let fields = json!({"f:data": {".": {}, "f:k": {}}, "f:metadata":
        {"f:finalizers": {".": {}, "v:\"f/x\"": {}}, "f:labels": {".": {}, "f:l": {}}}});
    assert_eq!(tracked.managers(), managers([("u Update@1", fields)]));
}

#[test]
fn non_pointer_structs_and_required_fields_are_not_managed_by_a_create() {
    let mut tracked = TrackedObject::deployment();
    let pod =
        json!({"containers": [{"name": "a", "image": "i", "resources": {}}], "volumes": [{"name": "v"}]});
    let template = json!({"metadata": {"labels": {"app": "d"}}, "spec": pod});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    let selector = json!({"matchLabels": {"app": "d"}});
    tracked.put("u", json!({"spec": {"selector": selector, "strategy": strategy, "template": template}}));
    let pod = json!({
        "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}},
        "f:volumes": {".": {}, "k:{\"name\":\"v\"}": {".": {}, "f:name": {}}},
    });
    let fields = json!({"f:spec": {
        "f:selector": {},
        "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
        "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": pod},
    }});
    assert_eq!(tracked.managers(), managers([("u Update@1", fields)]));
}

#[test]
fn a_new_custom_resource_is_managed_including_parent_objects() {
    let mut tracked = TrackedObject::gizmo();
    tracked.put("u", json!({"spec": {"nested": {"x": 1}}}));
    let fields = json!({"f:spec": {".": {}, "f:nested": {".": {}, "f:x": {}}}});
    assert_eq!(tracked.managers(), managers([("u Update@1", fields)]));
}

#[test]
fn an_update_takes_ownership_of_changed_fields_and_drops_removed_fields() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1", "y": "1", "z": "1"}})).unwrap();
    tracked.patch("u", json!({"data": {"x": "2", "y": null, "n": "1"}}));
    assert_eq!(
        tracked.managers(),
        managers([
            ("a Apply@1", json!({"f:data": {"f:z": {}}})),
            ("u Update@2", json!({"f:data": {"f:n": {}, "f:x": {}}}))
        ])
    );
}

#[test]
fn an_update_without_effect_changes_no_manager_and_no_time() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"data": {"x": "1"}}));
    let before = tracked.managers();
    tracked.patch("v", json!({"data": {"x": "1"}}));
    tracked.patch("u", json!({}));
    assert_eq!(tracked.managers(), before);
}

#[test]
fn a_put_without_managers_keeps_them() {
    let mut tracked = TrackedObject::config_map();
    tracked.apply("a", json!({"data": {"x": "1"}})).unwrap();
    tracked.put("u", json!({"data": {"x": "1", "y": "1"}}));
    assert_eq!(tracked.managers().len(), 2);
}

#[test]
fn managers_can_be_rewritten_by_an_update() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u", json!({"data": {"k": "1"}}));
    let entry = json!({"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}},
        "manager": "kubectl", "operation": "Apply", "time": "2020-01-01T02:00:00+02:00"});
    tracked.patch("x", json!({"metadata": {"managedFields": [entry]}}));
    let entry = &tracked.content("metadata")["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["time"]), (&json!("kubectl"), &json!("2020-01-01T00:00:00Z")));
    tracked.apply("kubectl", json!({"data": {"j": "1"}})).unwrap();
    assert_eq!(tracked.content("data"), json!({"j": "1"}));
}

#[test]
fn managers_that_cannot_be_read_are_ignored() {
    let complete = json!({"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}, "manager": "m", "operation": "Update"});
    let with = |member: &str, value: Value| {
        let mut entry = complete.clone();
        entry[member] = value;
        json!([entry])
    };
    for entries in [
        with("operation", json!("Bogus")),
        with("operation", json!(1)),
        with("apiVersion", json!("")),
        with("fieldsType", json!("FieldsV2")),
        with("fieldsType", json!(null)),
        with("fieldsV1", json!({"data": {}})),
        with("fieldsV1", json!({"k:[]": {}})),
        with("time", json!("yesterday")),
        json!([1]),
        json!("managers"),
        json!(null),
    ] {
        let mut tracked = TrackedObject::config_map();
        tracked.put("u", json!({"data": {"k": "1"}}));
        let before = tracked.managers();
        tracked.patch("u", json!({"metadata": {"managedFields": entries}}));
        assert_eq!(tracked.managers(), before, "{entries}");
    }
}

#[test]
fn an_empty_managed_fields_list_or_entry_resets_all_managers() {
    for entries in [json!([]), json!([{}]), json!([{"manager": "", "time": null}])] {
        let mut tracked = TrackedObject::config_map();
        tracked.put("u", json!({"data": {"k": "1"}}));
        tracked.patch("u", json!({"metadata": {"managedFields": entries}}));
        assert_eq!(tracked.managers(), [], "{entries}");
    }
}

#[test]
fn the_oldest_of_more_than_ten_updaters_are_merged() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("u0", json!({"data": {"k0": "1"}}));
    for number in 1..13 {
        let key = format!("k{number}");
        tracked.patch(&format!("u{number}"), json!({"data": {key: "1"}}));
        let expected = usize::min(number + 1, 10);
        assert_eq!(tracked.managers().len(), expected);
    }
    let oldest = json!({"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}});
    assert_eq!(tracked.managers()[0], ("ancient-changes Update@4".to_owned(), oldest));
    assert_eq!(tracked.managers()[1].0, "u4 Update@5");
}

#[test]
fn objects_that_cannot_be_compared_keep_their_managers() {
    let mut tracked = TrackedObject::gizmo();
    tracked.put("u", json!({"spec": {"items": [{"name": "x"}]}}));
    let before = tracked.managers();
    tracked.put("v", json!({"spec": {"items": [{"v": 1}, "x", null]}}));
    assert_eq!(tracked.managers(), before);
}

#[test]
fn a_manager_without_a_name_is_recorded_as_unknown() {
    let mut tracked = TrackedObject::config_map();
    tracked.put("", json!({"data": {"k": "1"}}));
    assert_eq!(tracked.managers()[0].0, "unknown Update@1");
}

#[test]
fn timestamps_are_restored_when_only_they_changed() {
    let mut tracked = TrackedObject::config_map();
    let live = tracked.put("u", json!({"data": {"k": "1"}})).clone();
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2030-01-01T00:00:00Z");
    let mut changed = new.clone();
    changed["data"]["k"] = json!("2");
    crate::apply::keep_times(&live, &mut new);
    assert_eq!(new, live);
    let expected = changed.clone();
    crate::apply::keep_times(&live, &mut changed);
    assert_eq!(changed, expected);
}
