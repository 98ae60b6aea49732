//! A worker that finishes a key and takes the next in one step: the same hand-outs as with `get`, at the same times.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use prometheus_client::registry::Registry;
use proptest::prelude::*;
use tokio::task::JoinSet;
use watchkeeper_workqueue::{
    Admission, Drained, Item, ManualClock, WorkQueue, Worker, limiter::ItemExponential,
    prometheus::QueueMetrics,
};

const STEP: Duration = Duration::from_millis(10);

fn queue(clock: &ManualClock) -> WorkQueue<u8> {
    let limiter = ItemExponential::new(STEP, STEP * 8);
    WorkQueue::builder("worker").clock(clock.clone()).rate_limiter(limiter).build()
}

/// What a future that has to wait for nothing comes to.
fn now<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// The next item, which has to be there.
fn take(worker: &mut Worker<u8>) -> Item<'_, u8> {
    now(worker.next()).flatten().expect("a key is in line")
}

#[test]
fn a_key_is_finished_when_the_next_one_is_taken() {
    let queue = queue(&ManualClock::new());
    queue.add(1);
    queue.add(2);
    let mut worker = queue.worker();
    take(&mut worker).forget();
    assert_eq!((queue.processing_len(), queue.len()), (1, 1), "the first is still to be finished");
    let second = take(&mut worker);
    assert_eq!((*second.key(), queue.processing_len()), (2, 1), "the first is finished");
    second.done();
    worker.finish();
    assert_eq!(queue.processing_len(), 0);
}

#[test]
fn a_key_that_was_added_before_it_was_finished_is_handed_out_again() {
    let queue = queue(&ManualClock::new());
    queue.add(1);
    let mut worker = queue.worker();
    take(&mut worker).forget();
    assert_eq!(queue.add(1), Admission::Deferred);
    assert_eq!(*take(&mut worker).key(), 1);
    assert!(now(worker.next()).is_none(), "once");
}

#[test]
fn asking_for_the_next_finishes_the_last_even_if_there_is_none_and_the_asking_is_given_up() {
    let queue = queue(&ManualClock::new());
    queue.add(1);
    let mut worker = queue.worker();
    take(&mut worker).done();
    assert!(now(worker.next()).is_none());
    assert_eq!(queue.processing_len(), 0);
    queue.add(2);
    assert_eq!(*take(&mut worker).key(), 2, "and no key is lost to who gave up");
}

#[test]
fn a_worker_that_is_dropped_finishes_its_key() {
    let queue = queue(&ManualClock::new());
    queue.add(1);
    let mut worker = queue.worker();
    take(&mut worker).forget();
    drop(worker);
    assert_eq!(queue.processing_len(), 0);
}

#[test]
fn what_an_item_asks_for_is_done_at_once() {
    let clock = ManualClock::new();
    let queue = queue(&clock);
    queue.add(1);
    let mut worker = queue.worker();
    assert_eq!(take(&mut worker).retry(), Admission::BackingOff);
    assert_eq!((queue.num_requeues(&1), queue.waiting_len(), queue.processing_len()), (1, 1, 0));
    clock.advance(STEP);
    assert_eq!(take(&mut worker).requeue_after(STEP), Admission::Scheduled);
    clock.advance(STEP);
    assert_eq!(take(&mut worker).put_back(STEP), Admission::Scheduled);
    clock.advance(STEP);
    let token = take(&mut worker).into_token();
    assert!(now(worker.next()).is_none(), "it is still handed out");
    assert!(queue.done(token));
    queue.add(2);
    let owned = take(&mut worker).into_owned();
    owned.forget();
    assert_eq!(queue.processing_len(), 0, "an item with a handle of its own does not wait for the worker");
}

#[test]
fn a_worker_whose_item_was_leaked_goes_on_with_the_next_key() {
    let queue = queue(&ManualClock::new());
    queue.add(1);
    queue.add(2);
    let mut worker = queue.worker();
    std::mem::forget(take(&mut worker));
    let second = take(&mut worker);
    assert_eq!((*second.key(), queue.processing_len()), (2, 2), "nobody said that the first is finished");
    second.done();
    assert!(now(worker.next()).is_none());
    assert_eq!(queue.processing_len(), 1);
}

#[test]
fn success_is_remembered_until_the_next_step() {
    let clock = ManualClock::new();
    let queue = queue(&clock);
    let mut worker = queue.worker();
    queue.add(1);
    take(&mut worker).retry();
    clock.advance(STEP);
    let again = take(&mut worker);
    assert_eq!(again.failures(), 1);
    again.forget();
    // Added again, so that the key stays and its failures could.
    queue.add(1);
    assert_eq!(take(&mut worker).failures(), 0);
}

