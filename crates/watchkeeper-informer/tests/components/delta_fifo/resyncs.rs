//! Resyncs.

use super::{Cache, drain, fifo_before, fifo_fixture::object, try_pop};

#[test]
fn put_known_objects_in_line() {
    let fifo = fifo_before(&Cache::with(&[object("a", 1), object("b", 2)]));
    fifo.resync().unwrap();
    assert_eq!(drain(&fifo), ["sync a@1", "sync b@2"]);
}

#[test]
fn skip_queued_keys_whatever_their_changes_are() {
    let fifo = fifo_before(&Cache::with(&[object("deleted", 1), object("updated", 1), object("quiet", 1)]));
    fifo.delete(object("deleted", 2)).unwrap();
    fifo.update(object("updated", 2)).unwrap();
    fifo.resync().unwrap();
    fifo.resync().unwrap();
    assert_eq!(drain(&fifo), ["deleted deleted@2", "updated updated@2", "sync quiet@1"]);
}

#[test]
fn treat_keys_in_flight_as_applied() {
    let cache = Cache::with(&[object("updated", 1), object("deleted", 1)]);
    let fifo = fifo_before(&cache);
    fifo.update(object("updated", 2)).unwrap();
    fifo.delete(object("deleted", 2)).unwrap();
    fifo.add(object("added", 3)).unwrap();
    let popped = try_pop(&fifo, 10).unwrap();
    fifo.resync().unwrap();
    cache.apply(&popped);
    popped.done();
    assert_eq!(drain(&fifo), ["sync updated@2", "sync added@3"]);
}
