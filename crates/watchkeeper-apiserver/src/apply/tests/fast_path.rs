//! Updates that move no field between managers.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Manager, OneVersion, TrackedObject, WriteTarget, laws::spec};
use crate::apply::{fast_path::fast_update, track::Comparisons};

/// A write of a sequence.
#[derive(Debug, Clone)]
enum Write {
    Apply(Value),
    /// A new object without managers.
    Put(Value),
    /// The stored object with another spec, including managers.
    PutBack(Value),
    /// A change of one number, as controllers do.
    Resize(u8),
    /// The removal of the number.
    Shrink,
    /// A label, which another manager may have set before.
    Label(u8),
    /// An empty list of managers, which resets them.
    Reset,
}

fn write() -> impl Strategy<Value = (&'static str, Write)> {
    let manager = prop_oneof![3 => Just("a"), 1 => Just("b"), 1 => Just("c")];
    let what = prop_oneof![
        1 => spec().prop_map(Write::Apply),
        1 => spec().prop_map(Write::Put),
        1 => spec().prop_map(Write::PutBack),
        6 => (0_u8..3).prop_map(Write::Resize),
        1 => Just(Write::Shrink),
        2 => (0_u8..3).prop_map(Write::Label),
        1 => Just(Write::Reset),
    ];
    (manager, what)
}

fn follow(tracked: &mut TrackedObject, manager: &str, write: &Write) {
    let mut object = tracked.object.clone().unwrap_or_else(|| json!({"spec": {}}));
    match write {
        Write::Apply(spec) => {
            tracked.force(manager, json!({"spec": spec}));
            return;
        }
        Write::Put(spec) => object = json!({"spec": spec}),
        Write::PutBack(spec) => object["spec"] = spec.clone(),
        Write::Resize(size) => object["spec"]["size"] = json!(size),
        Write::Shrink => _ = object["spec"].as_object_mut().map(|spec| spec.remove("size")),
        Write::Label(value) => object["metadata"]["labels"] = json!({"a": value.to_string()}),
        Write::Reset => object["metadata"]["managedFields"] = json!([{}]),
    }
    tracked.put(manager, object);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_fast_path_produces_the_same_object_as_the_full_update(
        history in proptest::collection::vec(write(), 1..16),
    ) {
        let mut short = TrackedObject::gizmo();
        let mut long = TrackedObject { has_fixed_type: false, ..TrackedObject::gizmo() };
        for (manager, write) in &history {
            follow(&mut short, manager, write);
            follow(&mut long, manager, write);
            prop_assert_eq!(&short.object, &long.object, "after {:?} by {}", write, manager);
        }
    }
}

/// Returns whether a PUT of `new` by `manager` takes the fast path.
fn takes_fast_path(tracked: &mut TrackedObject, manager: &str, new: &Value) -> bool {
    let live = tracked.object.clone().unwrap();
    let now = tracked.now();
    let mut new = new.clone();
    let mut given = new["metadata"].as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
    let subject =
        WriteTarget { has_fixed_type: true, ..WriteTarget::new(&tracked.gvk, &tracked.ty, &OneVersion) };
    let mut comparisons = Comparisons::new(Some(&live), &new, &subject);
    let changes = comparisons.at(&subject.api_version).unwrap().unwrap();
    let before = &live["metadata"]["managedFields"];
    fast_update(before, &mut given, changes, &subject, &Manager { name: manager, now }).is_some()
}

#[test]
fn the_fast_path_applies_to_changes_of_own_fields_only() {
    let mut tracked = TrackedObject::gizmo();
    tracked.put("a", json!({"spec": {"size": 1, "plain": "x"}}));
    let mut resized = tracked.object.clone().unwrap();
    resized["spec"]["size"] = json!(2);
    assert!(takes_fast_path(&mut tracked, "a", &resized), "own field");
    assert!(!takes_fast_path(&mut tracked, "b", &resized), "a field of another manager");

    let mut without = resized.clone();
    without["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert!(takes_fast_path(&mut tracked, "a", &without), "omitted managers are kept");
    without["metadata"]["managedFields"] = json!([]);
    assert!(!takes_fast_path(&mut tracked, "a", &without), "an empty list resets the managers");

    let mut smaller = resized.clone();
    smaller["spec"].as_object_mut().unwrap().remove("plain");
    assert!(!takes_fast_path(&mut tracked, "a", &smaller), "a removed field has no manager");
    let mut larger = resized;
    larger["spec"]["tags"] = json!(["t"]);
    assert!(!takes_fast_path(&mut tracked, "a", &larger), "a field that is new gets its first manager");
}

#[test]
fn the_fast_path_keeps_managers_ordered_by_time() {
    let mut tracked = TrackedObject::gizmo();
    tracked.put("a", json!({"spec": {"size": 1}}));
    tracked.patch("b", json!({"spec": {"plain": "x"}}));
    tracked.patch("a", json!({"spec": {"size": 2}}));
    let manager: Vec<_> = tracked.managers().into_iter().map(|(manager, _)| manager).collect();
    assert_eq!(manager, ["b Update@2", "a Update@3"]);
}
