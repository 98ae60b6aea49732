//! The facts that client-go's own tests establish about its work queues. Where this crate differs, the test states how. The queues
//! are registered for metrics and scraped meanwhile.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;
use watchkeeper_workqueue::{
    AddOptions, Admission, Drained, ManualClock, WorkQueue,
    limiter::{ItemExponential, ItemFastSlow, RateLimiter},
    parallelize_until,
};

use crate::scraped;

const LONG: Duration = Duration::from_hours(1);

fn queue() -> WorkQueue<&'static str> {
    scraped(WorkQueue::new("facts"))
}

fn manual() -> (WorkQueue<&'static str>, ManualClock) {
    let clock = ManualClock::new();
    (scraped(WorkQueue::builder("facts").clock(clock.clone()).build()), clock)
}

fn take(queue: &WorkQueue<&'static str>) -> Option<&'static str> {
    queue.try_get().map(|item| *item.key())
}

fn take_all(queue: &WorkQueue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| take(queue)).collect()
}

#[tokio::test]
async fn many_producers_and_consumers_process_every_key_and_nothing_after_shutdown() {
    let queue: WorkQueue<u32> = scraped(WorkQueue::new("facts"));
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let mut consumers = JoinSet::new();
    for _ in 0..10 {
        let (queue, seen) = (queue.clone(), Arc::clone(&seen));
        consumers.spawn(async move {
            while let Some(item) = queue.get().await {
                seen.lock().unwrap().insert(*item.key());
                tokio::task::yield_now().await;
                item.forget();
            }
        });
    }
    let mut producers = JoinSet::new();
    for producer in 0..50 {
        let queue = queue.clone();
        producers.spawn(async move {
            for key in 0..50 {
                queue.add(producer * 50 + key);
                tokio::task::yield_now().await;
            }
        });
    }
    producers.join_all().await;
    assert_eq!(queue.drain(LONG).await, Drained::Complete);
    consumers.join_all().await;
    assert_eq!(seen.lock().unwrap().len(), 2500);
    assert_eq!(queue.add(7), Admission::Refused, "adds after shutdown are refused");
    assert!(queue.is_empty());
    assert!(queue.get().await.is_none());
}

#[test]
fn a_key_added_while_it_is_processed_is_queued_once_more_after_that() {
    let queue = queue();
    queue.add("a");
    let item = queue.try_get().unwrap();
    assert_eq!(queue.add("a"), Admission::Deferred);
    assert_eq!(queue.add("a"), Admission::Deferred);
    assert_eq!(queue.len(), 0);
    assert!(queue.try_get().is_none(), "not while it is being processed");
    item.done();
    assert_eq!(take_all(&queue), ["a"], "once, not twice");
}

#[test]
fn a_worker_can_add_back_the_key_it_holds() {
    let queue = queue();
    queue.add("foo");
    let item = queue.try_get().unwrap();
    queue.add(*item.key());
    item.forget();
    assert_eq!(take_all(&queue), ["foo"]);
}

#[test]
fn length_counts_queued_keys_once() {
    let queue = queue();
    queue.add("foo");
    assert_eq!(queue.len(), 1);
    queue.add("bar");
    assert_eq!(queue.len(), 2);
    assert_eq!(queue.add("foo"), Admission::Merged);
    assert_eq!(queue.len(), 2);
}

#[test]
fn keys_are_dequeued_in_the_order_of_their_first_add() {
    let queue = queue();
    for key in ["c", "a", "b", "a", "c"] {
        queue.add(key);
    }
    assert_eq!(take_all(&queue), ["c", "a", "b"]);
}

#[tokio::test]
async fn another_worker_waits_until_the_run_of_the_key_is_finished() {
    let queue = queue();
    queue.add("bar");
    queue.add("bar");
    let first = queue.get().await.unwrap();
    queue.add("bar");
    queue.add("bar");
    let mut second = waiting_worker(queue.clone());
    assert!(second.try_join_next().is_none());
    tokio::task::yield_now().await;
    assert!(second.try_join_next().is_none(), "blocked while the first works on it");
    first.done();
    assert_eq!(second.join_next().await.unwrap().unwrap(), Some("bar"));
    assert_eq!(queue.len(), 0);
}

