use proptest::prelude::*;
use serde_json::json;

use crate::apply::{
    codec::{decode, encode},
    path::{OrderedValue, PathElement},
    set::FieldSet,
};

#[test]
fn path_elements_round_trip_through_their_wire_format() {
    for text in [
        "f:name",
        "f:",
        "f:a:b",
        "k:{\"name\":\"x\"}",
        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}",
        "v:\"a/b\"",
        "v:\"\\u003ca\\u0026b\\u003e \\u2028\"",
        "v:12",
        "v:1.5",
        "v:true",
        "v:null",
        "i:0",
        "i:-1",
    ] {
        assert_eq!(PathElement::parse(text).unwrap().unwrap().encode(), text);
    }
    let keys = PathElement::parse("k:{\"b\":1, \"a\":\"x\"}").unwrap().unwrap();
    assert_eq!(keys.encode(), "k:{\"a\":\"x\",\"b\":1}", "keys are sorted");
    assert_eq!(keys.to_string(), "[a=\"x\",b=1]");
    assert_eq!(PathElement::parse("z:later").unwrap(), None);
    for text in ["", "f", "name", "ff:x", "k:1", "k:{", "v:", "v:1 2", "i:x", "k:{}x"] {
        PathElement::parse(text).unwrap_err();
    }
}

#[test]
fn equal_numbers_are_equal_values_in_any_notation() {
    assert_eq!(OrderedValue(json!(1)), OrderedValue(json!(1.0)));
    assert!(OrderedValue(json!(1)) < OrderedValue(json!(1.5)));
    assert!(OrderedValue(json!(-2)) < OrderedValue(json!(-1.5)));
    assert!(OrderedValue(json!(9_007_199_254_740_993_i64)) > OrderedValue(json!(9_007_199_254_740_992.0)));
    assert!(
        OrderedValue(json!(1)) < OrderedValue(json!("1"))
            && OrderedValue(json!("z")) < OrderedValue(json!(true))
    );
}

#[test]
fn a_set_distinguishes_a_path_from_its_parent() {
    let set = decode(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}})).unwrap();
    let path = |names: &[&str]| names.iter().map(|name| PathElement::field(name)).collect::<Vec<_>>();
    assert!(set.has(&path(&["a"])) && set.has(&path(&["a", "b"])) && set.has(&path(&["c", "d"])));
    assert!(!set.has(&path(&["c"])) && !set.has(&path(&["a", "b", "c"])) && !set.has(&[]));
    let texts: Vec<_> = set.paths().iter().map(ToString::to_string).collect();
    assert_eq!(texts, [".a", ".a.b", ".c.d"]);
}

fn element() -> impl Strategy<Value = PathElement> {
    let scalar = prop_oneof![
        any::<i8>().prop_map(|number| OrderedValue(json!(number))),
        "[a-c<\"]{0,2}".prop_map(|text| OrderedValue(json!(text))),
        any::<bool>().prop_map(|truth| OrderedValue(json!(truth))),
    ];
    prop_oneof![
        4 => "[a-d]{1,2}".prop_map(|name| PathElement::field(&name)),
        1 => scalar.clone().prop_map(PathElement::Value),
        1 => proptest::collection::btree_map("[kl]", scalar, 1..3)
            .prop_map(|keys| PathElement::key(keys.into_iter().map(|(name, value)| (name.into(), value)).collect())),
        1 => (0..3_i64).prop_map(PathElement::Index),
    ]
}

fn paths() -> impl Strategy<Value = Vec<Vec<PathElement>>> {
    proptest::collection::vec(proptest::collection::vec(element(), 1..4), 0..12)
}

fn set_of(paths: &[Vec<PathElement>]) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        set.insert(path);
    }
    set
}

proptest! {
    #[test]
    fn field_sets_round_trip(paths in paths()) {
        let set = set_of(&paths);
        prop_assert_eq!(&decode(&encode(&set)).unwrap(), &set);
        prop_assert!(paths.iter().all(|path| set.has(path)));
    }

    #[test]
    fn union_difference_and_intersection_obey_set_laws(left in paths(), right in paths()) {
        let (a, b) = (set_of(&left), set_of(&right));
        let mut both = a.clone();
        both.join(b.clone());
        let mut difference = a.clone();
        difference.subtract(&b);
        let intersection = a.intersection(&b);
        for path in left.iter().chain(&right) {
            prop_assert!(both.has(path));
            prop_assert_eq!(difference.has(path), a.has(path) && !b.has(path));
            prop_assert_eq!(intersection.has(path), a.has(path) && b.has(path));
        }
        let mut again = difference.clone();
        again.join(intersection);
        prop_assert_eq!(again, a, "no empty nodes are left behind");
        both.subtract(&b);
        prop_assert_eq!(both, difference);
    }

    #[test]
    fn subtract_below_removes_every_path_under_a_member(left in paths(), right in paths()) {
        let (mut a, b) = (set_of(&left), set_of(&right));
        let before = a.clone();
        a.subtract_below(&b);
        for path in &left {
            let is_below = (1..=path.len()).any(|end| b.has(&path[..end]));
            prop_assert_eq!(a.has(path), before.has(path) && !is_below);
        }
    }

    #[test]
    fn decoding_arbitrary_fields_does_not_panic(text in "[a-z:{}\"0-9.]{0,12}") {
        let _ = decode(&json!({text: {}}));
    }
}
