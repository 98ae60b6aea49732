#![expect(clippy::needless_pass_by_value, reason = "objects written in place read better")]

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    apply::tests::types::{config_map, deployment},
    patch::strategic,
};

fn pod(spec: Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

/// Returns the pod spec of a deployment after a patch.
fn patched_pod(before: Value, patch: Value) -> Value {
    let after = strategic(&pod(before), &pod(patch), &deployment()).unwrap();
    after["spec"]["template"]["spec"].clone()
}

fn refused(object: &Value, patch: &Value) -> (u16, String) {
    let error = strategic(object, patch, &deployment()).unwrap_err();
    assert_eq!(error.reason, if error.code == 400 { "BadRequest" } else { "" });
    (error.code, error.message)
}

#[test]
fn items_with_the_same_key_merge_and_new_ones_come_first() {
    let before = json!({"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]});
    let patch = json!({"containers": [{"name": "b", "image": "b:2"}]});
    let after = patched_pod(before.clone(), patch);
    assert_eq!(after["containers"], json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]));
    let after = patched_pod(before, json!({"containers": [{"name": "c", "image": null}]}));
    assert_eq!(after["containers"][0], json!({"name": "c"}));
    assert_eq!(after["containers"].as_array().unwrap().len(), 3);
}

#[test]
fn nested_lists_merge_too() {
    let before = json!({"containers": [{"name": "a", "env": [{"name": "E1", "value": "1"}, {"name": "E2", "value": "2"}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}]}]});
    let patch = json!({"containers": [{"name": "a", "env": [{"name": "E2", "value": "22"}, {"name": "E3", "value": "3"}],
        "ports": [{"containerPort": 80, "name": "web"}]}]});
    let container = &patched_pod(before, patch)["containers"][0];
    let env =
        json!([{"name": "E1", "value": "1"}, {"name": "E2", "value": "22"}, {"name": "E3", "value": "3"}]);
    assert_eq!(container["env"], env);
    assert_eq!(container["ports"], json!([{"containerPort": 80, "name": "web", "protocol": "TCP"}]));
}

#[test]
fn items_can_be_deleted_and_lists_replaced() {
    let before = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    let after = patched_pod(
        before.clone(),
        json!({"containers": [{"$patch": "delete", "name": "b"}, {"name": "d"}]}),
    );
    assert_eq!(after["containers"], json!([{"name": "d"}, {"name": "a"}, {"name": "c"}]));
    let after = patched_pod(before.clone(), json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}));
    assert_eq!(after["containers"], json!([{"name": "z"}]));
    let after = patched_pod(before, json!({"containers": [{"$patch": "delete", "name": "nobody"}]}));
    assert_eq!(after["containers"].as_array().unwrap().len(), 3);
}

#[test]
fn set_element_order_orders_merged_items() {
    let before = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    let name = |name: &str| json!({"name": name});
    let cases = [
        (json!({"$setElementOrder/containers": [name("c"), name("a")]}), vec!["b", "c", "a"]),
        (json!({"$setElementOrder/containers": [name("a"), name("c")]}), vec!["a", "b", "c"]),
        (json!({"$setElementOrder/containers": [name("c"), name("b"), name("a")]}), vec!["c", "b", "a"]),
        (
            json!({"$setElementOrder/containers": [name("a"), name("n"), name("c")],
                "containers": [name("n"), {"$patch": "delete", "name": "b"}]}),
            vec!["a", "n", "c"],
        ),
    ];
    for (patch, expected) in cases {
        let after = patched_pod(before.clone(), patch.clone());
        let names: Vec<_> = after["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{patch}");
        assert_eq!(after.as_object().unwrap().len(), 1, "no directive stays");
    }
    let patch = json!({"$setElementOrder/volumes": [{"name": "v"}], "volumes": [{"name": "v"}]});
    assert_eq!(patched_pod(before, patch)["volumes"], json!([{"name": "v"}]), "a list that was not there");
}