fn waiting_worker(queue: WorkQueue<&'static str>) -> JoinSet<Option<&'static str>> {
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { queue.get().await.map(|item| *item.key()) });
    waiting
}

#[tokio::test]
async fn a_drain_waits_until_every_dequeued_key_is_finished() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let (first, second) = (queue.try_get().unwrap(), queue.try_get().unwrap());
    let drain = {
        let queue = queue.clone();
        async move { queue.drain(LONG).await }
    };
    let mut draining = JoinSet::new();
    draining.spawn(drain);
    tokio::task::yield_now().await;
    assert!(draining.try_join_next().is_none());
    first.done();
    tokio::task::yield_now().await;
    assert!(draining.try_join_next().is_none(), "one is still being processed");
    second.done();
    assert_eq!(draining.join_next().await.unwrap().unwrap(), Drained::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_end_while_keys_are_queued_and_reports_them_at_its_deadline() {
    // client-go returns immediately here, because it only waits for keys being processed.
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let item = queue.try_get().unwrap();
    assert_eq!(
        queue.drain(Duration::from_secs(5)).await,
        Drained::DeadlineReached { queued: 1, processing: 1 }
    );
    item.done();
    assert_eq!(take_all(&queue), ["b"], "what was queued can still be taken");
    assert_eq!(queue.drain(Duration::from_secs(5)).await, Drained::Complete);
}

#[test]
fn a_plain_shutdown_does_not_wait_for_anything() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let (first, second) = (queue.try_get().unwrap(), queue.try_get().unwrap());
    assert!(queue.shutdown().is_empty());
    assert!(queue.is_shut_down());
    assert_eq!(queue.processing_len(), 2);
    first.done();
    second.done();
}

#[tokio::test]
async fn a_shutdown_during_a_drain_does_not_cut_the_drain_short() {
    // client-go's ShutDown releases a drain; here the drain's future is dropped instead.
    let queue = queue();
    queue.add("foo");
    let item = queue.try_get().unwrap();
    let mut draining = JoinSet::new();
    let drained = queue.clone();
    draining.spawn(async move { drained.drain(LONG).await });
    tokio::task::yield_now().await;
    queue.shutdown();
    tokio::task::yield_now().await;
    assert!(draining.try_join_next().is_none());
    draining.shutdown().await;
    assert!(queue.is_shut_down(), "giving up on a drain leaves the queue shut down");
    item.done();
}

#[tokio::test]
async fn a_drain_waits_for_a_key_that_was_added_again_while_processed() {
    let queue = queue();
    queue.add("foo");
    let item = queue.try_get().unwrap();
    queue.add("foo");
    let mut draining = JoinSet::new();
    let drained = queue.clone();
    draining.spawn(async move { drained.drain(LONG).await });
    tokio::task::yield_now().await;
    item.done();
    tokio::task::yield_now().await;
    assert!(draining.try_join_next().is_none(), "it is queued again");
    let again = queue.get().await.unwrap();
    again.done();
    assert_eq!(draining.join_next().await.unwrap().unwrap(), Drained::Complete);
}

#[tokio::test]
async fn a_get_does_not_end_while_a_processed_key_will_be_queued_again() {
    // A dispatcher that spawns a task per key must not stop one key early.
    let queue = queue();
    queue.add("foo");
    let item = queue.try_get().unwrap();
    queue.add("foo");
    queue.shutdown();
    let mut waiting = waiting_worker(queue.clone());
    tokio::task::yield_now().await;
    assert!(waiting.try_join_next().is_none());
    item.done();
    assert_eq!(waiting.join_next().await.unwrap().unwrap(), Some("foo"));
    assert!(queue.get().await.is_none());
}

#[test]
fn a_finished_key_is_dropped_by_the_queue() {
    let queue: WorkQueue<Arc<str>> = scraped(WorkQueue::new("facts"));
    let key: Arc<str> = "default/web".into();
    queue.add(Arc::clone(&key));
    queue.add(Arc::clone(&key));
    assert_eq!(Arc::strong_count(&key), 2, "a merged add keeps nothing");
    let item = queue.try_get().unwrap();
    item.forget();
    assert_eq!(Arc::strong_count(&key), 1);
}

