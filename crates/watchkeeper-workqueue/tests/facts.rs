//! What client-go's own tests say of its work queues, said of ours; where we differ, the test says how.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::task::JoinSet;
use watchkeeper_workqueue::{
    AddOptions, Admission, Clock, Drained, Item, ManualClock, Priority, Sleep, WorkQueue,
    limiter::{ItemExponential, ItemFastSlow, RateLimiter},
    parallelize_until,
};

const LONG: Duration = Duration::from_hours(1);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new("facts")
}

fn manual() -> (WorkQueue<&'static str>, ManualClock) {
    let clock = ManualClock::new();
    (WorkQueue::builder("facts").clock(clock.clone()).build(), clock)
}

fn take(queue: &WorkQueue<&'static str>) -> Option<&'static str> {
    queue.try_get().map(|item| *item.key())
}

fn take_all(queue: &WorkQueue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| take(queue)).collect()
}

#[tokio::test]
async fn many_producers_and_consumers_hand_out_every_key_and_nothing_after_shutdown() {
    let queue: WorkQueue<u32> = WorkQueue::new("facts");
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
    assert_eq!(queue.add(7), Admission::Refused, "adds after shutdown are refused, and say so");
    assert!(queue.is_empty());
    assert!(queue.get().await.is_none());
}

