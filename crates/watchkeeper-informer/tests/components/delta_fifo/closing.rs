//! The end.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
};

use super::{describe, fifo, fifo_fixture::object};

#[tokio::test]
async fn lets_queued_changes_be_popped_and_then_ends_every_pop() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    fifo.close();
    assert!(fifo.add(object("b", 2)).is_err());
    assert!(fifo.bookmark("3").is_err());
    let popped = fifo.pop().await.unwrap();
    assert_eq!(describe(&popped.keys()[0]), "added a@1");
    popped.done();
    assert!(fifo.pop().await.is_none());
    assert!(fifo.pop().await.is_none());
}

#[tokio::test]
async fn ends_ten_pops_that_wait() {
    let fifo = fifo();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let fifo = fifo.clone();
        waiting.spawn(async move { fifo.pop().await.is_none() });
    }
    tokio::task::yield_now().await;
    fifo.close();
    assert_eq!(waiting.join_all().await, [true; 10]);
}

#[tokio::test]
async fn waits_for_the_batch_in_flight_since_it_may_come_back() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    let popped = fifo.pop().await.unwrap();
    fifo.close();
    let mut pop = pin!(fifo.pop());
    assert!(pop.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(popped);
    let again = pop.await.unwrap();
    assert_eq!(describe(&again.keys()[0]), "added a@1");
    again.done();
    assert!(fifo.pop().await.is_none());
}
