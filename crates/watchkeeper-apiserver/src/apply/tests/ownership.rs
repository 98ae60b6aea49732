use serde_json::{Value, json};

use super::{World, managers};

#[test]
fn an_applier_manages_what_it_applies() {
    let mut world = World::config_map();
    world.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    assert_eq!(world.content("data"), json!({"x": "1", "y": "1"}));
    assert_eq!(world.managers(), managers([("a Apply@1", json!({"f:data": {"f:x": {}, "f:y": {}}}))]));
}

#[test]
fn what_an_applier_no_longer_applies_goes_away() {
    let mut world = World::config_map();
    world.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    world.apply("a", json!({"data": {"y": "1"}})).unwrap();
    assert_eq!(world.content("data"), json!({"y": "1"}));
    assert_eq!(world.managers(), managers([("a Apply@2", json!({"f:data": {"f:y": {}}}))]));
    world.apply("a", json!({})).unwrap();
    assert_eq!(world.content("data"), Value::Null, "nothing was left in it");
    assert_eq!(world.managers(), []);
}

#[test]
fn what_somebody_else_manages_too_stays() {
    let mut world = World::config_map();
    world.apply("a", json!({"data": {"x": "1", "y": "1"}})).unwrap();
    world.apply("b", json!({"data": {"x": "1"}})).unwrap();
    world.apply("a", json!({"data": {"y": "1"}})).unwrap();
    assert_eq!(world.content("data"), json!({"x": "1", "y": "1"}));
    assert_eq!(
        world.managers(),
        managers([
            ("b Apply", json!({"f:data": {"f:x": {}}})),
            ("a Apply@1", json!({"f:data": {"f:y": {}}}))
        ]),
        "times are of changes to the object: b never changed it, a did not this time"
    );
    world.apply("b", json!({})).unwrap();
    assert_eq!(world.content("data"), json!({"y": "1"}), "now nobody is left");
}

#[test]
fn what_an_updater_made_stays_when_an_applier_never_had_it() {
    let mut world = World::config_map();
    world.put("u", json!({"data": {"mine": "1"}}));
    world.apply("a", json!({"data": {"x": "1"}})).unwrap();
    world.apply("a", json!({})).unwrap();
    assert_eq!(world.content("data"), json!({"mine": "1"}));
}

#[test]
fn applying_the_same_again_changes_nothing_and_keeps_the_time() {
    let mut world = World::config_map();
    let config = json!({"metadata": {"labels": {"l": "1"}}, "data": {"x": "1"}});
    let first = world.apply("a", config.clone()).unwrap().clone();
    assert_eq!(*world.apply("a", config).unwrap(), first);
}

#[test]
fn empty_objects_and_nulls_are_managed_themselves() {
    let mut world = World::gizmo();
    world.apply("a", json!({"spec": {"nested": {}, "size": null}})).unwrap();
    assert_eq!(
        world.managers(),
        managers([("a Apply@1", json!({"f:spec": {"f:nested": {}, "f:size": {}}}))])
    );
}

#[test]
fn members_of_something_free_are_managed_with_the_objects_around_them() {
    let mut world = World::gizmo();
    world.apply("a", json!({"spec": {"free": {"o": {"p": 1}, "l": [1]}}})).unwrap();
    let fields = json!({"f:spec": {"f:free": {"f:l": {}, "f:o": {".": {}, "f:p": {}}}}});
    assert_eq!(world.managers(), managers([("a Apply@1", fields)]));
}

#[test]
fn the_first_apply_to_an_object_without_managers_remembers_what_was_there() {
    let mut world = World::config_map();
    world.put("u", json!({"data": {"x": "3", "z": "1"}}));
    world.patch("u", json!({"metadata": {"managedFields": [{}]}}));
    assert_eq!(world.managers(), []);
    world.patch("v", json!({"data": {"q": "1"}}));
    assert_eq!(world.managers(), [], "nobody is followed until somebody applies");
    world.apply("a", json!({"data": {"q": "1"}})).unwrap();
    assert_eq!(
        world.managers(),
        managers([
            ("a Apply", json!({"f:data": {"f:q": {}}})),
            ("before-first-apply Update@4", json!({"f:data": {".": {}, "f:q": {}, "f:x": {}, "f:z": {}}})),
        ])
    );
}

#[test]
fn what_names_the_object_is_nobodys() {
    let mut world = World::config_map();
    world.apply("a", json!({"metadata": {"namespace": "n", "generation": 1, "labels": {"l": "1"}}})).unwrap();
    assert_eq!(world.managers(), managers([("a Apply@1", json!({"f:metadata": {"f:labels": {"f:l": {}}}}))]));
}

#[test]
fn kubectl_takes_over_what_client_side_apply_set() {
    let mut world = World::config_map();
    let last = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1", "l": "1"}});
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let annotations = json!({annotation: last.to_string()});
    world.put(
        "kubectl-client-side-apply",
        json!({"metadata": {"annotations": annotations}, "data": {"k": "1", "l": "1"}}),
    );
    world.patch("somebody", json!({"data": {"l": "2"}}));

    let refused = world.apply("kubectl", json!({"data": {"k": "9", "l": "9"}})).unwrap_err();
    assert_eq!(
        refused.message, "Apply failed with 1 conflict: conflict with \"somebody\" using v1: .data.l",
        "k still is as the annotation has it"
    );
    world.apply("kubectl", json!({"data": {"k": "9"}})).unwrap();
    assert_eq!(world.content("data"), json!({"k": "9", "l": "2"}));
    let renewed =
        json!({"apiVersion": "v1", "data": {"k": "9"}, "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(world.content("metadata")["annotations"][annotation], json!(format!("{renewed}\n")));
}

#[test]
fn other_appliers_neither_use_nor_renew_the_annotation_of_client_side_apply() {
    let mut world = World::config_map();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    world.put("u", json!({"metadata": {"annotations": annotations}, "data": {"k": "1"}}));
    world.apply("a", json!({"data": {"k": "2"}})).unwrap_err();
    world.force("a", json!({"data": {"k": "2"}}));
    assert_eq!(world.content("metadata")["annotations"], annotations);
}

#[test]
fn what_was_emptied_goes_away_and_is_still_managed_by_those_who_made_it() {
    let mut world = World::config_map();
    world.put("u", json!({"metadata": {"labels": {"l": "1"}}, "data": {"x": "1"}}));
    world.force("a", json!({"metadata": {"labels": {"l": "2"}}}));
    world.apply("a", json!({"data": {"x": "1"}})).unwrap();
    assert_eq!(world.content("metadata").get("labels"), None);
    let of_u = json!({"f:data": {".": {}, "f:x": {}}, "f:metadata": {"f:labels": {}}});
    assert_eq!(world.managers()[1], ("u Update@1".to_owned(), of_u));
}
