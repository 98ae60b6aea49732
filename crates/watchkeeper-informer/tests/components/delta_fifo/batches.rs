//! Batches of keys.

use super::{drain, fifo, fifo_fixture::object, try_pop};

#[test]
fn have_each_key_once_and_at_most_the_requested_number() {
    let fifo = fifo();
    for version in 1..=10 {
        fifo.add(object(&format!("{}", version % 5), version)).unwrap();
    }
    let sizes: Vec<usize> = std::iter::from_fn(|| try_pop(&fifo, 2))
        .map(|popped| {
            let size = popped.keys().len();
            popped.done();
            size
        })
        .collect();
    assert_eq!(sizes, [2, 2, 1]);
}

#[test]
fn are_popped_one_at_a_time() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    fifo.add(object("b", 2)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    assert!(try_pop(&fifo, 1).is_none());
    popped.done();
    assert!(try_pop(&fifo, 1).is_some());
}

#[test]
fn that_are_dropped_unfinished_are_requeued_before_later_changes() {
    let fifo = fifo();
    fifo.replace(vec![object("a", 1), object("b", 2)], Some("2")).unwrap();
    fifo.add(object("c", 3)).unwrap();
    let popped = try_pop(&fifo, 2).unwrap();
    fifo.update(object("b", 4)).unwrap();
    drop(popped);
    assert!(!fifo.has_synced());
    assert_eq!(fifo.queued_deltas(), 4);
    let popped = try_pop(&fifo, 1).unwrap();
    assert_eq!(popped.watermark(), None, "b of the first list is not applied");
    popped.done();
    assert_eq!(drain(&fifo), ["replaced! b@2, updated b@4", "added c@3"]);
    assert!(fifo.has_synced());
}
