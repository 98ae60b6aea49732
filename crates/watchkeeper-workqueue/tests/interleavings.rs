//! The async shell under Shuttle: thousands of schedules of a few tasks, each checked against the guarantees.
//! A lost wake-up is a deadlock, which Shuttle reports with the schedule that replays it.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p watchkeeper-workqueue --test interleavings --release`
#![cfg(shuttle)]

use std::{
    future::Future,
    iter,
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
    AddOptions, Admission, Cause, Drained, Item, ManualClock, WorkQueue, limiter::ItemFastSlow,
    prometheus::QueueMetrics,
};

type Queue = WorkQueue<usize>;

const SCHEDULES: usize = 10_000;
const STEP: Duration = Duration::from_millis(10);

/// Runs a scenario on new queues, by both searches of Shuttle: uniformly random, and few preemptions at random places.
///
/// The queue is registered for metrics, and a thread scrapes them meanwhile, as the endpoint of a manager does.
fn explore(scenario: impl Fn(&Queue, &ManualClock) + Send + Sync + 'static) {
    let run = Arc::new(move || {
        let clock = ManualClock::new();
        let queue = queue(&clock);
        let mut registry = Registry::default();
        QueueMetrics::register(&mut registry).add_queue(&queue).unwrap();
        let scraper = thread::spawn(move || (0..2).for_each(|_| _ = scrape(&registry)));
        scenario(&queue, &clock);
        scraper.join().unwrap();
    });
    let again = Arc::clone(&run);
    shuttle::check_random(move || run(), SCHEDULES);
    shuttle::check_pct(move || again(), SCHEDULES, 3);
}

fn queue(clock: &ManualClock) -> Queue {
    let limiter = ItemFastSlow::new(STEP, STEP, 0);
    WorkQueue::builder("interleavings").clock(clock.clone()).rate_limiter(limiter).build()
}

fn scrape(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

/// Starts a thread that uses the queue.
fn start<T: Send + 'static>(
    queue: &Queue,
    calls: impl FnOnce(&Queue) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || calls(&queue))
}

/// Starts a worker that processes up to `count` keys, with `forget` at the end of each, and returns them.
fn worker(queue: &Queue, count: usize) -> JoinHandle<Vec<usize>> {
    let queue = queue.clone();
    future::spawn(async move {
        let mut keys = Vec::new();
        while keys.len() < count
            && let Some(item) = queue.get().await
        {
            keys.push(*item.key());
            item.forget();
        }
        keys
    })
}

/// Returns the keys of a worker after its end.
fn finished(worker: JoinHandle<Vec<usize>>) -> Vec<usize> {
    future::block_on(worker).unwrap()
}

fn sorted(keys: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut keys: Vec<usize> = keys.into_iter().collect();
    keys.sort_unstable();
    keys
}

/// Dequeues and finishes the queued keys.
fn take_all(queue: &Queue) -> Vec<usize> {
    iter::from_fn(|| queue.try_get().map(|item| *item.key())).collect()
}

/// The adds and runs of each key.
#[derive(Default)]
struct Ledger {
    wanted: [u32; 2],
    seen: [u32; 2],
    runs: [u32; 2],
    is_processed: [bool; 2],
}

/// Starts workers that record their runs.
fn recording(queue: &Queue, ledger: &Arc<Mutex<Ledger>>, workers: usize) -> Vec<JoinHandle<()>> {
    let start = |_| {
        let (queue, ledger) = (queue.clone(), Arc::clone(ledger));
        future::spawn(async move {
            while let Some(item) = queue.get().await {
                let key = *item.key();
                {
                    let mut ledger = ledger.lock().unwrap();
                    assert!(
                        !std::mem::replace(&mut ledger.is_processed[key], true),
                        "one key in two workers"
                    );
                    ledger.seen[key] = ledger.wanted[key];
                    ledger.runs[key] += 1;
                }
                thread::yield_now();
                ledger.lock().unwrap().is_processed[key] = false;
                item.forget();
            }
        })
    };
    (0..workers).map(start).collect()
}

