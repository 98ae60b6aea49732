//! Deletions.

use super::{Cache, drain, fifo, fifo_before, fifo_fixture::object, try_pop};
use crate::processor::watch;

/// `RealFIFO` delivers such a deletion, and the handlers of client-go receive it.
#[test]
fn of_objects_neither_queued_nor_known_are_ignored() {
    let fifo = fifo();
    fifo.delete(object("a", 1)).unwrap();
    assert_eq!(drain(&fifo), <[&str; 0]>::default());
}

#[test]
fn of_a_known_object_are_queued() {
    let fifo = fifo_before(&Cache::with(&[object("a", 1)]));
    fifo.delete(object("a", 2)).unwrap();
    assert_eq!(drain(&fifo), ["deleted a@2"]);
}

#[test]
fn of_an_object_that_is_being_added_are_queued() {
    let cache = Cache::default();
    let fifo = fifo_before(&cache);
    fifo.add(object("a", 1)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    fifo.delete(object("a", 2)).unwrap();
    cache.apply(&popped);
    popped.done();
    assert_eq!(drain(&fifo), ["deleted a@2"]);
}

#[test]
fn of_an_object_that_is_being_deleted_are_ignored() {
    let fifo = fifo_before(&Cache::with(&[object("a", 1)]));
    fifo.delete(object("a", 2)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    fifo.delete(object("a", 2)).unwrap();
    fifo.delete_unread("space/a", Some("3")).unwrap();
    popped.done();
    assert_eq!(drain(&fifo), <[&str; 0]>::default());
}

#[test]
fn in_a_row_are_one_and_the_final_state_wins() {
    let table: [(&[&str], &str); 4] = [
        (&["deleted", "deleted"], "deleted a@12"),
        (&["unread", "deleted"], "deleted a@12"),
        (&["deleted", "unread"], "deleted a@11"),
        (&["unread", "unread"], "deleted? a@1"),
    ];
    for (calls, expected) in table {
        let fifo = fifo_before(&Cache::with(&[object("a", 1)]));
        for (version, call) in (11..).zip(calls) {
            match *call {
                "deleted" => fifo.delete(object("a", version)).unwrap(),
                _ => fifo.delete_unread("space/a", Some(&version.to_string())).unwrap(),
            }
        }
        assert_eq!(fifo.queued_deltas(), 1, "{calls:?}");
        assert_eq!(drain(&fifo), [expected], "{calls:?}");
    }
}

#[test]
fn that_cannot_be_decoded_carry_the_newest_state_queued_in_flight_or_known() {
    let cache = Cache::with(&[object("known", 1), object("queued", 1), object("popped", 1)]);
    let fifo = fifo_before(&cache);
    fifo.update(object("popped", 2)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    fifo.update(object("queued", 3)).unwrap();
    for name in ["space/known", "space/queued", "space/popped", "space/unknown"] {
        fifo.delete_unread(name, None).unwrap();
    }
    popped.done();
    assert_eq!(
        drain(&fifo),
        ["updated queued@3, deleted? queued@3", "deleted? known@1", "deleted? popped@2"]
    );
}

#[test]
fn that_are_dropped_or_replaced_free_their_objects() {
    let objects = [object("unknown", 1), object("a", 2), object("a", 3)];
    let watched = objects.each_ref().map(watch);
    let fifo = fifo_before(&Cache::with(&[object("a", 1)]));
    for object in objects {
        fifo.delete(object).unwrap();
    }
    let holders = watched.map(|object| object.strong_count());
    assert_eq!(holders, [0, 0, 1], "the queue holds the deletion it delivers and nothing else");
    assert_eq!(drain(&fifo), ["deleted a@3"]);
}
