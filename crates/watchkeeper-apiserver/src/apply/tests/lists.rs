use serde_json::json;

use super::{TrackedObject, managers};

#[test]
fn two_appliers_share_lists_item_by_item() {
    let mut tracked = TrackedObject::gizmo();
    let first = json!({"atom": {"a": "1"}, "items": [{"name": "x", "v": 1}], "plain": ["p"], "tags": ["a"]});
    tracked.apply("a", json!({"spec": first})).unwrap();
    tracked.apply("b", json!({"spec": {"items": [{"name": "y", "v": 2}], "tags": ["b"]}})).unwrap();
    assert_eq!(tracked.content("spec")["items"], json!([{"name": "x", "v": 1}, {"name": "y", "v": 2}]));
    assert_eq!(tracked.content("spec")["tags"], json!(["a", "b"]));

    tracked.apply("a", json!({"spec": {"tags": ["a", "b"]}})).unwrap();
    assert_eq!(tracked.content("spec"), json!({"items": [{"name": "y", "v": 2}], "tags": ["a", "b"]}));
    let of_b = json!({"f:spec": {"f:items": {"k:{\"name\":\"y\"}": {".": {}, "f:name": {}, "f:v": {}}},
        "f:tags": {"v:\"b\"": {}}}});
    let of_a = json!({"f:spec": {"f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}}});
    assert_eq!(tracked.managers(), managers([("b Apply@2", of_b), ("a Apply@3", of_a)]));
}

#[test]
fn applied_items_keep_the_order_of_the_applier_and_others_keep_their_order() {
    let cases = [
        (vec!["a", "b", "c"], vec!["c", "a"], vec!["b", "c", "a"]),
        (vec!["a", "b", "c"], vec!["a", "c"], vec!["a", "b", "c"]),
        (vec!["a", "b", "c"], vec!["c", "b", "a"], vec!["c", "b", "a"]),
        (vec!["a", "b"], vec!["n", "a"], vec!["n", "a", "b"]),
        (vec!["a", "b"], vec!["n"], vec!["a", "b", "n"]),
        (vec!["a", "b"], vec!["b", "n"], vec!["a", "b", "n"]),
        (vec![], vec!["n", "m"], vec!["n", "m"]),
        (vec!["a", "b"], vec![], vec!["a", "b"]),
    ];
    for (live, applied, expected) in cases {
        let mut tracked = TrackedObject::gizmo();
        tracked.put("u", json!({"spec": {"tags": live}}));
        tracked.apply("a", json!({"spec": {"tags": applied}})).unwrap();
        assert_eq!(tracked.content("spec")["tags"], json!(expected), "{live:?} with {applied:?} applied");
    }
}

#[test]
fn an_item_without_a_key_counts_as_having_its_default() {
    let mut tracked = TrackedObject::deployment();
    let template =
        |ports| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "ports": ports}]}}}});
    tracked.apply("a", template(json!([{"containerPort": 80}]))).unwrap();
    tracked.apply("b", template(json!([{"containerPort": 80, "protocol": "TCP", "name": "web"}]))).unwrap();
    tracked.apply("b", template(json!([{"containerPort": 80, "protocol": "UDP"}]))).unwrap();
    let ports = &tracked.content("spec")["template"]["spec"]["containers"][0]["ports"];
    assert_eq!(*ports, json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]));
    let path = "k:{\"containerPort\":80,\"protocol\":\"TCP\"}";
    let fields =
        &tracked.managers()[0].1["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"];
    assert_eq!(fields["f:ports"][path], json!({".": {}, "f:containerPort": {}}));
}

#[test]
fn duplicate_list_items_are_managed_as_one_atomic_item() {
    let mut tracked = TrackedObject::gizmo();
    tracked.put("u", json!({"spec": {"items": [{"name": "x", "v": 1}, {"name": "x", "v": 2}]}}));
    let fields = json!({"f:items": {".": {}, "k:{\"name\":\"x\"}": {}}});
    assert_eq!(tracked.managers()[0].1["f:spec"]["f:items"], fields["f:items"]);
    tracked.put("v", json!({"spec": {"items": [{"name": "x", "v": 2}]}}));
    let one = json!({"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:v": {}}});
    assert_eq!(tracked.managers().last().unwrap().1["f:spec"]["f:items"], one);
}

#[test]
fn removing_every_item_removes_the_list() {
    let mut tracked = TrackedObject::gizmo();
    tracked.apply("a", json!({"spec": {"size": 1, "items": [{"name": "x"}]}})).unwrap();
    tracked.apply("a", json!({"spec": {"size": 1}})).unwrap();
    assert_eq!(tracked.content("spec"), json!({"size": 1}));
}