#[test]
fn no_key_is_processed_twice_at_once_and_no_add_is_lost() {
    explore(|queue, _| {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let workers = recording(queue, &ledger, 2);
        let producers = [[0, 1, 0].as_slice(), &[1, 0]].map(|keys| {
            let ledger = Arc::clone(&ledger);
            start(queue, move |queue| {
                for &key in keys {
                    ledger.lock().unwrap().wanted[key] += 1;
                    assert_ne!(queue.add(key), Admission::Refused);
                }
            })
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!(future::block_on(queue.drain(Duration::MAX)), Drained::Complete);
        workers.into_iter().for_each(|worker| future::block_on(worker).unwrap());
        let Ledger { wanted, seen, runs, .. } = *ledger.lock().unwrap();
        assert_eq!(seen, wanted, "the last add of each key is followed by a run");
        assert!(runs.iter().zip(wanted).all(|(&runs, adds)| runs <= adds), "no run without an add");
    });
}

#[test]
fn adds_during_a_run_lead_to_exactly_one_more_run() {
    explore(|queue, _| {
        queue.add(0);
        let held = queue.try_get().unwrap();
        let adders = [(); 2].map(|()| start(queue, |queue| queue.add(0)));
        for adder in adders {
            assert_eq!(adder.join().unwrap(), Admission::Deferred);
        }
        let taker = worker(queue, 1);
        thread::yield_now();
        held.done();
        assert_eq!(finished(taker), [0]);
        assert!(queue.try_get().is_none());
    });
}

#[test]
fn shutdown_returns_to_every_waiter_and_a_drain_ends_only_when_nothing_is_left() {
    explore(|queue, _| {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let workers = recording(queue, &ledger, 3);
        queue.add(0);
        queue.add(1);
        let shutter = start(queue, Queue::shutdown);
        assert_eq!(future::block_on(queue.drain(Duration::MAX)), Drained::Complete);
        assert_eq!((queue.len(), queue.processing_len()), (0, 0));
        assert_eq!(queue.add(0), Admission::Refused);
        shutter.join().unwrap();
        workers.into_iter().for_each(|worker| future::block_on(worker).unwrap());
        assert_eq!(ledger.lock().unwrap().runs, [1, 1]);
    });
}

#[test]
fn every_drain_ends_even_if_another_is_dropped() {
    explore(|queue, _| {
        queue.add(0);
        let held = queue.try_get().unwrap().into_owned();
        let drains = [(); 2].map(|()| {
            let queue = queue.clone();
            future::spawn(async move { queue.drain(Duration::MAX).await })
        });
        let quitter = start(queue, |queue| {
            let mut drain = pin!(queue.drain(Duration::MAX));
            drain.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        });
        let finisher = thread::spawn(move || held.forget());
        for drain in drains {
            assert_eq!(future::block_on(drain).unwrap(), Drained::Complete);
        }
        quitter.join().unwrap();
        finisher.join().unwrap();
    });
}

#[test]
fn a_delayed_key_is_dequeued_even_if_the_timekeeper_is_dropped() {
    explore(|queue, clock| {
        queue.add_after(0, STEP);
        let quitter = start(queue, |queue| {
            let mut get = pin!(queue.get());
            match get.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(item)) => _ = item.requeue_after(Duration::ZERO),
                Poll::Ready(None) | Poll::Pending => {}
            }
        });
        let waiter = worker(queue, 1);
        let clock = clock.clone();
        let ticker = thread::spawn(move || clock.advance(STEP));
        assert_eq!(finished(waiter), [0]);
        quitter.join().unwrap();
        ticker.join().unwrap();
    });
}

#[test]
fn an_earlier_delay_wakes_the_waiter_that_sleeps_for_a_later_one() {
    explore(|queue, clock| {
        queue.add_after(0, STEP * 100);
        let waiter = worker(queue, 1);
        let clock = clock.clone();
        let adder = start(queue, move |queue| {
            queue.add_after(1, STEP);
            clock.advance(STEP * 2);
        });
        assert_eq!(finished(waiter), [1]);
        adder.join().unwrap();
    });
}

#[test]
fn two_waiters_share_two_keys_that_become_due_together() {
    explore(|queue, clock| {
        queue.add_after(0, STEP);
        queue.add_after(1, STEP);
        let waiters = [(); 2].map(|()| {
            let queue = queue.clone();
            // Keeps its key in processing, so that one waiter cannot take both.
            future::spawn(async move { queue.get().await.map(Item::into_owned) })
        });
        let clock = clock.clone();
        let ticker = thread::spawn(move || clock.advance(STEP));
        let items = waiters.map(|waiter| future::block_on(waiter).unwrap().unwrap());
        assert_eq!(sorted(items.iter().map(|item| *item.key())), [0, 1]);
        ticker.join().unwrap();
    });
}

#[test]
fn a_waiter_that_is_dropped_after_it_was_woken_passes_the_wake_up_on() {
    explore(|queue, _| {
        let waiter = worker(queue, 1);
        let quitter = start(queue, |queue| {
            let mut get = Box::pin(queue.get());
            let polled = get.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            thread::yield_now();
            drop(get);
            polled.is_ready()
        });
        queue.add(0);
        // If the quitter dequeued the key, dropping the item finished it, and the waiter needs another.
        if quitter.join().unwrap() {
            queue.add(1);
        }
        assert_eq!(finished(waiter).len(), 1);
    });
}

#[test]
fn a_key_added_while_the_worker_goes_to_sleep_wakes_it() {
    explore(|queue, _| {
        let worker = worker(queue, 4);
        let producers =
            [[0, 1], [2, 3]].map(|keys| start(queue, move |queue| keys.map(|key| queue.add(key))));
        assert_eq!(sorted(finished(worker)), [0, 1, 2, 3]);
        for producer in producers {
            assert_eq!(producer.join().unwrap(), [Admission::Queued; 2]);
        }
    });
}

