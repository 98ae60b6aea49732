//! Updates that move no field between managers.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Manager, OneVersion, Subject, World, laws::spec};
use crate::apply::{settled::renewed, track::Comparisons};

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
    let who = prop_oneof![3 => Just("a"), 1 => Just("b"), 1 => Just("c")];
    let what = prop_oneof![
        1 => spec().prop_map(Write::Apply),
        1 => spec().prop_map(Write::Put),
        1 => spec().prop_map(Write::PutBack),
        6 => (0_u8..3).prop_map(Write::Resize),
        1 => Just(Write::Shrink),
        2 => (0_u8..3).prop_map(Write::Label),
        1 => Just(Write::Reset),
    ];
    (who, what)
}

fn follow(world: &mut World, who: &str, write: &Write) {
    let mut object = world.object.clone().unwrap_or_else(|| json!({"spec": {}}));
    match write {
        Write::Apply(spec) => {
            world.force(who, json!({"spec": spec}));
            return;
        }
        Write::Put(spec) => object = json!({"spec": spec}),
        Write::PutBack(spec) => object["spec"] = spec.clone(),
        Write::Resize(size) => object["spec"]["size"] = json!(size),
        Write::Shrink => _ = object["spec"].as_object_mut().map(|spec| spec.remove("size")),
        Write::Label(value) => object["metadata"]["labels"] = json!({"a": value.to_string()}),
        Write::Reset => object["metadata"]["managedFields"] = json!([{}]),
    }
    world.put(who, object);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_fast_path_produces_the_same_object_as_the_full_update(
        history in proptest::collection::vec(write(), 1..16),
    ) {
        let mut short = World::gizmo();
        let mut long = World { has_fixed_type: false, ..World::gizmo() };
        for (who, write) in &history {
            follow(&mut short, who, write);
            follow(&mut long, who, write);
            prop_assert_eq!(&short.object, &long.object, "after {:?} by {}", write, who);
        }
    }
}

/// Returns whether a PUT of `new` by `who` takes the fast path.
fn is_settled(world: &mut World, who: &str, new: &Value) -> bool {
    let live = world.object.clone().unwrap();
    let now = world.now();
    let mut new = new.clone();
    let mut given = new["metadata"].as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
    let subject = Subject { has_fixed_type: true, ..Subject::new(&world.gvk, &world.ty, &OneVersion) };
    let mut comparisons = Comparisons::new(Some(&live), &new, &subject);
    let changes = comparisons.at(&subject.api_version).unwrap().unwrap();
    let before = &live["metadata"]["managedFields"];
    renewed(before, &mut given, changes, &subject, &Manager { name: who, now }).is_some()
}

#[test]
fn the_fast_path_applies_to_changes_of_own_fields_only() {
    let mut world = World::gizmo();
    world.put("a", json!({"spec": {"size": 1, "plain": "x"}}));
    let mut resized = world.object.clone().unwrap();
    resized["spec"]["size"] = json!(2);
    assert!(is_settled(&mut world, "a", &resized), "its own field");
    assert!(!is_settled(&mut world, "b", &resized), "somebody else's");

    let mut without = resized.clone();
    without["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert!(is_settled(&mut world, "a", &without), "managers that were not sent stay");
    without["metadata"]["managedFields"] = json!([]);
    assert!(!is_settled(&mut world, "a", &without), "managers that are to be forgotten do not");

    let mut smaller = resized.clone();
    smaller["spec"].as_object_mut().unwrap().remove("plain");
    assert!(!is_settled(&mut world, "a", &smaller), "a field that went away is nobody's any more");
    let mut larger = resized;
    larger["spec"]["tags"] = json!(["t"]);
    assert!(!is_settled(&mut world, "a", &larger), "a field that is new gets its first manager");
}

#[test]
fn the_fast_path_keeps_managers_ordered_by_time() {
    let mut world = World::gizmo();
    world.put("a", json!({"spec": {"size": 1}}));
    world.patch("b", json!({"spec": {"plain": "x"}}));
    world.patch("a", json!({"spec": {"size": 2}}));
    let who: Vec<_> = world.managers().into_iter().map(|(who, _)| who).collect();
    assert_eq!(who, ["b Update@2", "a Update@3"]);
}
