//! Properties that hold for every object.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::TrackedObject;
use crate::apply::{
    codec,
    path::same,
    walk::{Changes, EmptiedMember, compare, merge, owned, remove},
};

/// Generates specs of a gizmo. Mergeable lists and objects are not empty: an empty one that is applied over a full one is
/// removed with its content, and reappears with the next apply.
pub(super) fn spec() -> impl Strategy<Value = Value> {
    let name = prop_oneof![Just("x"), Just("y"), Just("z"), Just("w")];
    let item = (proptest::option::of(0..3_i64), proptest::option::of(0..3_i64));
    let items = proptest::collection::btree_map(name, item, 1..4)
        .prop_map(|items| items.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    let texts = |least| proptest::sample::subsequence(vec!["a", "b", "c", "d"], least..4).prop_shuffle();
    let free = prop_oneof![
        Just(json!({"p": 1})),
        Just(json!({"p": {"q": 1}})),
        Just(json!({"p": [1, {"q": null}], "r": {"s": "t"}})),
    ];
    let nested = proptest::collection::btree_map(prop_oneof![Just("x"), Just("y")], 0..3_i64, 1..3);
    let atom = proptest::collection::btree_map(prop_oneof![Just("a"), Just("b")], "[ab]", 0..3);
    (
        proptest::option::of(0..3_i64),
        proptest::option::of(items),
        proptest::option::of(texts(1)),
        proptest::option::of(texts(0)),
        proptest::option::of(free),
        proptest::option::of(nested),
        proptest::option::of(atom),
    )
        .prop_map(|(size, items, tags, plain, free, nested, atom)| {
            let items: Option<Vec<Value>> = items.map(|items| {
                let to_item = |(name, (v, w)): (&str, (Option<i64>, Option<i64>))| {
                    let mut item = json!({"name": name});
                    if let Some(v) = v {
                        item["v"] = json!(v);
                    }
                    if let Some(w) = w {
                        item["w"] = json!(w);
                    }
                    item
                };
                items.into_iter().map(to_item).collect()
            });
            let members = [
                ("size", size.map(|size| json!(size))),
                ("items", items.map(|items| json!(items))),
                ("tags", tags.map(|tags| json!(tags))),
                ("plain", plain.map(|plain| json!(plain))),
                ("free", free),
                ("nested", nested.map(|nested| json!(nested))),
                ("atom", atom.map(|atom| json!(atom))),
            ];
            members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
        })
        .prop_filter("something in the spec", |spec: &Value| {
            spec.as_object().is_some_and(|spec| !spec.is_empty())
        })
}

/// Generates writes: the manager, whether the write is an apply, and the object.
fn writes() -> impl Strategy<Value = Vec<(&'static str, bool, Value)>> {
    let manager = prop_oneof![Just("a"), Just("b"), Just("c")];
    proptest::collection::vec((manager, any::<bool>(), spec()), 1..6)
}

fn after(writes: Vec<(&'static str, bool, Value)>) -> TrackedObject {
    let mut tracked = TrackedObject::gizmo();
    for (manager, is_apply, spec) in writes {
        if is_apply {
            tracked.force(manager, json!({"spec": spec}));
        } else {
            tracked.put(manager, json!({"spec": spec}));
        }
    }
    tracked
}

fn object(spec: &Value) -> Value {
    TrackedObject::gizmo().with_identity(json!({"spec": spec}))
}

/// Returns a configuration with the members of a spec at even, or odd, indexes only.
fn half(spec: &Value, is_even: bool) -> Value {
    let names = ["atom", "free", "items", "nested", "plain", "size", "tags"];
    let is_mine = |name: &str| {
        names.iter().position(|other| *other == name).is_some_and(|index| (index % 2 == 0) == is_even)
    };
    let members: Map<String, Value> = spec
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_mine(name))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    if members.is_empty() { json!({}) } else { json!({"spec": members}) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn applying_is_idempotent(writes in writes(), spec in spec()) {
        let mut tracked = after(writes);
        let once = tracked.force("a", json!({"spec": spec.clone()})).clone();
        let twice = tracked.force("a", json!({"spec": spec})).clone();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_forced_configuration_can_be_applied_again_without_force(writes in writes(), spec in spec()) {
        let mut tracked = after(writes);
        let forced = tracked.force("a", json!({"spec": spec.clone()})).clone();
        prop_assert_eq!(tracked.apply("a", json!({"spec": spec})).unwrap(), &forced);
    }

    #[test]
    fn managers_of_different_fields_never_conflict(left in spec(), right in spec(), later in spec()) {
        let mut tracked = TrackedObject::gizmo();
        tracked.apply("a", half(&left, true)).unwrap();
        tracked.apply("b", half(&right, false)).unwrap();
        tracked.apply("a", half(&later, true)).unwrap();
        tracked.apply("b", half(&right, false)).unwrap();
    }

    #[test]
    fn every_managed_field_exists_or_was_emptied_by_an_apply(writes in writes()) {
        let tracked = after(writes);
        let object = tracked.object.clone().unwrap();
        // Compared with nothing, every path of the object is added.
        let all_paths = compare(None, Some(&object), &tracked.ty).unwrap().added;
        for (manager, fields) in tracked.managers() {
            let mut missing = codec::decode(&fields).unwrap();
            missing.subtract(&all_paths);
            let mut missing: Vec<_> = missing.paths().iter().map(ToString::to_string).collect();
            if manager.contains(" Update") {
                missing.retain(|path| !matches!(&**path, ".spec" | ".spec.nested" | ".spec.items" | ".spec.tags"));
                missing.retain(|path| !path.starts_with(".spec.free"));
            }
            prop_assert!(missing.is_empty(), "{} manages {:?} in {}", manager, missing, object);
        }
    }

    #[test]
    fn the_object_contains_every_applied_field(writes in writes(), spec in spec()) {
        let mut tracked = after(writes);
        let config = object(&spec);
        let applied = tracked.force("a", json!({"spec": spec})).clone();
        let again = merge(&applied, &config, &tracked.ty).unwrap();
        prop_assert!(same(&again, &applied), "{config} is not in {applied}");
    }

    #[test]
    fn comparing_an_object_with_itself_finds_no_difference(spec in spec()) {
        let (object, ty) = (object(&spec), TrackedObject::gizmo().ty);
        prop_assert_eq!(compare(Some(&object), Some(&object), &ty).unwrap(), Changes::default());
        prop_assert!(same(&merge(&object, &object, &ty).unwrap(), &object));
    }

    #[test]
    fn comparison_is_symmetric(left in spec(), right in spec()) {
        let (left, right, ty) = (object(&left), object(&right), TrackedObject::gizmo().ty);
        let all_paths = compare(Some(&left), Some(&right), &ty).unwrap();
        let back = compare(Some(&right), Some(&left), &ty).unwrap();
        prop_assert_eq!((all_paths.added, all_paths.removed, all_paths.modified), (back.removed, back.added, back.modified));
    }

    #[test]
    fn removing_every_owned_field_leaves_an_empty_object(spec in spec()) {
        let ty = TrackedObject::gizmo().ty;
        let object = object(&spec);
        let all = owned(&object, &ty).unwrap().with_structs(Some(&ty));
        // Empty lists of items have no manager, and stay where nothing around them is removed.
        let left = remove(&object, &all, &ty, EmptiedMember::Removed);
        prop_assert!(left.is_none_or(|left| left.get("spec").is_none_or(|spec| spec.as_object().unwrap().values().all(|value| value.as_array().is_some_and(Vec::is_empty)))));
    }
}
