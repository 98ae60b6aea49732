//! Field sets are created and joined in linear time.

use serde_json::{Value, json};

use super::super::{
    path::PathElement,
    set::{FieldSet, SetNode},
    walk::owned,
};
use crate::{complexity::assert_linear, schema::TypeRef};

/// Returns every second member of a large object, starting with the first or the second.
fn every_second(count: usize, first: usize) -> FieldSet {
    let mut set = FieldSet::default();
    for number in (first..count * 2).step_by(2) {
        let node = SetNode { is_member: true, below: FieldSet::default() };
        set.join_node(PathElement::field(&format!("k{number:07}")), node);
    }
    set
}

#[test]
fn field_sets_of_lists_are_built_in_linear_time_in_any_item_order() {
    let list = |count: usize| {
        let mut ports: Vec<Value> =
            (1..=count).map(|port| json!({"containerPort": port, "protocol": "TCP"})).collect();
        ports.reverse();
        json!({"spec": {"containers": [{"name": "a", "ports": ports}]}})
    };
    let ty = TypeRef::builtin_named("io.k8s.api.core.v1.Pod");
    assert_linear("what an applied list owns", 10_000, list, |object| owned(object, &ty).unwrap());
    let sets = |count| (every_second(count, 0), every_second(count, 1));
    assert_linear("the union of two sets", 20_000, sets, |(left, right)| {
        let mut union = left.clone();
        union.join(right.clone());
        union
    });
}