#[test]
fn a_delayed_key_is_dequeued_at_its_time_and_not_before() {
    let (queue, clock) = manual();
    assert_eq!(queue.add_after("foo", Duration::from_millis(50)), Admission::Scheduled);
    clock.advance(Duration::from_millis(49));
    assert_eq!((queue.len(), queue.waiting_len()), (0, 1));
    clock.advance(Duration::from_millis(1));
    assert_eq!((queue.len(), queue.waiting_len()), (1, 0));
    assert_eq!(take_all(&queue), ["foo"]);
    clock.advance(LONG);
    assert!(queue.is_empty(), "once");
}

#[test]
fn of_several_delays_of_one_key_the_earliest_counts() {
    let (queue, clock) = manual();
    queue.add_after("foo", Duration::from_millis(50));
    queue.add_after("foo", Duration::from_millis(70));
    clock.advance(Duration::from_millis(60));
    assert_eq!(take_all(&queue), ["foo"]);
    clock.advance(Duration::from_millis(60));
    assert!(queue.is_empty(), "the later delay went with the earlier");

    queue.add_after("foo", Duration::from_millis(50));
    queue.add_after("foo", Duration::from_millis(30));
    clock.advance(Duration::from_millis(40));
    assert_eq!(take_all(&queue), ["foo"]);
    clock.advance(Duration::from_millis(20));
    assert!(queue.is_empty());
}

#[test]
fn delayed_keys_are_dequeued_in_the_order_of_their_times() {
    let (queue, clock) = manual();
    queue.add_after("third", Duration::from_secs(3));
    queue.add_after("first", Duration::from_millis(50));
    queue.add_after("second", Duration::from_secs(1));
    queue.add_after("also second", Duration::from_secs(1));
    clock.advance(LONG);
    assert_eq!(take_all(&queue), ["first", "second", "also second", "third"]);
}

#[test]
fn a_delay_of_zero_is_a_plain_add() {
    let (queue, _clock) = manual();
    assert_eq!(queue.add_after("foo", Duration::ZERO), Admission::Queued);
    assert_eq!(take_all(&queue), ["foo"]);
}

#[test]
fn an_add_without_a_delay_ends_the_delay() {
    // client-go processes the key twice.
    let (queue, clock) = manual();
    queue.add_after("foo", Duration::from_secs(1));
    assert_eq!(queue.add("foo"), Admission::Queued);
    assert_eq!(queue.waiting_len(), 0);
    assert_eq!(take_all(&queue), ["foo"]);
    clock.advance(LONG);
    assert!(queue.is_empty());
}

#[test]
fn a_delay_can_be_cancelled_and_postponed() {
    let (queue, clock) = manual();
    queue.add_after("foo", Duration::from_secs(1));
    queue.add_after("bar", Duration::from_secs(1));
    assert!(queue.postpone(&"bar", Duration::from_secs(10)));
    assert!(queue.postpone(&"bar", Duration::from_secs(2)), "the key waits, though for longer already");
    assert!(queue.cancel(&"foo"));
    assert!(!queue.cancel(&"foo"));
    assert!(!queue.postpone(&"foo", LONG));
    clock.advance(Duration::from_secs(9));
    assert!(queue.is_empty());
    clock.advance(Duration::from_secs(1));
    assert_eq!(take_all(&queue), ["bar"]);
    queue.add("baz");
    assert!(!queue.cancel(&"baz"), "a queued key is processed");
    assert_eq!(take_all(&queue), ["baz"]);
}

#[test]
fn the_longest_delay_does_not_overflow() {
    let (queue, clock) = manual();
    clock.advance(LONG);
    assert_eq!(queue.add_after("foo", Duration::MAX), Admission::Scheduled);
    clock.advance(Duration::from_hours(24 * 365 * 100));
    assert!(queue.is_empty());
    assert!(queue.cancel(&"foo"));
}

