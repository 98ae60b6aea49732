//! The async shell under Shuttle: thousands of schedules of a few tasks, each checked against the guarantees.
//! A lost wake-up is a deadlock, which Shuttle reports with the schedule that replays it.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p watchkeeper-workqueue --test interleavings --release`
#![cfg(shuttle)]

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use prometheus_client::{encoding::text::encode, registry::Registry};
use shuttle::{
    future::{self, JoinHandle},
    sync::Mutex,
    thread,
};
use watchkeeper_workqueue::{
    AddOptions, Admission, Cause, Drained, ManualClock, WorkQueue, limiter::ItemFastSlow,
    prometheus::QueueMetrics,
};

const SCHEDULES: usize = 10_000;
const STEP: Duration = Duration::from_millis(10);

/// Runs both searches of Shuttle: uniformly random, and few preemptions at random places.
fn explore(body: impl Fn() + Send + Sync + 'static) {
    let body = Arc::new(body);
    let again = Arc::clone(&body);
    shuttle::check_random(move || body(), SCHEDULES);
    shuttle::check_pct(move || again(), SCHEDULES, 3);
}

fn queue(clock: &ManualClock) -> WorkQueue<usize> {
    let limiter = ItemFastSlow::new(STEP, STEP, 0);
    WorkQueue::builder("interleavings").clock(clock.clone()).rate_limiter(limiter).build()
}

/// The adds and runs of each key.
#[derive(Default)]
struct Ledger {
    wanted: [u32; 2],
    seen: [u32; 2],
    runs: [u32; 2],
    is_processed: [bool; 2],
}

fn worker(queue: &WorkQueue<usize>, ledger: &Arc<Mutex<Ledger>>) -> JoinHandle<()> {
    let (queue, ledger) = (queue.clone(), Arc::clone(ledger));
    future::spawn(async move {
        while let Some(item) = queue.get().await {
            let key = *item.key();
            {
                let mut ledger = ledger.lock().unwrap();
                assert!(!std::mem::replace(&mut ledger.is_processed[key], true), "one key in two workers");
                ledger.seen[key] = ledger.wanted[key];
                ledger.runs[key] += 1;
            }
            thread::yield_now();
            ledger.lock().unwrap().is_processed[key] = false;
            item.forget();
        }
    })
}

fn producer(
    queue: &WorkQueue<usize>,
    ledger: &Arc<Mutex<Ledger>>,
    keys: &'static [usize],
) -> thread::JoinHandle<()> {
    let (queue, ledger) = (queue.clone(), Arc::clone(ledger));
    thread::spawn(move || {
        for &key in keys {
            ledger.lock().unwrap().wanted[key] += 1;
            assert_ne!(queue.add(key), Admission::Refused);
        }
    })
}

#[test]
fn no_key_is_processed_twice_at_once_and_no_add_is_lost() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let workers = [worker(&queue, &ledger), worker(&queue, &ledger)];
        let producers = [producer(&queue, &ledger, &[0, 1, 0]), producer(&queue, &ledger, &[1, 0])];
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!(future::block_on(queue.drain(Duration::MAX)), Drained::Complete);
        workers.into_iter().for_each(|worker| future::block_on(worker).unwrap());
        let ledger = ledger.lock().unwrap();
        assert_eq!(ledger.seen, ledger.wanted, "the last add of each key is followed by a run");
        assert!(
            ledger.runs.iter().zip(ledger.wanted).all(|(&outs, adds)| outs <= adds),
            "no run without an add"
        );
    });
}

#[test]
fn adds_during_a_run_lead_to_exactly_one_more_run() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        queue.add(0);
        let held = queue.try_get().unwrap();
        let adders: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    assert_eq!(queue.add(0), Admission::Deferred);
                })
            })
            .collect();
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        let taker = {
            let queue = queue.clone();
            future::spawn(async move { queue.get().await.map(|item| *item.key()) })
        };
        thread::yield_now();
        held.done();
        assert_eq!(future::block_on(taker).unwrap(), Some(0));
        assert!(queue.try_get().is_none());
    });
}

