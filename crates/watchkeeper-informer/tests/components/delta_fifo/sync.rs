//! When the first list counts as processed.

use super::{Cache, EMPTY, Fifo, describe, drain, fifo, fifo_before, fifo_fixture::object, try_pop};

/// An object counts when it was processed, not when it was popped, as in `RealFIFO`.
#[test]
fn comes_when_every_object_and_deletion_of_the_first_list_is_finished() {
    let cache = Cache::with(&[object("gone", 1)]);
    let fifo = fifo_before(&cache);
    fifo.replace(vec![object("a", 2), object("a", 3), object("b", 2)], Some("3")).unwrap();
    for expected in ["deleted?! gone@1", "replaced! a@2, replaced! a@3", "replaced! b@2"] {
        let popped = try_pop(&fifo, 1).unwrap();
        assert_eq!(describe(&popped.keys()[0]), expected);
        assert!(!fifo.has_synced());
        popped.done();
    }
    assert!(fifo.has_synced());
}

#[test]
fn depends_on_the_first_change() {
    type Fill = fn(&Fifo);
    let table: [(&str, Fill, bool); 6] = [
        ("nothing", |_| {}, false),
        ("an event", |fifo| fifo.add(object("a", 1)).unwrap(), true),
        ("a deletion of nothing", |fifo| fifo.delete(object("a", 1)).unwrap(), true),
        ("a bookmark", |fifo| fifo.bookmark("1").unwrap(), false),
        ("an empty list", |fifo| fifo.replace(EMPTY, Some("1")).unwrap(), true),
        ("a list", |fifo| fifo.replace(vec![object("a", 1)], Some("1")).unwrap(), false),
    ];
    for (case, fill, expected) in table {
        let fifo = fifo();
        fill(&fifo);
        assert_eq!(fifo.has_synced(), expected, "after {case}");
    }
}

#[test]
fn does_not_depend_on_changes_after_the_first_list() {
    let fifo = fifo();
    fifo.replace(vec![object("a", 1)], Some("1")).unwrap();
    fifo.update(object("a", 2)).unwrap();
    fifo.add(object("b", 3)).unwrap();
    fifo.replace(vec![object("c", 4)], Some("4")).unwrap();
    let popped = try_pop(&fifo, 10).unwrap();
    assert_eq!(describe(&popped.keys()[0]), "replaced! a@1, updated a@2, deleted? a@2");
    assert_eq!(popped.keys().len(), 1, "a batch ends with the first list");
    popped.done();
    assert!(fifo.has_synced());
    assert_eq!(drain(&fifo), ["added b@3, deleted? b@3", "replaced c@4"]);
}

#[tokio::test]
async fn can_be_waited_for_and_is_not_when_the_queue_is_closed() {
    let fifo = fifo();
    fifo.replace(vec![object("a", 1)], Some("1")).unwrap();
    let consume = async { fifo.pop().await.unwrap().done() };
    let (synced, ()) = tokio::join!(fifo.synced(), consume);
    assert_eq!(synced, Ok(()));

    let closed = super::fifo();
    let close = async { closed.close() };
    let (synced, ()) = tokio::join!(closed.synced(), close);
    assert!(synced.is_err());
}