#[test]
fn a_panic_is_a_failure_at_once() {
    let queue = queue(&ManualClock::new());
    queue.add(1);
    let mut worker = queue.worker();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _item = take(&mut worker);
        panic!("the work went wrong");
    }));
    assert!(panicked.is_err());
    assert_eq!((queue.num_requeues(&1), queue.waiting_len(), queue.processing_len()), (1, 1, 0));
}

#[test]
fn metrics_hear_of_the_end_of_work_when_it_ends() {
    let metrics = QueueMetrics::register(&mut Registry::default());
    let queue = WorkQueue::builder("worker").metrics(metrics.queue("worker").unwrap()).build();
    queue.add(1_u8);
    let mut worker = queue.worker();
    take(&mut worker).forget();
    assert_eq!(queue.processing_len(), 0);
}

#[tokio::test(start_paused = true)]
async fn workers_end_after_a_shutdown_and_a_drain_sees_their_last_keys_finished() {
    let queue = WorkQueue::new("worker");
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        let mut worker = queue.worker();
        workers.spawn(async move {
            let mut keys = Vec::new();
            while let Some(item) = worker.next().await {
                tokio::time::sleep(STEP).await;
                keys.push(*item.key());
                item.forget();
            }
            keys
        });
    }
    (0..10).for_each(|key| _ = queue.add(key));
    assert_eq!(queue.drain(Duration::from_secs(1)).await, Drained::Complete);
    let mut keys: Vec<i32> = workers.join_all().await.into_iter().flatten().collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..10).collect::<Vec<_>>());
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Add(u8),
    AddAfter(u8, u64),
    Advance(u64),
    Next(Say),
    Finish,
}

#[derive(Debug, Clone, Copy)]
enum Say {
    Done,
    Forget,
    Retry,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let key = || 0..6_u8;
    let say = prop_oneof![Just(Say::Done), Just(Say::Forget), Just(Say::Retry)];
    let call = prop_oneof![
        6 => key().prop_map(Call::Add),
        2 => (key(), 1..40_u64).prop_map(|(key, millis)| Call::AddAfter(key, millis)),
        2 => (1..40_u64).prop_map(Call::Advance),
        8 => say.prop_map(Call::Next),
        1 => Just(Call::Finish),
    ];
    prop::collection::vec(call, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Beside a queue whose items are held until the next is asked for, which is when a worker finishes them.
    #[test]
    fn a_worker_is_handed_what_get_hands_out(calls in calls()) {
        let clock = ManualClock::new();
        let (ours, theirs) = (queue(&clock), queue(&clock));
        let (mut worker, mut held) = (ours.worker(), None::<(Item<'_, u8>, Say)>);
        let end = |held: &mut Option<(Item<'_, u8>, Say)>| match held.take() {
            Some((item, Say::Forget)) => item.forget(),
            Some((item, _)) => item.done(),
            None => {}
        };
        for call in calls {
            match call {
                Call::Add(key) => prop_assert_eq!(ours.add(key), theirs.add(key)),
                Call::AddAfter(key, millis) => {
                    let delay = Duration::from_millis(millis);
                    prop_assert_eq!(ours.add_after(key, delay), theirs.add_after(key, delay));
                }
                Call::Advance(millis) => clock.advance(Duration::from_millis(millis)),
                Call::Finish => {
                    worker.finish();
                    end(&mut held);
                }
                Call::Next(say) => {
                    end(&mut held);
                    let (item, other) = (now(worker.next()).flatten(), now(theirs.get()).flatten());
                    prop_assert_eq!(
                        item.as_ref().map(|item| (*item.key(), item.failures())),
                        other.as_ref().map(|item| (*item.key(), item.failures()))
                    );
                    match (item.zip(other), say) {
                        (None, _) => {}
                        (Some((item, other)), Say::Retry) => prop_assert_eq!(item.retry(), other.retry()),
                        (Some((item, other)), say) => {
                            if matches!(say, Say::Forget) { item.forget() } else { item.done() }
                            held = Some((other, say));
                        }
                    }
                }
            }
            let figures = |queue: &WorkQueue<u8>| (queue.len(), queue.waiting_len(), queue.processing_len());
            prop_assert_eq!(figures(&ours), figures(&theirs));
        }
    }
}