#[test]
fn shutdown_returns_to_every_waiter_and_a_drain_ends_only_when_nothing_is_left() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let workers = [worker(&queue, &ledger), worker(&queue, &ledger), worker(&queue, &ledger)];
        ledger.lock().unwrap().wanted = [1, 1];
        queue.add(0);
        queue.add(1);
        let shutter = {
            let queue = queue.clone();
            thread::spawn(move || drop(queue.shutdown()))
        };
        assert_eq!(future::block_on(queue.drain(Duration::MAX)), Drained::Complete);
        assert_eq!((queue.len(), queue.processing_len()), (0, 0));
        assert_eq!(queue.add(0), Admission::Refused);
        shutter.join().unwrap();
        workers.into_iter().for_each(|worker| future::block_on(worker).unwrap());
        assert_eq!(ledger.lock().unwrap().runs, [1, 1]);
    });
}

#[test]
fn a_delayed_key_is_dequeued_even_if_the_timekeeper_is_dropped() {
    explore(|| {
        let clock = ManualClock::new();
        let queue = queue(&clock);
        queue.add_after(0, STEP);
        let quitter = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut get = pin!(queue.get());
                let mut context = Context::from_waker(Waker::noop());
                match get.as_mut().poll(&mut context) {
                    Poll::Ready(Some(item)) => _ = item.requeue_after(Duration::ZERO),
                    Poll::Ready(None) | Poll::Pending => {}
                }
            })
        };
        let waiter = {
            let queue = queue.clone();
            future::spawn(async move { queue.get().await.map(|item| *item.key()) })
        };
        let ticker = thread::spawn(move || clock.advance(STEP));
        assert_eq!(future::block_on(waiter).unwrap(), Some(0));
        quitter.join().unwrap();
        ticker.join().unwrap();
    });
}

#[test]
fn an_earlier_delay_wakes_the_waiter_that_sleeps_for_a_later_one() {
    explore(|| {
        let clock = ManualClock::new();
        let queue = queue(&clock);
        queue.add_after(0, STEP * 100);
        let waiter = {
            let queue = queue.clone();
            future::spawn(async move { queue.get().await.map(|item| *item.key()) })
        };
        let adder = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.add_after(1, STEP);
                clock.advance(STEP * 2);
            })
        };
        assert_eq!(future::block_on(waiter).unwrap(), Some(1));
        adder.join().unwrap();
    });
}

#[test]
fn two_waiters_share_two_keys_that_become_due_together() {
    explore(|| {
        let clock = ManualClock::new();
        let queue = queue(&clock);
        queue.add_after(0, STEP);
        queue.add_after(1, STEP);
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                // Keeps its key in processing, so that one waiter cannot take both.
                future::spawn(async move {
                    let item = queue.get().await?.into_owned();
                    let key = *item.key();
                    std::mem::forget(item);
                    Some(key)
                })
            })
            .collect();
        let ticker = thread::spawn(move || clock.advance(STEP));
        let mut keys: Vec<usize> =
            waiters.into_iter().map(|waiter| future::block_on(waiter).unwrap().unwrap()).collect();
        keys.sort_unstable();
        assert_eq!(keys, [0, 1]);
        ticker.join().unwrap();
    });
}

#[test]
fn a_waiter_that_is_dropped_after_it_was_woken_passes_the_wake_up_on() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let waiter = {
            let queue = queue.clone();
            future::spawn(async move { queue.get().await.map(|item| *item.key()) })
        };
        let quitter = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut get = Box::pin(queue.get());
                let polled = get.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                thread::yield_now();
                drop(get);
                polled.is_ready()
            })
        };
        queue.add(0);
        // If the quitter dequeued the key, dropping the item finished it, and the waiter needs another.
        if quitter.join().unwrap() {
            queue.add(1);
        }
        assert!(future::block_on(waiter).unwrap().is_some());
    });
}

/// Scrapes the metrics of the queue twice.
fn scraper(queue: &WorkQueue<usize>) -> thread::JoinHandle<()> {
    let mut registry = Registry::default();
    QueueMetrics::register(&mut registry).add_queue(queue).unwrap();
    thread::spawn(move || {
        for _ in 0..2 {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
        }
    })
}

