//! How far the cache is complete.

use k8s_openapi::api::core::v1::ConfigMap;

use super::{Cache, EMPTY, Fifo, describe, fifo, fifo_before, fifo_fixture::object, try_pop};

fn pop_marks(fifo: &Fifo) -> Vec<(String, Option<String>)> {
    std::iter::from_fn(|| try_pop(fifo, 1))
        .map(|popped| {
            let keys: Vec<String> = popped.keys().iter().map(describe).collect();
            let mark = popped.watermark().map(str::to_owned);
            popped.done();
            (keys.join("; "), mark)
        })
        .collect()
}

fn expected(marks: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    marks.iter().map(|&(keys, mark)| (keys.to_owned(), mark.map(str::to_owned))).collect()
}

#[test]
fn of_a_list_counts_when_all_of_it_is_popped() {
    let fifo = fifo();
    fifo.replace(vec![object("a", 90), object("b", 7)], Some("100")).unwrap();
    let marks = [("replaced! a@90", None), ("replaced! b@7", Some("100"))];
    assert_eq!(pop_marks(&fifo), expected(&marks));
}

#[test]
fn never_passes_a_queued_change() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    fifo.add(object("b", 2)).unwrap();
    fifo.update(object("a", 3)).unwrap();
    fifo.bookmark("10").unwrap();
    fifo.update(object("c", 11)).unwrap();
    fifo.bookmark("20").unwrap();
    // Key a is at 3 when it is popped, but 2 is still queued.
    let marks =
        [("added a@1, updated a@3", Some("1")), ("added b@2", Some("10")), ("updated c@11", Some("20"))];
    assert_eq!(pop_marks(&fifo), expected(&marks));
}

#[test]
fn is_popped_alone_when_nothing_else_is_queued() {
    let fifo = fifo();
    fifo.replace(EMPTY, Some("5")).unwrap();
    assert_eq!(pop_marks(&fifo), expected(&[("", Some("5"))]));
    fifo.bookmark("6").unwrap();
    fifo.bookmark("7").unwrap();
    assert_eq!(pop_marks(&fifo), expected(&[("", Some("7"))]));
    fifo.bookmark("7").unwrap();
    assert_eq!(pop_marks(&fifo), [], "nothing moved");
}

#[test]
fn moves_past_deletions_that_are_ignored_and_unread_ones() {
    let fifo = fifo();
    fifo.delete(object("a", 5)).unwrap();
    fifo.delete_unread("space/b", Some("6")).unwrap();
    assert_eq!(pop_marks(&fifo), expected(&[("", Some("6"))]));
}

#[test]
fn that_advanced_while_a_batch_was_in_flight_is_popped_after_it() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    fifo.bookmark("9").unwrap();
    assert_eq!(popped.watermark(), Some("1"));
    popped.done();
    assert_eq!(pop_marks(&fifo), expected(&[("", Some("9"))]));
}

#[test]
fn does_not_move_with_a_resync_or_an_object_without_a_version() {
    let fifo = fifo_before(&Cache::with(&[object("a", 3)]));
    let mut unversioned = ConfigMap::clone(&object("b", 0).get().unwrap());
    unversioned.metadata.resource_version = None;
    fifo.bookmark("4").unwrap();
    fifo.resync().unwrap();
    fifo.update(unversioned).unwrap();
    let marks = [("sync a@3", Some("4")), ("updated b@", Some("4"))];
    assert_eq!(pop_marks(&fifo), expected(&marks));
}