#[test]
fn a_set_element_order_that_contradicts_the_patch_is_rejected() {
    let before = pod(json!({"containers": [{"name": "a"}]}));
    let patch = pod(json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}));
    let (code, message) = refused(&before, &patch);
    assert_eq!(code, 500);
    assert!(message.starts_with("The order in patch list:\n[map[name:b]]\n"), "{message}");
    let patch = pod(json!({"$setElementOrder": [{"name": "a"}]}));
    assert_eq!(refused(&before, &patch), (400, "invalid patch format of setElementOrder list".to_owned()));
}

#[test]
fn lists_of_primitives_merge_and_items_can_be_deleted() {
    let ty = config_map();
    let patched = |before: &[&str], patch: Value| {
        let object = json!({"metadata": {"finalizers": before}});
        strategic(&object, &json!({"metadata": patch}), &ty).unwrap()["metadata"].clone()
    };
    assert_eq!(patched(&["a", "b"], json!({"finalizers": ["c"]})), json!({"finalizers": ["c", "a", "b"]}));
    assert_eq!(
        patched(&["a", "b"], json!({"finalizers": ["b", "c"]})),
        json!({"finalizers": ["a", "b", "c"]})
    );
    assert_eq!(patched(&["a", "b"], json!({"finalizers": ["b", "b"]})), json!({"finalizers": ["a", "b"]}));
    let deleted = json!({"$deleteFromPrimitiveList/finalizers": ["a", "x"]});
    assert_eq!(patched(&["a", "b", "c"], deleted), json!({"finalizers": ["b", "c"]}));
    let ordered = json!({"$setElementOrder/finalizers": ["c", "d", "b"], "finalizers": ["d"]});
    assert_eq!(patched(&["c", "b"], ordered), json!({"finalizers": ["c", "d", "b"]}));
    let both = json!({"$deleteFromPrimitiveList/finalizers": ["b"], "$setElementOrder/finalizers": ["n", "a"], "finalizers": ["n"]});
    assert_eq!(patched(&["a", "b"], both), json!({"finalizers": ["n", "a"]}));
}

#[test]
fn lists_that_do_not_merge_are_replaced() {
    let before = json!({"tolerations": [{"key": "k"}], "containers": [{"name": "a", "args": ["x"]}]});
    let after = patched_pod(
        before,
        json!({"tolerations": [{"key": "l"}], "containers": [{"name": "a", "args": ["y"]}]}),
    );
    assert_eq!(after["tolerations"], json!([{"key": "l"}]));
    assert_eq!(after["containers"], json!([{"name": "a", "args": ["y"]}]));
}

#[test]
fn maps_can_be_replaced_and_emptied() {
    let object = json!({"metadata": {"labels": {"x": "1", "y": "2"}}, "data": {"k": "1"}});
    let patched = |patch: Value| strategic(&object, &patch, &config_map()).unwrap();
    let replaced = patched(json!({"metadata": {"labels": {"$patch": "replace", "only": "1"}}}));
    assert_eq!(replaced["metadata"]["labels"], json!({"only": "1"}));
    assert_eq!(patched(json!({"data": {"$patch": "delete"}}))["data"], json!({}));
    assert_eq!(patched(json!({"data": null})).get("data"), None);
    assert_eq!(patched(json!({"data": {"k": null, "l": "2", "m": null}}))["data"], json!({"l": "2"}));
    let whole = patched(json!({"$patch": "replace", "metadata": {"name": "a"}}));
    assert_eq!(whole, json!({"metadata": {"name": "a"}}));
    let nothing = patched(json!({"metadata": {"annotations": {"$patch": "delete"}}}));
    assert_eq!(nothing["metadata"].get("annotations"), None);
}

#[test]
fn retain_keys_removes_all_other_keys() {
    let object = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let after = strategic(&object, &patch, &deployment()).unwrap();
    assert_eq!(after, json!({"spec": {"strategy": {"type": "Recreate"}}}));
    let after = patched_pod(
        json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"volumes": [{"$retainKeys": ["name", "configMap"], "name": "v", "configMap": {"name": "c"}}]}),
    );
    assert_eq!(after["volumes"], json!([{"name": "v", "configMap": {"name": "c"}}]));
    for keys in [json!(["rollingUpdate"]), json!("type")] {
        let patch = json!({"spec": {"strategy": {"$retainKeys": keys, "type": "Recreate"}}});
        assert_eq!(refused(&object, &patch), (400, "invalid patch format of retainKeys".to_owned()));
    }
}