#[test]
fn a_key_added_while_the_worker_goes_to_sleep_wakes_it() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let scraper = scraper(&queue);
        let worker = {
            let queue = queue.clone();
            future::spawn(async move {
                let mut keys = Vec::new();
                while keys.len() < 4 {
                    keys.extend(queue.get().await.map(|item| *item.key()));
                }
                keys
            })
        };
        let producers = [[0, 1], [2, 3]].map(|keys| {
            let queue = queue.clone();
            thread::spawn(move || keys.map(|key| assert_ne!(queue.add(key), Admission::Refused)))
        });
        let mut keys = future::block_on(worker).unwrap();
        keys.sort_unstable();
        assert_eq!(keys, [0, 1, 2, 3]);
        producers.into_iter().for_each(|producer| _ = producer.join().unwrap());
        scraper.join().unwrap();
    });
}

#[test]
fn adds_keep_the_order_of_their_producer() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let producers = [0, 10, 20].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || (first..first + 4).for_each(|key| _ = queue.add(key)))
        });
        let early: Vec<usize> = std::iter::from_fn(|| queue.try_get().map(|item| *item.key())).collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        let late = std::iter::from_fn(|| queue.try_get().map(|item| *item.key()));
        let keys: Vec<usize> = early.into_iter().chain(late).collect();
        for first in [0, 10, 20] {
            let own: Vec<usize> =
                keys.iter().copied().filter(|key| (first..first + 4).contains(key)).collect();
            assert_eq!(own, [first, first + 1, first + 2, first + 3], "of {keys:?}");
        }
    });
}

#[test]
fn every_cause_is_reported_with_its_own_key() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let scraper = scraper(&queue);
        // Each producer gives a cause for every other key; key 9 is added by both.
        let producers = [0, 10].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || {
                for key in [first, first + 1, 9, first + 2] {
                    let admission = if key % 2 == 0 || key == 9 {
                        let why = Cause::Other(format!("{first} for {key}").into());
                        queue.add_with(key, AddOptions::new().cause(why))
                    } else {
                        queue.add(key)
                    };
                    assert_ne!(admission, Admission::Refused);
                }
            })
        });
        let mut seen: Vec<(usize, String)> = Vec::new();
        let mut drain = |queue: &WorkQueue<usize>| {
            while let Some(item) = queue.try_get() {
                seen.push((*item.key(), item.causes().to_string()));
            }
        };
        drain(&queue);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        scraper.join().unwrap();
        drain(&queue);
        let both: Vec<&str> =
            seen.iter().filter(|(key, _)| *key == 9).flat_map(|(_, why)| why.split(", ")).collect();
        assert!(both.len() == 2 && both.contains(&"0 for 9") && both.contains(&"10 for 9"), "{both:?}");
        for key in [0, 1, 2, 10, 11, 12] {
            let why = if key % 2 == 0 { format!("{} for {key}", key / 10 * 10) } else { String::new() };
            let own: Vec<_> = seen.iter().filter(|(seen, _)| *seen == key).map(|(_, why)| why).collect();
            assert_eq!(own, [&why], "of {key}");
        }
    });
}

#[test]
fn a_call_after_an_add_observes_it() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let observers = [0, 1, 2].map(|key| {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.add_after(key, STEP);
                queue.add(key + 10);
                assert!(queue.len() >= 1);
                queue.add(key);
                assert!(!queue.cancel(&key), "the key is queued, not waiting");
                assert!(queue.len() >= 2);
            })
        });
        observers.into_iter().for_each(|observer| observer.join().unwrap());
        assert_eq!((queue.len(), queue.waiting_len()), (6, 0));
    });
}

#[test]
fn an_add_that_races_a_shutdown_is_refused_or_dequeued() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let producers = [0, 10].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || -> Vec<usize> {
                let taken = |key: &usize| queue.add(*key) != Admission::Refused;
                (first..first + 3).filter(taken).collect()
            })
        });
        let worker = {
            let queue = queue.clone();
            future::spawn(async move {
                let mut keys = Vec::new();
                while let Some(item) = queue.get().await {
                    keys.push(*item.key());
                }
                keys
            })
        };
        let shutter = {
            let queue = queue.clone();
            thread::spawn(move || drop(queue.shutdown()))
        };
        let mut taken: Vec<usize> =
            producers.into_iter().flat_map(|producer| producer.join().unwrap()).collect();
        shutter.join().unwrap();
        let mut dequeued = future::block_on(worker).unwrap();
        taken.sort_unstable();
        dequeued.sort_unstable();
        assert_eq!(dequeued, taken);
        assert_eq!(queue.add(7), Admission::Refused);
    });
}

