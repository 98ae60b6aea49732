//! Waiting for keys, on tokio's paused time: which future is woken, when, and what happens if it is dropped.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::Arc,
    task::{Context, Wake, Waker},
    time::Duration,
};

use proptest::prelude::*;
use tokio::{sync::Notify, task::JoinSet};
use watchkeeper_workqueue::{Clock, Drained, TokioClock, WorkQueue, limiter::ItemExponential};

use crate::scraped;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_gets_a_delayed_key_at_its_time() {
    let queue = WorkQueue::new("waiting");
    let clock = TokioClock::new();
    queue.add_after("a", millis(700));
    let item = queue.get().await.unwrap();
    assert_eq!((*item.key(), clock.now()), ("a", millis(700)));
}

#[tokio::test(start_paused = true)]
async fn an_earlier_delay_is_not_held_up_by_the_timer_of_a_later_one() {
    let queue = WorkQueue::new("waiting");
    queue.add_after("late", millis(5000));
    let clock = TokioClock::new();
    let mut worker = JoinSet::new();
    let taken = queue.clone();
    worker.spawn(async move { (*taken.get().await.unwrap().key(), clock.now()) });
    tokio::time::sleep(millis(100)).await;
    queue.add_after("early", millis(10));
    assert_eq!(worker.join_next().await.unwrap().unwrap(), ("early", millis(110)));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stopped_its_timer_starts_one_for_a_later_delay() {
    let queue = WorkQueue::new("waiting");
    let clock = TokioClock::new();
    queue.add_after("dropped", millis(10));
    let (taken, nudge) = (queue.clone(), Arc::new(Notify::new()));
    let (nudged, mut worker) = (Arc::clone(&nudge), JoinSet::new());
    worker.spawn(async move {
        let mut get = std::pin::pin!(taken.get());
        loop {
            tokio::select! {
                biased;
                item = &mut get => return (*item.unwrap().key(), clock.now()),
                () = nudged.notified() => {}
            }
        }
    });
    tokio::time::sleep(millis(5)).await; // its timer runs for the first key
    assert!(queue.cancel(&"dropped"));
    nudge.notify_one();
    tokio::time::sleep(millis(5)).await; // and for none after it was polled
    queue.add_after("late", millis(50));
    let got = tokio::time::timeout(Duration::from_secs(1), worker.join_next()).await;
    assert_eq!(got.unwrap().unwrap().unwrap(), ("late", millis(60)));
}

#[tokio::test(start_paused = true)]
async fn a_postponed_key_comes_at_its_new_time() {
    let queue = WorkQueue::new("waiting");
    queue.add_after("a", millis(10));
    let clock = TokioClock::new();
    let mut worker = JoinSet::new();
    let taken = queue.clone();
    worker.spawn(async move { (*taken.get().await.unwrap().key(), clock.now()) });
    tokio::time::sleep(millis(5)).await;
    queue.postpone(&"a", millis(95));
    assert_eq!(worker.join_next().await.unwrap().unwrap(), ("a", millis(100)));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_is_retried_with_growing_delays_and_then_works() {
    let limiter = ItemExponential::new(millis(10), Duration::from_secs(1));
    let queue = WorkQueue::builder("waiting").rate_limiter(limiter).build();
    queue.add("a");
    let clock = TokioClock::new();
    let mut tries = Vec::new();
    while let Some(item) = queue.get().await {
        tries.push(clock.now().as_millis());
        if item.failures() < 4 {
            item.retry();
        } else {
            item.forget();
            queue.shutdown();
        }
    }
    assert_eq!(tries, [0, 10, 30, 70, 150]);
}

#[tokio::test(start_paused = true)]
async fn a_get_that_is_dropped_loses_no_key() {
    let queue = WorkQueue::new("waiting");
    assert!(tokio::time::timeout(millis(10), queue.get()).await.is_err());
    queue.add("a");
    assert_eq!(*queue.get().await.unwrap().key(), "a");
    // The timekeeper is dropped; another future replaces it.
    queue.add_after("b", millis(100));
    let mut worker = JoinSet::new();
    let taken = queue.clone();
    assert!(
        tokio::time::timeout(millis(10), async {
            let first = queue.get();
            worker.spawn(async move { *taken.get().await.unwrap().key() });
            first.await.map(|item| *item.key())
        })
        .await
        .is_err()
    );
    assert_eq!(worker.join_next().await.unwrap().unwrap(), "b");
}

/// A waker that uses the queue when it is dropped, as a task does whose last waker is dropped.
struct Chatty(WorkQueue<&'static str>);

impl Wake for Chatty {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Chatty {
    fn drop(&mut self) {
        assert!(self.0.is_empty());
    }
}

#[tokio::test]
async fn a_waker_is_dropped_without_the_lock_of_the_queue() {
    let queue = WorkQueue::new("waiting");
    let mut get = Box::pin(queue.get());
    for _ in 0..2 {
        let waker = Waker::from(Arc::new(Chatty(queue.clone())));
        assert!(get.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(get);
}

#[tokio::test]
async fn a_dropped_drain_leaves_no_waker() {
    let queue = WorkQueue::new("waiting");
    queue.add("a");
    let held = queue.try_get().unwrap();
    let known = Arc::new(Chatty(WorkQueue::new("other")));
    let mut drain = Box::pin(queue.drain(Duration::from_secs(1)));
    assert!(drain.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&known)))).is_pending());
    assert!(Arc::strong_count(&known) > 1);
    drop(drain);
    assert_eq!(Arc::strong_count(&known), 1);
    held.done();
}

#[tokio::test]
async fn a_worker_whose_queue_is_never_empty_yields() {
    let queue = WorkQueue::new("waiting");
    queue.add("hot");
    let mut tasks = JoinSet::new();
    let hot = queue.clone();
    tasks.spawn(async move {
        while let Some(item) = hot.get().await {
            hot.add("hot");
            item.done();
        }
    });
    // On a single-threaded runtime this returns only if the loop above yields.
    tokio::task::yield_now().await;
    queue.shutdown();
    while let Some(item) = queue.try_get() {
        item.done();
    }
    tasks.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_million_delays_all_come_due_and_none_is_early() {
    let queue = WorkQueue::new("waiting");
    let clock = TokioClock::new();
    // A fixed scramble of 0..1,000,000 over 100 s.
    let delay = |key: u64| millis((key * 7919) % 100_000);
    for key in 0..1_000_000_u64 {
        queue.add_after(key, delay(key) + millis(1));
    }
    assert_eq!(queue.waiting_len(), 1_000_000);
    let mut count = 0;
    while count < 1_000_000 {
        let item = queue.get().await.unwrap();
        let due = delay(*item.key()) + millis(1);
        let now = clock.now();
        assert!(now >= due && now <= due + millis(2), "due at {due:?}, dequeued at {now:?}");
        count += 1;
        item.forget();
    }
    assert_eq!(queue.drain(Duration::ZERO).await, Drained::Complete);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_any_delays_each_key_comes_once_at_its_earliest(delays in prop::collection::vec((0..40_u8, 1..500_u64), 1..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let queue = WorkQueue::new("waiting");
            let mut earliest = BTreeMap::new();
            for (key, delay) in delays {
                queue.add_after(key, millis(delay));
                let known = earliest.entry(key).or_insert(delay);
                *known = delay.min(*known);
            }
            let clock = TokioClock::new();
            let mut seen = BTreeMap::new();
            while queue.waiting_len() + queue.len() > 0 {
                let item = queue.get().await.unwrap();
                let before = seen.insert(*item.key(), u64::try_from(clock.now().as_millis()).unwrap());
                prop_assert!(before.is_none(), "dequeued twice");
                item.forget();
            }
            prop_assert_eq!(seen, earliest);
            Ok(())
        })?;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_on_several_threads_process_every_key() {
    let queue: WorkQueue<Arc<str>> = scraped(WorkQueue::new("waiting"));
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        workers.spawn(async move {
            let mut taken = 0_u32;
            while let Some(item) = queue.get().await {
                taken += 1;
                item.forget();
            }
            taken
        });
    }
    let mut producers = JoinSet::new();
    for producer in 0..4 {
        let queue = queue.clone();
        producers.spawn(async move {
            for key in 0..5000 {
                if key % 3 == 0 {
                    queue.add_after(format!("{producer}/{key}").into(), Duration::from_micros(key % 500));
                } else {
                    queue.add(format!("{producer}/{key}").into());
                }
            }
        });
    }
    producers.join_all().await;
    while queue.waiting_len() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(queue.drain(Duration::from_mins(1)).await, Drained::Complete);
    assert_eq!(workers.join_all().await.into_iter().sum::<u32>(), 20_000);
}

#[tokio::test]
async fn no_timer_on_real_time_ends_early() {
    let clock = TokioClock::new();
    for micros in [0, 1, 400, 2_000, 3_001, 5_000] {
        let at = clock.now() + Duration::from_micros(micros);
        clock.sleep_until(at).await;
        assert!(clock.now() >= at, "a timer of {micros} us");
    }
}

#[tokio::test(start_paused = true)]
async fn timers_on_virtual_time_end_at_their_time() {
    let clock = TokioClock::new();
    for wait in [Duration::from_micros(1), Duration::from_hours(24), Duration::MAX] {
        let before = clock.now();
        clock.sleep_until(before.saturating_add(wait)).await;
        let waited = clock.now().saturating_sub(before);
        assert!(waited >= wait.min(Duration::from_hours(365 * 24)), "{wait:?} took {waited:?}");
    }
}
