//! Back-pressure.

use watchkeeper_informer::delta_fifo::{FifoOptions, NothingKnown};

use super::{Fifo, fifo_fixture::object};

#[tokio::test]
async fn is_waited_for_until_the_consumer_made_some() {
    let fifo = Fifo::new(NothingKnown, FifoOptions::new().max_queued_deltas(2));
    fifo.add(object("a", 1)).unwrap();
    fifo.wait_for_capacity().await.unwrap();
    fifo.add(object("b", 2)).unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    let producer = fifo.clone();
    // In a task of its own, which only runs again if it is woken.
    waiting.spawn(async move { producer.wait_for_capacity().await });
    tokio::task::yield_now().await;
    assert!(waiting.try_join_next().is_none());
    let popped = fifo.pop().await.unwrap();
    assert_eq!(waiting.join_all().await, [Ok(())]);
    popped.done();
}

#[tokio::test]
async fn is_not_needed_by_a_first_list_of_any_size() {
    let fifo = Fifo::new(NothingKnown, FifoOptions::new().max_queued_deltas(10));
    let producer = async {
        fifo.wait_for_capacity().await.unwrap();
        let list = (0..100_000).map(|n| object(&n.to_string(), 1)).collect();
        fifo.replace(list, Some("1")).unwrap();
        fifo.wait_for_capacity().await.unwrap();
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
    let (capacity, ()) = tokio::join!(fifo.wait_for_capacity(), close);
    assert!(capacity.is_err());
}