#[test]
fn a_rate_limited_key_backs_off_longer_with_each_failure_until_it_is_forgotten() {
    let clock = ManualClock::new();
    let limiter = ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1));
    let queue = scraped(WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build());

    assert_eq!(queue.add_rate_limited("one"), Admission::BackingOff);
    assert_eq!(queue.num_requeues(&"one"), 1);
    clock.advance(Duration::from_millis(1));
    let item = queue.try_get().expect("due after 1 ms");
    assert_eq!(item.failures(), 1);
    assert_eq!(item.retry(), Admission::BackingOff);
    assert_eq!(queue.num_requeues(&"one"), 2);
    clock.advance(Duration::from_millis(1));
    assert!(queue.try_get().is_none());
    clock.advance(Duration::from_millis(1));
    let item = queue.try_get().expect("due after 2 ms");
    item.retry();
    queue.forget(&"one");
    assert_eq!(queue.num_requeues(&"one"), 0);
    clock.advance(Duration::from_millis(4));
    let item = queue.try_get().expect("its third delay was 4 ms");
    assert_eq!(item.failures(), 0);
    item.retry();
    clock.advance(Duration::from_millis(1));
    assert_eq!(take(&queue), Some("one"), "back to the first delay");
}

#[test]
fn a_retry_returns_the_backoff_of_its_key() {
    let exponential = ItemExponential::new(Duration::from_millis(1), Duration::from_millis(5));
    let zero = ItemFastSlow::new(Duration::ZERO, Duration::ZERO, 1);
    let limiters: [Box<dyn RateLimiter<&str>>; 2] = [Box::new(exponential), Box::new(zero)];
    for (limiter, expected) in limiters.into_iter().zip([[1, 2, 4, 5, 5], [0; 5]]) {
        let clock = ManualClock::new();
        let queue = scraped(WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build());
        queue.add("one");
        for millis in expected {
            let (admission, delay) = queue.try_get().expect("its delay is over").retry_with_delay();
            assert_eq!(delay, Duration::from_millis(millis));
            if millis > 0 {
                assert_eq!(admission, Admission::BackingOff);
                clock.advance(delay.saturating_sub(Duration::from_nanos(1)));
                assert!(queue.try_get().is_none(), "{delay:?} are not over");
                clock.advance(Duration::from_nanos(1));
            }
        }
    }
}

#[test]
fn failures_are_discarded_with_the_key() {
    let (queue, clock) = manual();
    queue.add_rate_limited("one");
    clock.advance(LONG);
    let item = queue.try_get().unwrap();
    assert_eq!(queue.num_requeues(&"one"), 1);
    item.done();
    assert_eq!(queue.num_requeues(&"one"), 0, "the key left the queue, and its failures with it");
}

#[test]
fn an_event_driven_add_neither_bypasses_nor_inflates_a_backoff() {
    let clock = ManualClock::new();
    let limiter = ItemFastSlow::new(Duration::from_secs(10), Duration::from_secs(10), 0);
    let queue = scraped(WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build());
    queue.add("a");
    let item = queue.try_get().unwrap();
    queue.add("a"); // an event while it fails
    assert_eq!(item.retry(), Admission::BackingOff);
    assert_eq!(queue.add("a"), Admission::BackingOff, "an event while it backs off");
    assert_eq!(queue.add_after("a", Duration::from_secs(1)), Admission::BackingOff);
    assert_eq!(queue.num_requeues(&"a"), 1);
    clock.advance(Duration::from_secs(9));
    assert!(queue.try_get().is_none());
    clock.advance(Duration::from_secs(1));
    let item = queue.try_get().unwrap();
    assert_eq!(item.failures(), 1);
    item.forget();
    assert!(queue.is_empty() && queue.waiting_len() == 0, "all adds were one run");
}

#[test]
fn an_immediate_add_ends_a_backoff_and_keeps_the_failure_count() {
    let (queue, _clock) = manual();
    queue.add("a");
    queue.try_get().unwrap().retry();
    let options = AddOptions::new().immediately();
    assert_eq!(queue.add_with("a", options), Admission::Queued);
    assert_eq!(queue.try_get().unwrap().failures(), 1);
}

#[tokio::test]
async fn each_piece_of_a_parallel_job_is_processed_exactly_once() {
    for (workers, pieces) in [(1, 0), (1, 1), (3, 1), (4, 1000), (1000, 7), (0, 5)] {
        let done = Arc::new(Mutex::new(vec![0; pieces]));
        let counted = Arc::clone(&done);
        let completed = parallelize_until(std::future::pending(), workers, pieces, move |piece| {
            let done = Arc::clone(&counted);
            async move {
                tokio::task::yield_now().await;
                done.lock().unwrap()[piece] += 1;
            }
        })
        .await;
        assert_eq!(completed, pieces);
        assert!(done.lock().unwrap().iter().all(|&times| times == 1), "{workers} workers, {pieces} pieces");
    }
}