#[test]
fn adds_keep_the_order_of_their_producer() {
    explore(|queue, _| {
        let producers = [0, 10, 20]
            .map(|first| start(queue, move |queue| (first..first + 4).for_each(|key| _ = queue.add(key))));
        let mut keys = take_all(queue);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        keys.extend(take_all(queue));
        for first in [0, 10, 20] {
            let own: Vec<usize> =
                keys.iter().copied().filter(|key| (first..first + 4).contains(key)).collect();
            assert_eq!(own, [first, first + 1, first + 2, first + 3], "of {keys:?}");
        }
    });
}

#[test]
fn every_cause_is_reported_with_its_own_key() {
    explore(|queue, _| {
        // Each producer gives a cause for every other key; key 9 is added by both.
        let producers = [0, 10].map(|first| {
            start(queue, move |queue| {
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
        let take_all = || -> Vec<(usize, String)> {
            iter::from_fn(|| queue.try_get().map(|item| (*item.key(), item.causes().to_string()))).collect()
        };
        let mut seen = take_all();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        seen.extend(take_all());
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
    explore(|queue, _| {
        let observers = [0, 1, 2].map(|key| {
            start(queue, move |queue| {
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
    explore(|queue, _| {
        let producers = [0, 10].map(|first| {
            start(queue, move |queue| -> Vec<usize> {
                (first..first + 3).filter(|key| queue.add(*key) != Admission::Refused).collect()
            })
        });
        let worker = worker(queue, usize::MAX);
        let shutter = start(queue, Queue::shutdown);
        let accepted = sorted(producers.into_iter().flat_map(|producer| producer.join().unwrap()));
        shutter.join().unwrap();
        assert_eq!(sorted(finished(worker)), accepted);
        assert_eq!(queue.add(7), Admission::Refused);
    });
}

#[test]
fn the_result_of_an_add_during_a_dequeue_is_exact() {
    explore(|queue, _| {
        (0..3).for_each(|key| _ = queue.add(key));
        let adder = start(queue, |queue| queue.add(0));
        let first = queue.try_get().unwrap();
        assert_eq!(*first.key(), 0);
        let admission = adder.join().unwrap();
        first.forget();
        queue.shutdown();
        let runs = take_all(queue).into_iter().filter(|key| *key == 0).count();
        match admission {
            Admission::Merged => assert_eq!(runs, 0),
            Admission::Deferred => assert_eq!(runs, 1),
            other => panic!("the key was queued or being processed, not {other:?}"),
        }
    });
}

#[test]
fn a_delay_added_while_the_worker_goes_to_sleep_starts_its_timer() {
    explore(|queue, clock| {
        let worker = worker(queue, 2);
        let producers = [0, 1].map(|key| start(queue, move |queue| queue.add_after(key, STEP)));
        for producer in producers {
            assert_eq!(producer.join().unwrap(), Admission::Scheduled);
        }
        clock.advance(STEP);
        assert_eq!(sorted(finished(worker)), [0, 1]);
    });
}

#[test]
fn every_failure_is_counted() {
    explore(|queue, _| {
        let failing = [(); 2].map(|()| {
            start(queue, |queue| {
                for _ in 0..2 {
                    assert_ne!(queue.add_rate_limited(0), Admission::Refused);
                }
                assert!(queue.num_requeues(&0) >= 2, "at least those of this thread");
            })
        });
        failing.into_iter().for_each(|failing| failing.join().unwrap());
        assert_eq!((queue.num_requeues(&0), queue.waiting_len()), (4, 1));
    });
}

#[test]
fn keys_are_finished_while_others_are_added_and_none_is_left() {
    explore(|queue, clock| {
        // A delay, so that finishing goes on beside one.
        queue.add_after(9, STEP * 100);
        (0..3).for_each(|key| _ = queue.add(key));
        let producer = start(queue, |queue| {
            assert_ne!(queue.add(0), Admission::Refused);
            assert_ne!(queue.add_after(4, STEP), Admission::Refused);
            assert_ne!(queue.add(5), Admission::Refused);
        });
        let worker = worker(queue, usize::MAX);
        producer.join().unwrap();
        clock.advance(STEP);
        // Due keys are dequeued; the others are returned by the shutdown.
        while queue.waiting_len() > 1 {
            thread::yield_now();
        }
        assert_eq!(queue.shutdown(), [9]);
        let mut keys = sorted(finished(worker));
        keys.dedup();
        assert_eq!(keys, [0, 1, 2, 4, 5]);
        assert_eq!((queue.len(), queue.processing_len(), queue.waiting_len()), (0, 0, 0));
    });
}

#[test]
fn a_scrape_that_races_the_last_handle_shows_the_queue_or_nothing() {
    explore(|_, clock| {
        let mut registry = Registry::default();
        let metrics = QueueMetrics::register(&mut registry);
        let first = queue(clock);
        metrics.add_queue(&first).unwrap();
        first.add(0);
        let dropper = thread::spawn(move || drop(first));
        let shown = || scrape(&registry).matches("workqueue_adds_total{").count();
        assert!(shown() <= 1);
        dropper.join().unwrap();
        assert_eq!(shown(), 0);
        assert!(metrics.add_queue(&queue(clock)).is_ok(), "the name is free");
    });
}