#[test]
fn the_result_of_an_add_during_a_dequeue_is_exact() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        (0..3).for_each(|key| _ = queue.add(key));
        let adder = {
            let queue = queue.clone();
            thread::spawn(move || queue.add(0))
        };
        let first = queue.try_get().unwrap();
        assert_eq!(*first.key(), 0);
        let admission = adder.join().unwrap();
        first.forget();
        queue.shutdown();
        let runs =
            std::iter::from_fn(|| queue.try_get().map(|item| *item.key())).filter(|key| *key == 0).count();
        match admission {
            Admission::Merged => assert_eq!(runs, 0),
            Admission::Deferred => assert_eq!(runs, 1),
            other => panic!("the key was queued or being processed, not {other:?}"),
        }
    });
}

#[test]
fn a_delay_added_while_the_worker_goes_to_sleep_starts_its_timer() {
    explore(|| {
        let clock = ManualClock::new();
        let queue = queue(&clock);
        let scraper = scraper(&queue);
        let worker = {
            let queue = queue.clone();
            future::spawn(async move {
                let mut keys = Vec::new();
                while keys.len() < 2 {
                    keys.extend(queue.get().await.map(|item| *item.key()));
                }
                keys
            })
        };
        let producers = [0, 1].map(|key| {
            let queue = queue.clone();
            thread::spawn(move || assert_ne!(queue.add_after(key, STEP), Admission::Refused))
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        clock.advance(STEP);
        let mut keys = future::block_on(worker).unwrap();
        keys.sort_unstable();
        assert_eq!(keys, [0, 1]);
        scraper.join().unwrap();
    });
}

#[test]
fn every_failure_is_counted() {
    explore(|| {
        let queue = queue(&ManualClock::new());
        let failing = [0, 1].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    assert_ne!(queue.add_rate_limited(0), Admission::Refused);
                }
                assert!(queue.num_requeues(&0) >= 2, "at least those of this thread");
            })
        });
        let scraper = scraper(&queue);
        failing.into_iter().for_each(|failing| failing.join().unwrap());
        scraper.join().unwrap();
        assert_eq!((queue.num_requeues(&0), queue.waiting_len()), (4, 1));
    });
}

#[test]
fn keys_are_finished_while_others_are_added_and_none_is_left() {
    explore(|| {
        let clock = ManualClock::new();
        let queue = queue(&clock);
        // A delay, so that finishing goes on beside one.
        queue.add_after(9, STEP * 100);
        (0..3).for_each(|key| _ = queue.add(key));
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || {
                assert_ne!(queue.add(0), Admission::Refused);
                assert_ne!(queue.add_after(4, STEP), Admission::Refused);
                assert_ne!(queue.add(5), Admission::Refused);
            })
        };
        let worker = {
            let queue = queue.clone();
            future::spawn(async move {
                let mut keys = Vec::new();
                while let Some(item) = queue.get().await {
                    keys.push(*item.key());
                    item.forget();
                }
                keys
            })
        };
        producer.join().unwrap();
        clock.advance(STEP);
        // Due keys are dequeued; the others are returned by the shutdown.
        while queue.waiting_len() > 1 {
            thread::yield_now();
        }
        assert_eq!(queue.shutdown(), [9]);
        let mut keys = future::block_on(worker).unwrap();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys, [0, 1, 2, 4, 5]);
        assert_eq!((queue.len(), queue.processing_len(), queue.waiting_len()), (0, 0, 0));
    });
}

#[test]
fn a_scrape_that_races_the_last_handle_shows_the_queue_or_nothing() {
    explore(|| {
        let mut registry = Registry::default();
        let metrics = QueueMetrics::register(&mut registry);
        let first = queue(&ManualClock::new());
        metrics.add_queue(&first).unwrap();
        first.add(0);
        let dropper = thread::spawn(move || drop(first));
        let scrape = |registry: &Registry| {
            let mut text = String::new();
            encode(&mut text, registry).unwrap();
            text.lines().filter(|line| line.starts_with("workqueue_adds_total")).count()
        };
        assert!(scrape(&registry) <= 1);
        dropper.join().unwrap();
        assert_eq!(scrape(&registry), 0);
        assert!(metrics.add_queue(&queue(&ManualClock::new())).is_ok(), "the name is free");
    });
}