#[tokio::test]
async fn a_parallel_job_starts_no_piece_after_it_is_stopped() {
    let completed =
        parallelize_until(std::future::ready(()), 2, 1_000_000, |_| tokio::task::yield_now()).await;
    assert!(completed < 1_000_000);
}

#[test]
fn a_leaked_item_keeps_its_key_in_processing() {
    let queue = queue();
    queue.add("a");
    std::mem::forget(queue.try_get().unwrap());
    queue.add("a");
    assert!(queue.try_get().is_none(), "no worker finished the key");
    assert_eq!((queue.processing_len(), queue.len()), (1, 0));
}

#[test]
fn a_panic_of_the_worker_counts_as_a_failure_and_the_key_is_retried() {
    let (queue, clock) = manual();
    queue.add("a");
    let worker = queue.clone();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _item = worker.try_get().unwrap();
        std::panic::resume_unwind(Box::new("work failed"));
    }));
    assert!(outcome.is_err());
    assert_eq!((queue.processing_len(), queue.waiting_len(), queue.num_requeues(&"a")), (0, 1, 1));
    clock.advance(LONG);
    assert_eq!(take_all(&queue), ["a"]);
}

/// Dequeues and drops a key when it is dropped.
struct Cleaner(WorkQueue<&'static str>);

impl Drop for Cleaner {
    fn drop(&mut self) {
        assert_eq!(take(&self.0), Some("a"));
    }
}

#[test]
fn a_key_that_was_dequeued_while_its_thread_unwound_has_not_failed() {
    let queue = queue();
    queue.add("a");
    let cleaner = Cleaner(queue.clone());
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _cleaner = cleaner;
        std::panic::resume_unwind(Box::new("other work failed"));
    }));
    assert!(outcome.is_err());
    assert_eq!((queue.processing_len(), queue.waiting_len(), queue.len()), (0, 0, 0));
}

/// A limiter that panics.
#[derive(Debug)]
struct Broken;

impl RateLimiter<&'static str> for Broken {
    fn delay(&self, _key: &&'static str, _failures: u32, _now: Duration) -> Duration {
        panic!("limiter failed");
    }
}

#[test]
fn a_limiter_that_panics_leaves_no_key_in_processing() {
    let queue = scraped(WorkQueue::builder("facts").rate_limiter(Broken).build());
    queue.add("a");
    let item = queue.try_get().unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| item.retry()));
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"limiter failed"));
    assert_eq!((queue.processing_len(), queue.waiting_len(), queue.len()), (0, 0, 0));
    assert_eq!(queue.add("a"), Admission::Queued);
}

#[test]
fn shutdown_removes_and_returns_waiting_keys() {
    let (queue, clock) = manual();
    queue.add("now");
    queue.add_after("later", Duration::from_secs(1));
    queue.add_rate_limited("failed");
    queue.add("held");
    assert_eq!(take(&queue), Some("now"));
    let held = queue.try_get().unwrap();
    queue.add_after("held", Duration::from_secs(1));
    let mut dropped = queue.shutdown();
    dropped.sort_unstable();
    assert_eq!(dropped, ["failed", "later"]);
    assert_eq!(held.retry(), Admission::Refused, "a retry would keep the queue from draining");
    clock.advance(LONG);
    assert_eq!((queue.len(), queue.waiting_len(), queue.processing_len()), (0, 0, 0));
}

/// A key whose comparison can panic.
#[derive(Clone, Debug)]
struct Touchy(u32, bool);

impl std::hash::Hash for Touchy {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        assert!(!self.1 && !other.1, "touched");
        self.0 == other.0
    }
}

impl Eq for Touchy {}

#[test]
fn a_key_that_panics_when_compared_leaves_the_queue_usable() {
    let queue: WorkQueue<Touchy> = scraped(WorkQueue::new("facts"));
    queue.add(Touchy(0, false));
    let adding = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.add(Touchy(0, true))));
    assert!(adding.is_err(), "compared with the queued key of the same hash");
    assert_eq!(queue.add(Touchy(0, false)), Admission::Merged);
    assert_eq!(queue.add(Touchy(1, false)), Admission::Queued);
}

