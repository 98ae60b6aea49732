//! Lists and queued changes.

use super::{
    Cache, EMPTY, drain, fifo, fifo_before,
    fifo_fixture::{incarnation, object},
    try_pop,
};

#[test]
fn mark_each_object_replaced() {
    let fifo = fifo();
    fifo.replace(vec![object("a", 1), object("b", 2)], Some("5")).unwrap();
    assert_eq!(drain(&fifo), ["replaced! a@1", "replaced! b@2"]);
}

/// A create after a queued deletion must not be lost (kubernetes#83810, kubernetes#83911).
#[test]
fn case_02_an_object_behind_its_own_deletion_is_not_lost() {
    let fifo = fifo_before(&Cache::with(&[object("a", 1)]));
    fifo.delete(object("a", 2)).unwrap();
    fifo.replace(vec![object("a", 3)], Some("3")).unwrap();
    assert_eq!(drain(&fifo), ["deleted a@2, replaced a@3"]);
}

/// An object that is only queued must not outlive a list without it (kubernetes#115658).
#[test]
fn case_01_an_object_only_queued_and_not_in_the_list_is_deleted_once() {
    type Row = (&'static str, &'static [(&'static str, u64)], &'static str);
    let table: [Row; 4] = [
        ("added", &[("add", 1)], "added a@1, deleted? a@1"),
        ("added and updated", &[("add", 1), ("update", 2)], "added a@1, updated a@2, deleted? a@2"),
        ("already deleted", &[("add", 1), ("delete", 2)], "added a@1, deleted a@2"),
        (
            "deleted and added again",
            &[("add", 1), ("delete", 2), ("add", 3)],
            "added a@1, deleted a@2, added a@3, deleted? a@3",
        ),
    ];
    for (case, calls, expected) in table {
        for known in [vec![], vec![object("a", 0)]] {
            for lists in [1, 3] {
                let fifo = fifo_before(&Cache::with(&known));
                for &(call, version) in calls {
                    match call {
                        "add" => fifo.add(object("a", version)).unwrap(),
                        "update" => fifo.update(object("a", version)).unwrap(),
                        _ => fifo.delete(object("a", version)).unwrap(),
                    }
                }
                (0..lists).for_each(|_| fifo.replace(EMPTY, Some("9")).unwrap());
                assert_eq!(drain(&fifo), [expected], "{case}, {} known, {lists} lists", known.len());
            }
        }
    }
}

/// A change in flight is neither queued nor in the cache, and must not be missed.
#[test]
fn case_01_an_object_in_flight_and_not_in_the_list_is_deleted() {
    let cache = Cache::default();
    let fifo = fifo_before(&cache);
    fifo.add(object("a", 1)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    fifo.replace(vec![object("b", 2)], Some("2")).unwrap();
    cache.apply(&popped);
    popped.done();
    assert_eq!(drain(&fifo), ["deleted? a@1", "replaced b@2"]);
}

#[test]
fn an_object_whose_deletion_is_in_flight_is_not_deleted_again() {
    let cache = Cache::with(&[object("a", 1)]);
    let fifo = fifo_before(&cache);
    fifo.delete(object("a", 2)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    fifo.replace(EMPTY, Some("3")).unwrap();
    cache.apply(&popped);
    popped.done();
    assert_eq!(drain(&fifo), <[&str; 0]>::default());
}

/// Deletions precede the objects of the list, as in `RealFIFO` and unlike `DeltaFIFO`.
#[test]
fn known_objects_not_in_the_list_are_deleted_with_their_newest_state_before_the_list() {
    let cache = Cache::with(&[object("gone", 1), object("kept", 1), object("queued", 1)]);
    let fifo = fifo_before(&cache);
    fifo.update(object("queued", 2)).unwrap();
    fifo.replace(vec![object("kept", 3)], Some("4")).unwrap();
    assert_eq!(drain(&fifo), ["updated queued@2, deleted? queued@2", "deleted? gone@1", "replaced kept@3"]);
}

#[test]
fn add_to_the_queued_changes_of_a_key() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    fifo.replace(vec![object("a", 2)], Some("2")).unwrap();
    assert_eq!(drain(&fifo), ["added a@1, replaced a@2"]);
}

#[test]
fn a_uid_that_changed_is_seen_by_the_consumer_as_it_came() {
    let fifo = fifo_before(&Cache::with(&[incarnation("a", "1", 1)]));
    fifo.replace(vec![incarnation("a", "2", 7)], Some("7")).unwrap();
    assert_eq!(drain(&fifo), ["replaced! a@7"]);
}