#[test]
fn invalid_directives_and_items_are_rejected() {
    let before = pod(json!({"containers": [{"name": "z", "ports": [{"containerPort": 1}]}]}));
    let containers = |items: Value| pod(json!({"containers": items}));
    let cases = [
        (
            containers(json!([{"image": "nokey"}])),
            "map: map[image:nokey] does not contain declared merge key: name",
        ),
        (
            containers(json!([{"$patch": "bogus", "name": "z"}])),
            "unknown patch type: bogus in map: map[$patch:bogus name:z]",
        ),
        (
            containers(json!([{"$patch": "merge", "name": "z"}])),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            containers(json!([{"$patch": "delete"}])),
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            containers(json!(["x"])),
            "list element types are not identical: [[map[name:z ports:[map[containerPort:1]]]] [x]]",
        ),
        (json!({"spec": {"$patch": "merge"}}), "unknown patch type: merge in map: map[$patch:merge]"),
        (
            pod(json!({"$setElementOrder/sidecars": [{"name": "a"}]})),
            "unable to find api field in struct struct for the json field \"sidecars\"",
        ),
        (
            pod(json!({"$setElementOrder/containers": [{"image": "a"}]})),
            "map: map[image:a] does not contain declared merge key: name",
        ),
        (pod(json!({"$setElementOrder/containers": 1})), "expected a []interface {}, but received a int64"),
        (
            pod(json!({"$setElementOrder/volumes": [{"name": "v"}], "volumes": []})),
            "no elements in any of the given slices",
        ),
    ];
    for (patch, expected) in cases {
        assert_eq!(refused(&before, &patch), (500, expected.to_owned()));
    }
    let patch = pod(json!({"$deleteFromPrimitiveListcontainers": []}));
    assert_eq!(refused(&before, &patch), (400, "invalid patch format of primitive list".to_owned()));
}

#[test]
fn long_lists_merge_quickly() {
    let finalizers =
        |from: usize| (from..from + 50_000).map(|number| json!(format!("f/{number}"))).collect::<Value>();
    let object = json!({"metadata": {"finalizers": finalizers(0)}});
    let patch = json!({"metadata": {"finalizers": finalizers(25_000)}});
    let after = strategic(&object, &patch, &config_map()).unwrap();
    assert_eq!(after["metadata"]["finalizers"].as_array().unwrap().len(), 75_000);
}

fn names() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(vec!["a", "b", "c", "d", "e"], 1..5).prop_shuffle()
}

proptest! {
    /// Clients change a list into another one by deleting, adding and giving the order.
    #[test]
    fn a_diff_of_two_lists_yields_the_second_list(before in names(), after in names()) {
        let item = |name: &&str| json!({"name": name});
        let patch_items: Vec<_> = after.iter().filter(|name| !before.contains(name)).map(item)
            .chain(before.iter().filter(|name| !after.contains(name)).map(|name| json!({"$patch": "delete", "name": name})))
            .collect();
        let object = pod(json!({"containers": before.iter().map(item).collect::<Vec<_>>()}));
        let patch = pod(json!({
            "$setElementOrder/containers": after.iter().map(item).collect::<Vec<_>>(),
            "containers": patch_items,
        }));
        let patched = strategic(&object, &patch, &deployment()).unwrap();
        let expected: Vec<_> = after.iter().map(item).collect();
        prop_assert_eq!(&patched["spec"]["template"]["spec"]["containers"], &json!(expected));
    }

    #[test]
    fn arbitrary_objects_as_patches_do_not_panic(object in super::object(), patch in super::object()) {
        let _ = strategic(&object, &patch, &deployment());
        let _ = strategic(&pod(object.clone()), &pod(patch.clone()), &deployment());
        let wrapped = |key: &str, value: &Value| pod(json!({"containers": value, key: value}));
        for key in ["$setElementOrder/containers", "$deleteFromPrimitiveList/containers", "$retainKeys", "$patch"] {
            let _ = strategic(&wrapped("volumes", &object["a"]), &wrapped(key, &patch["a"]), &deployment());
        }
    }
}