/// A key that cannot be cloned while its flag is set.
#[derive(Debug)]
struct Single(Arc<AtomicBool>);

impl Clone for Single {
    fn clone(&self) -> Self {
        assert!(!self.0.load(Ordering::Relaxed), "cloned");
        Self(Arc::clone(&self.0))
    }
}

impl std::hash::Hash for Single {
    fn hash<H: std::hash::Hasher>(&self, _state: &mut H) {}
}

impl PartialEq for Single {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Single {}

#[test]
fn a_key_that_panics_when_cloned_stays_queued() {
    let queue = scraped(WorkQueue::new("facts"));
    let cannot_clone = Arc::new(AtomicBool::new(true));
    queue.add(Single(Arc::clone(&cannot_clone)));
    let dequeue = std::panic::AssertUnwindSafe(|| queue.try_get().is_some());
    assert!(std::panic::catch_unwind(dequeue).is_err());
    assert_eq!((queue.len(), queue.processing_len()), (1, 0));
    cannot_clone.store(false, Ordering::Relaxed);
    assert!(queue.try_get().is_some());
}

/// A limiter that records its calls.
#[derive(Debug, Clone, Default)]
struct Recording(Arc<Mutex<Vec<String>>>);

impl RateLimiter<&'static str> for Recording {
    fn delay(&self, key: &&'static str, failures: u32, now: Duration) -> Duration {
        self.0.lock().expect("no test panics here").push(format!("{key} failed {failures} at {now:?}"));
        Duration::from_secs(1)
    }

    fn forget(&self, key: &&'static str) {
        self.0.lock().expect("no test panics here").push(format!("forget {key}"));
    }
}

#[test]
fn a_limiter_receives_the_key_and_is_called_when_its_failures_are_discarded() {
    let (clock, limiter) = (ManualClock::new(), Recording::default());
    let queue =
        scraped(WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter.clone()).build());
    let calls = || std::mem::take(&mut *limiter.0.lock().unwrap());
    let dequeue_failed = |key: &'static str| {
        queue.add_rate_limited(key);
        clock.advance(Duration::from_secs(1));
        queue.try_get().expect("its backoff is over")
    };

    dequeue_failed("a").retry();
    assert_eq!(calls(), ["a failed 0 at 0ns", "a failed 1 at 1s"]);
    clock.advance(Duration::from_secs(1));
    queue.try_get().unwrap().forget();
    assert_eq!(calls(), ["forget a"]);
    dequeue_failed("b").done();
    assert_eq!(calls(), ["b failed 0 at 2s", "forget b"], "the key left the queue");
    dequeue_failed("d").requeue_after(LONG);
    assert_eq!(calls(), ["d failed 0 at 3s", "forget d"]);
    queue.add_rate_limited("e");
    assert!(queue.cancel(&"e"));
    assert_eq!(calls(), ["e failed 0 at 4s", "forget e"]);
    queue.add("f");
    queue.try_get().unwrap().forget();
    assert_eq!(calls(), Vec::<String>::new(), "no failures to discard");
    queue.forget(&"f");
    assert_eq!(queue.shutdown(), ["d"]);
    assert_eq!(calls(), ["forget f", "forget d"]);
}

#[test]
fn more_keys_than_one_call_makes_ready_are_all_dequeued_in_order() {
    let clock = ManualClock::new();
    let queue: WorkQueue<u32> = scraped(WorkQueue::builder("facts").clock(clock.clone()).build());
    (0..1000).for_each(|key| _ = queue.add_after(key, Duration::from_millis(1)));
    clock.advance(Duration::from_millis(1));
    let keys = std::iter::from_fn(|| queue.try_get().map(|item| *item.key()));
    assert!(keys.eq(0..1000));
}

#[tokio::test]
async fn an_owned_item_can_be_sent_to_a_task_that_outlives_its_handle() {
    let queue = queue();
    queue.add("a");
    let other = queue.clone();
    let item = other.try_get().unwrap().into_owned();
    drop(other);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { item.requeue_after(Duration::ZERO) });
    assert_eq!(tasks.join_all().await, [Admission::Queued]);
    assert_eq!((queue.len(), queue.processing_len()), (1, 0));
}