#[test]
fn a_key_added_while_it_is_processed_is_handed_out_once_more_after_that() {
    let queue = queue();
    queue.add("a");
    let item = queue.try_get().unwrap();
    assert_eq!(queue.add("a"), Admission::Deferred);
    assert_eq!(queue.add("a"), Admission::Deferred);
    assert_eq!(queue.len(), 0);
    assert!(queue.try_get().is_none(), "not while it is processed");
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
fn length_counts_keys_in_line_once() {
    let queue = queue();
    queue.add("foo");
    assert_eq!(queue.len(), 1);
    queue.add("bar");
    assert_eq!(queue.len(), 2);
    assert_eq!(queue.add("foo"), Admission::Merged);
    assert_eq!(queue.len(), 2);
}

#[test]
fn keys_come_out_in_the_order_of_their_first_add() {
    let queue = queue();
    for key in ["c", "a", "b", "a", "c"] {
        queue.add(key);
    }
    assert_eq!(take_all(&queue), ["c", "a", "b"]);
}

#[tokio::test]
async fn another_worker_waits_until_the_key_it_could_take_is_finished() {
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
async fn a_drain_waits_until_everything_handed_out_is_finished() {
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
async fn a_drain_does_not_end_while_keys_are_still_queued_and_says_so_at_its_deadline() {
    // client-go's returns at once here: it looks only at what is being processed.
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
async fn a_drain_hands_out_a_key_that_was_added_again_while_processed() {
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
async fn a_get_does_not_end_while_a_key_that_is_processed_will_come_back() {
    // A dispatcher that hands keys to tasks must not stop one key short.
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
fn a_finished_key_is_let_go_by_the_queue() {
    let queue: WorkQueue<Arc<str>> = WorkQueue::new("facts");
    let key: Arc<str> = "default/web".into();
    queue.add(Arc::clone(&key));
    queue.add(Arc::clone(&key));
    assert_eq!(Arc::strong_count(&key), 2, "a merged add keeps nothing");
    let item = queue.try_get().unwrap();
    item.forget();
    assert_eq!(Arc::strong_count(&key), 1);
}

#[test]
fn a_delayed_key_is_handed_out_at_its_time_and_not_before() {
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
fn delays_come_out_in_the_order_of_their_times() {
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
fn a_direct_add_takes_the_delayed_copy_with_it() {
    // client-go hands the key out twice.
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
    assert!(queue.postpone(&"bar", Duration::from_secs(2)), "there is one, though it is later already");
    assert!(queue.cancel(&"foo"));
    assert!(!queue.cancel(&"foo"));
    assert!(!queue.postpone(&"foo", LONG));
    clock.advance(Duration::from_secs(9));
    assert!(queue.is_empty());
    clock.advance(Duration::from_secs(1));
    assert_eq!(take_all(&queue), ["bar"]);
    queue.add("baz");
    assert!(!queue.cancel(&"baz"), "what is in line is looked at");
    assert_eq!(take_all(&queue), ["baz"]);
}

#[test]
fn the_longest_delay_there_is_does_not_overflow() {
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
    let queue = WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build();

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

/// A limiter that has to be asked about each failure: it has no schedule.
struct Asked(ItemExponential);

impl RateLimiter for Asked {
    fn delay(&mut self, failures: u32, now: Duration) -> Duration {
        self.0.delay(failures, now)
    }
}

#[test]
fn a_retry_reports_the_delay_after_which_its_key_is_handed_out_again() {
    let exponential = || ItemExponential::new(Duration::from_millis(1), Duration::from_millis(5));
    let zero = ItemFastSlow::new(Duration::ZERO, Duration::ZERO, 1);
    let limiters: [(Box<dyn RateLimiter>, [u64; 5]); 3] = [
        (Box::new(exponential()), [1, 2, 4, 5, 5]),
        (Box::new(Asked(exponential())), [1, 2, 4, 5, 5]),
        (Box::new(zero), [0; 5]),
    ];
    for (limiter, expected) in limiters {
        let clock = ManualClock::new();
        let queue = WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build();
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
fn limiter_state_goes_with_the_key() {
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
    let queue = WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build();
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
    assert!(queue.is_empty() && queue.waiting_len() == 0, "all of it was one hand-out");
}

#[test]
fn an_immediate_add_jumps_a_backoff_and_keeps_its_count() {
    let (queue, _clock) = manual();
    queue.add("a");
    queue.try_get().unwrap().retry();
    let options = AddOptions::new().immediately();
    assert_eq!(queue.add_with("a", options), Admission::Queued);
    assert_eq!(queue.try_get().unwrap().failures(), 1);
}

#[tokio::test]
async fn each_piece_of_a_parallel_job_is_done_exactly_once() {
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
async fn a_parallel_job_begins_nothing_new_once_it_is_told_to_stop() {
    let completed =
        parallelize_until(std::future::ready(()), 2, 1_000_000, |_| tokio::task::yield_now()).await;
    assert!(completed < 1_000_000);
}

#[test]
fn a_stale_or_repeated_token_does_nothing() {
    let queue = queue();
    queue.add("a");
    let token = queue.try_get().map(Item::into_token).unwrap();
    assert_eq!(queue.processing_len(), 1, "taking the guard off does not finish the key");
    assert!(queue.done(token));
    assert!(!queue.done(token), "twice");
    queue.add("a");
    let held = queue.try_get().unwrap();
    queue.add("a");
    assert!(!queue.done(token), "a token of an earlier hand-out of the same slot");
    assert!(queue.try_get().is_none(), "the key is still held");
    held.done();
    assert_eq!(take_all(&queue), ["a"]);
}

#[test]
fn a_panic_of_the_worker_counts_as_a_failure_and_the_key_comes_back() {
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

#[test]
fn shutdown_drops_and_returns_what_waits_for_its_time() {
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

#[test]
fn a_key_added_by_reference_is_cloned_only_if_it_is_new() {
    let queue: WorkQueue<Arc<str>> = WorkQueue::new("facts");
    let key: Arc<str> = "a".into();
    assert_eq!(queue.add_ref(&key), Admission::Queued);
    assert_eq!(queue.add_ref(&key), Admission::Merged);
    assert_eq!(Arc::strong_count(&key), 2, "the caller's and the queue's");
}

/// Long enough that adds are posted, and more of them than the inbox has room for.
const MANY: u32 = 20_000;

fn long_line() -> WorkQueue<u32> {
    let queue = WorkQueue::new("facts");
    (0..MANY).for_each(|key| _ = queue.add(key));
    queue
}

#[test]
fn adds_to_a_long_line_are_taken_in_later_and_nobody_can_tell() {
    let queue = long_line();
    assert_eq!(queue.add(MANY), Admission::Posted);
    assert_eq!(queue.add(MANY), Admission::Posted);
    assert_eq!(queue.add(MANY - 1), Admission::Posted);
    assert_eq!(queue.len() as u64, u64::from(MANY) + 1, "posted adds count, and merge");
    let keys = std::iter::from_fn(|| queue.try_get().map(|item| *item.key()));
    assert!(keys.eq(0..=MANY), "in order of arrival");
    assert_eq!(queue.add(7), Admission::Queued, "the line is short again");
}

#[tokio::test]
async fn workers_empty_a_long_line_and_what_is_posted_behind_it_in_order() {
    let queue = long_line();
    let posted = MANY..MANY + 1000;
    posted.for_each(|key| _ = queue.add(key));
    for key in 0..MANY + 1000 {
        assert_eq!(queue.get().await.map(|item| *item.key()), Some(key));
    }
    assert!(queue.try_get().is_none());
}

#[tokio::test]
async fn an_urgent_key_overtakes_a_long_line_and_what_was_posted_before_it() {
    let queue = long_line();
    assert_eq!(queue.add(MANY), Admission::Posted);
    queue.add_with(MANY + 1, AddOptions::new().priority(Priority::HIGH));
    assert_eq!(queue.get().await.map(|item| *item.key()), Some(MANY + 1));
    assert_eq!(queue.get().await.map(|item| *item.key()), Some(0));
}

#[tokio::test]
async fn a_posted_key_overtakes_a_long_line_of_lower_priority() {
    let queue: WorkQueue<u32> = WorkQueue::new("facts");
    let low = || AddOptions::new().priority(Priority::LOW);
    (0..MANY).for_each(|key| _ = queue.add_with(key, low()));
    queue.add(MANY);
    assert_eq!(queue.add(MANY + 1), Admission::Posted);
    for key in [MANY, MANY + 1, 0] {
        assert_eq!(queue.get().await.map(|item| *item.key()), Some(key));
    }
}

#[test]
fn a_shutdown_keeps_what_was_posted() {
    let queue = long_line();
    assert_eq!(queue.add(MANY), Admission::Posted);
    queue.shutdown();
    assert_eq!(queue.add(MANY + 1), Admission::Refused);
    assert_eq!(std::iter::from_fn(|| queue.try_get().map(Item::forget)).count() as u64, u64::from(MANY) + 1);
}

#[test]
fn failures_survive_a_finish_with_an_add_of_the_key_posted() {
    let clock = ManualClock::new();
    let limiter = ItemFastSlow::new(Duration::from_millis(1), LONG, 1);
    let queue: WorkQueue<u32> =
        WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build();
    queue.add_rate_limited(0);
    clock.advance(Duration::from_millis(1));
    let held = queue.try_get().unwrap();
    (1..MANY).for_each(|key| _ = queue.add(key));
    assert_eq!(queue.add(0), Admission::Posted);
    held.done();
    assert_eq!(queue.num_requeues(&0), 1, "the key never left the queue");
}

#[test]
fn delays_and_failures_posted_behind_a_long_line_are_what_they_would_have_been() {
    let clock = ManualClock::new();
    let limiter = ItemFastSlow::new(Duration::from_millis(1), LONG, 1);
    let queue: WorkQueue<u32> =
        WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build();
    (0..MANY).for_each(|key| _ = queue.add(key));
    assert_eq!(queue.add_after(MANY, LONG), Admission::Posted);
    assert_eq!(queue.add_after(MANY + 1, LONG), Admission::Posted);
    assert!(queue.cancel(&(MANY + 1)), "whoever asks is told of it");
    assert_eq!(queue.add_rate_limited(MANY + 2), Admission::Posted);
    assert_eq!(queue.add_rate_limited(MANY + 2), Admission::Posted);
    assert_eq!((queue.num_requeues(&(MANY + 2)), queue.waiting_len()), (2, 2));
    assert_eq!(std::iter::from_fn(|| queue.try_get().map(Item::forget)).count() as u64, u64::from(MANY));
    clock.advance(Duration::from_millis(1));
    assert_eq!(queue.try_get().map(|item| *item.key()), Some(MANY + 2), "the first of its two backoffs");
    clock.advance(LONG.saturating_sub(Duration::from_millis(2)));
    assert!(queue.try_get().is_none(), "not early");
    clock.advance(Duration::from_millis(1));
    assert_eq!(queue.try_get().map(|item| *item.key()), Some(MANY));
}

#[test]
fn a_failure_posted_before_its_key_is_forgotten_is_forgotten_and_the_key_still_comes_back() {
    let clock = ManualClock::new();
    let limiter = ItemFastSlow::new(Duration::from_millis(1), LONG, 1);
    let queue: WorkQueue<u32> =
        WorkQueue::builder("facts").clock(clock.clone()).rate_limiter(limiter).build();
    queue.add(0);
    let held = queue.try_get().unwrap();
    (1..MANY).for_each(|key| _ = queue.add(key));
    assert_eq!(queue.add_rate_limited(0), Admission::Posted);
    held.forget();
    assert_eq!(queue.num_requeues(&0), 0);
    assert_eq!(std::iter::from_fn(|| queue.try_get().map(Item::forget)).count() as u64, u64::from(MANY) - 1);
    clock.advance(Duration::from_millis(1));
    let again = queue.try_get().expect("the key was added");
    assert_eq!((*again.key(), again.failures()), (0, 0));
}

#[tokio::test]
async fn a_posted_delay_that_ran_out_in_the_meantime_is_handed_out_with_the_line() {
    let clock = ManualClock::new();
    let queue: WorkQueue<u32> = WorkQueue::builder("facts").clock(clock.clone()).build();
    (0..MANY).for_each(|key| _ = queue.add(key));
    assert_eq!(queue.add_after(MANY, Duration::from_millis(1)), Admission::Posted);
    clock.advance(Duration::from_millis(1));
    for key in 0..=MANY {
        assert_eq!(queue.get().await.map(|item| *item.key()), Some(key));
    }
}

#[test]
fn a_posted_delay_that_ran_out_in_the_meantime_is_in_line_for_whoever_asks() {
    let clock = ManualClock::new();
    let queue: WorkQueue<u32> = WorkQueue::builder("facts").clock(clock.clone()).build();
    (0..MANY).for_each(|key| _ = queue.add(key));
    assert_eq!(queue.add_after(MANY, Duration::from_millis(1)), Admission::Posted);
    clock.advance(Duration::from_millis(1));
    assert_eq!(queue.len() as u64, u64::from(MANY) + 1);
}

#[test]
fn a_posted_retry_is_refused_once_the_queue_is_shut_down_and_returned_if_it_was_before() {
    let clock = ManualClock::new();
    let queue: WorkQueue<u32> = WorkQueue::builder("facts").clock(clock.clone()).build();
    (0..MANY).for_each(|key| _ = queue.add(key));
    assert_eq!(queue.add_after(MANY, LONG), Admission::Posted);
    assert_eq!(queue.shutdown(), [MANY]);
    assert_eq!(queue.add_after(MANY, LONG), Admission::Refused);
    assert_eq!(queue.add_rate_limited(MANY), Admission::Refused);
}

/// A key that cannot be compared.
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
fn a_posted_key_that_panics_when_compared_takes_no_other_with_it() {
    let queue: WorkQueue<Touchy> = WorkQueue::new("facts");
    (0..MANY).for_each(|key| _ = queue.add(Touchy(key, false)));
    for key in [Touchy(MANY, false), Touchy(0, true), Touchy(MANY + 1, false)] {
        assert_eq!(queue.add(key), Admission::Posted);
    }
    let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.len()));
    assert!(asked.is_err(), "it is compared with the one in line");
    assert_eq!(queue.len() as u64, u64::from(MANY) + 2);
}

#[test]
fn a_limiter_that_never_delays_costs_no_clock_and_still_counts() {
    let limiter = ItemExponential::new(Duration::ZERO, Duration::from_secs(1));
    let queue = WorkQueue::builder("facts").clock(NoClock).rate_limiter(limiter).build();
    assert_eq!(queue.add_rate_limited("a"), Admission::Queued);
    let item = queue.try_get().unwrap();
    assert_eq!(item.failures(), 1);
    assert_eq!(item.retry(), Admission::Queued);
    assert_eq!(queue.num_requeues(&"a"), 2);
}

#[test]
fn a_limiter_that_never_delays_costs_no_clock_behind_a_long_line_either() {
    let limiter = ItemExponential::new(Duration::ZERO, Duration::from_secs(1));
    let queue: WorkQueue<u32> = WorkQueue::builder("facts").clock(NoClock).rate_limiter(limiter).build();
    (0..MANY).for_each(|key| _ = queue.add_rate_limited(key));
    assert_eq!(queue.add_rate_limited(0), Admission::Posted);
    assert_eq!((queue.num_requeues(&0), queue.len() as u64), (2, u64::from(MANY)));
    let item = queue.try_get().unwrap();
    assert_eq!((*item.key(), item.failures()), (0, 2));
}

/// A clock nobody may read.
#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Duration {
        panic!("the time is not needed")
    }

    fn sleep_until(&self, _at: Duration) -> Sleep {
        panic!("nobody waits")
    }
}

#[tokio::test]
async fn an_item_can_go_to_a_task_that_outlives_the_handle_it_came_from() {
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
