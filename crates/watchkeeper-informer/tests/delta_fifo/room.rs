//! Back-pressure.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
};

use watchkeeper_informer::delta_fifo::{FifoOptions, NothingKnown};

use crate::{Fifo, fifo_fixture::object};

#[tokio::test]
async fn is_waited_for_until_the_consumer_made_some() {
    let fifo = Fifo::new(NothingKnown, FifoOptions::new().max_queued_deltas(2));
    fifo.add(object("a", 1)).unwrap();
    fifo.room().await.unwrap();
    fifo.add(object("b", 2)).unwrap();
    let mut room = pin!(fifo.room());
    assert!(room.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let consume = async { fifo.pop().await.unwrap().done() };
    let (room, ()) = tokio::join!(room, consume);
    assert_eq!(room, Ok(()));
}

#[tokio::test]
async fn is_not_needed_by_a_first_list_of_any_size() {
    let fifo = Fifo::new(NothingKnown, FifoOptions::new().max_queued_deltas(10));
    let producer = async {
        fifo.room().await.unwrap();
        let list = (0..100_000).map(|n| object(&n.to_string(), 1)).collect();
        fifo.replace(list, Some("1")).unwrap();
        fifo.room().await.unwrap();
        fifo.close();
    };
    let consumer = async {
        let mut keys = 0;
        while let Some(popped) = fifo.pop_batch(1_000).await {
            keys += popped.keys().len();
            popped.done();
        }
        keys
    };
    let ((), keys) = tokio::join!(producer, consumer);
    assert_eq!(keys, 100_000);
    assert!(fifo.has_synced());
}

#[tokio::test]
async fn ends_in_an_error_when_the_queue_is_closed() {
    let fifo = Fifo::new(NothingKnown, FifoOptions::new().max_queued_deltas(1));
    fifo.add(object("a", 1)).unwrap();
    let close = async { fifo.close() };
    let (room, ()) = tokio::join!(fifo.room(), close);
    assert!(room.is_err());
}
