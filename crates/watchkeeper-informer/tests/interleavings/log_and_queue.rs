//! Schedules of the log and the delta FIFO.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use shuttle::{
    future::{self, JoinHandle},
    sync::Mutex,
    thread,
};
use watchkeeper_informer::{
    CacheReader, Cached,
    delta_fifo::{Delta, DeltaFifo, DeltaKind, FifoOptions, KnownObjects},
    event::Event,
    handler::{HandlerOptions, Registration},
    internals::{CacheUpdate, Distributor, Process, Processor, transition},
};

use crate::fifo_fixture::{incarnation, label, object};

const SCHEDULES: usize = 10_000;

type Objects = BTreeMap<String, Cached<ConfigMap>>;

fn key(object: &Cached<ConfigMap>) -> String {
    format!("space/{}", object.metadata().name())
}

/// A cache whose changes are published.
#[derive(Clone)]
struct Informer {
    processor: Processor<ConfigMap>,
    cache: Arc<Mutex<Objects>>,
}

/// The events of a handler, folded, with every step checked.
#[derive(Default)]
struct View {
    objects: Objects,
    events: usize,
    is_over: bool,
}

impl View {
    fn receive(&mut self, event: &Event<ConfigMap>) {
        assert!(!self.is_over, "called after it was removed");
        self.events += 1;
        let key = key(event.object());
        match (event.last_seen(), self.objects.get(&key)) {
            (None, None) => {}
            (Some(last), Some(known)) if last.ptr_eq(known) => {}
            (_, known) => {
                panic!("{event:?} of {} after {:?}", label(event.object()), known.map(label))
            }
        }
        match event {
            Event::Deleted(_) => self.objects.remove(&key),
            _ => self.objects.insert(key, event.object().clone()),
        };
    }
}

type Views = Arc<Mutex<View>>;

impl Informer {
    fn new() -> Self {
        Self { processor: Processor::new(Duration::ZERO), cache: Arc::default() }
    }

    fn apply(&self, kind: DeltaKind, object: Cached<ConfigMap>) {
        let mut guard = self.processor.lock();
        let mut notifications = Vec::new();
        {
            let mut cache = self.cache.lock().unwrap();
            let key = key(&object);
            let delta = Delta { kind, object, is_initial: false, is_new_epoch: false };
            match transition(&delta, cache.get(&key), &mut notifications) {
                CacheUpdate::Keep => {}
                CacheUpdate::Set(object) => _ = cache.insert(key, object),
                CacheUpdate::Remove => _ = cache.remove(&key),
            }
        }
        guard.publish(notifications);
    }

    fn add(&self, options: HandlerOptions) -> Option<(Registration<ConfigMap>, Views)> {
        let view = Views::default();
        let received = Arc::clone(&view);
        let handler = move |event: &Event<ConfigMap>| {
            received.lock().unwrap().receive(event);
            thread::yield_now();
        };
        let mut guard = self.processor.lock();
        let snapshot: Vec<Cached<ConfigMap>> = self.cache.lock().unwrap().values().cloned().collect();
        Some((guard.add(handler, options, Some(snapshot)).ok()?, view))
    }

    /// Runs listeners until the processor is shut down, and then waits for them.
    fn run(&self) -> JoinHandle<()> {
        let processor = self.processor.clone();
        future::spawn(async move {
            let mut tasks = Vec::new();
            while let Some(task) = processor.accept().await {
                tasks.push(future::spawn(task.run()));
            }
            for task in tasks {
                task.await.unwrap();
            }
        })
    }

    /// Three changes each of two keys, in two threads.
    fn writers(&self) -> [thread::JoinHandle<()>; 2] {
        ["a", "b"].map(|name| {
            let informer = self.clone();
            thread::spawn(move || {
                informer.apply(DeltaKind::Added, object(name, 1));
                informer.apply(DeltaKind::Updated, object(name, 2));
                informer.apply(DeltaKind::Updated, incarnation(name, "2", 3));
            })
        })
    }

    /// Waits until a handler has received every event, and compares.
    fn compare(&self, registration: &Registration<ConfigMap>, view: &Views) {
        self.processor.lock().mark_synced();
        future::block_on(registration.synced()).unwrap();
        let (view, cache) = (view.lock().unwrap(), self.cache.lock().unwrap());
        assert_eq!(view.objects.len(), cache.len());
        assert!(cache.iter().all(|(key, object)| view.objects[key].ptr_eq(object)));
    }
}

fn lag(events: u64) -> HandlerOptions {
    HandlerOptions::new("handler").max_lag_events(events).max_lag_age(Duration::MAX)
}

#[test]
fn every_handler_converges_to_the_cache_however_far_it_lagged() {
    crate::explore(SCHEDULES, || {
        let informer = Informer::new();
        let runner = informer.run();
        let listeners = [lag(0), lag(1), lag(0).every_event()].map(|options| informer.add(options).unwrap());
        for writer in informer.writers() {
            writer.join().unwrap();
        }
        for (registration, view) in &listeners {
            informer.compare(registration, view);
        }
        assert_eq!(
            listeners[2].1.lock().unwrap().events,
            8,
            "every event: 2 x (added, updated, deleted, added)"
        );
        informer.processor.shutdown();
        future::block_on(runner).unwrap();
        assert_eq!(informer.processor.listener_count(), 0);
    });
}

#[test]
fn a_late_handler_receives_every_event_exactly_once() {
    crate::explore(SCHEDULES, || {
        let informer = Informer::new();
        let runner = informer.run();
        let writers = informer.writers();
        let late = {
            let informer = informer.clone();
            thread::spawn(move || [lag(0), lag(100)].map(|options| informer.add(options).unwrap()))
        };
        let late = late.join().unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        for (registration, view) in &late {
            informer.compare(registration, view);
        }
        informer.processor.shutdown();
        future::block_on(runner).unwrap();
    });
}

#[test]
fn a_removed_handler_is_not_called_again_and_the_others_miss_nothing() {
    crate::explore(SCHEDULES, || {
        let informer = Informer::new();
        let runner = informer.run();
        let removed = [lag(0), lag(100)].map(|options| informer.add(options).unwrap());
        let stays = informer.add(lag(1)).unwrap();
        let writers = informer.writers();
        let removers = removed.map(|(registration, view)| {
            // Two at once, of which either may wait for the other's.
            let other = registration.clone();
            let other = future::spawn(async move { other.remove().await });
            future::spawn(async move {
                registration.remove().await;
                view.lock().unwrap().is_over = true;
                other.await.unwrap();
                assert!(registration.status().is_none());
            })
        });
        for remover in removers {
            future::block_on(remover).unwrap();
        }
        for writer in writers {
            writer.join().unwrap();
        }
        informer.compare(&stays.0, &stays.1);
        assert_eq!(informer.processor.listener_count(), 1);
        informer.processor.shutdown();
        future::block_on(runner).unwrap();
    });
}

#[test]
fn a_shutdown_ends_every_task_during_other_operations() {
    crate::explore(SCHEDULES, || {
        let informer = Informer::new();
        let runner = informer.run();
        let (registration, view) = informer.add(lag(0)).unwrap();
        let waiting = {
            let registration = registration.clone();
            future::spawn(async move { registration.synced().await })
        };
        let writers = informer.writers();
        let adder = {
            let informer = informer.clone();
            thread::spawn(move || informer.add(lag(1)))
        };
        let shutter = {
            let processor = informer.processor.clone();
            thread::spawn(move || processor.shutdown())
        };
        future::block_on(runner).unwrap();
        view.lock().unwrap().is_over = true;
        assert!(future::block_on(waiting).unwrap().is_err());
        future::block_on(registration.remove());
        shutter.join().unwrap();
        // One that slipped in before the shutdown is gone too, started or not.
        drop(adder.join().unwrap());
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(informer.processor.listener_count(), 0);
    });
}

#[test]
fn a_listener_that_is_dropped_before_it_ran_leaves_no_one_waiting() {
    crate::explore(SCHEDULES, || {
        let informer = Informer::new();
        let (registration, _view) = informer.add(lag(0)).unwrap();
        let writers = informer.writers();
        let runner = {
            let processor = informer.processor.clone();
            future::spawn(async move { drop(processor.accept().await) })
        };
        future::block_on(registration.remove());
        informer.processor.shutdown();
        future::block_on(runner).unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(informer.processor.listener_count(), 0);
    });
}

/// The cache of a queue's consumer.
#[derive(Clone, Default)]
struct Cache(Arc<Mutex<Objects>>);

impl KnownObjects<ConfigMap> for Cache {
    fn get(&self, key: &str) -> Option<Cached<ConfigMap>> {
        self.0.lock().unwrap().get(key).cloned()
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&str)) {
        let keys: Vec<String> = self.0.lock().unwrap().keys().cloned().collect();
        for key in &keys {
            visit(key);
        }
    }
}

/// Applies what it pops until the queue is closed; some batches it gives back first.
fn consumer(fifo: &DeltaFifo<ConfigMap>, cache: &Cache, gives_back: bool) -> JoinHandle<()> {
    let (fifo, cache) = (fifo.clone(), cache.clone());
    future::spawn(async move {
        let mut gives_back = gives_back;
        while let Some(popped) = fifo.pop_batch(2).await {
            thread::yield_now();
            if std::mem::take(&mut gives_back) {
                continue;
            }
            for deltas in popped.keys() {
                let newest = deltas.newest();
                let mut objects = cache.0.lock().unwrap();
                match newest.is_deletion() {
                    true => objects.remove(&key(&newest.object)),
                    false => objects.insert(key(&newest.object), newest.object.clone()),
                };
            }
            thread::yield_now();
            popped.done();
        }
    })
}

#[test]
fn the_cache_behind_a_queue_equals_the_last_list_and_the_changes_after_it() {
    crate::explore(SCHEDULES, || {
        let cache = Cache::default();
        let fifo = DeltaFifo::new(cache.clone(), FifoOptions::new().max_queued_deltas(1));
        let consumers = [consumer(&fifo, &cache, true), consumer(&fifo, &cache, false)];
        let synced = {
            let fifo = fifo.clone();
            future::spawn(async move { fifo.synced().await.is_ok() })
        };
        let producer = {
            let fifo = fifo.clone();
            future::spawn(async move {
                fifo.replace(vec![object("a", 1), object("b", 1)], Some("1")).unwrap();
                fifo.wait_for_capacity().await.unwrap();
                fifo.add(object("c", 2)).unwrap();
                fifo.wait_for_capacity().await.unwrap();
                fifo.delete(object("a", 3)).unwrap();
                fifo.replace(vec![object("b", 4)], Some("4")).unwrap();
                fifo.wait_for_capacity().await.unwrap();
                fifo.update(object("b", 5)).unwrap();
                fifo.bookmark("6").unwrap();
            })
        };
        future::block_on(producer).unwrap();
        assert!(future::block_on(synced).unwrap());
        fifo.close();
        for consumer in consumers {
            future::block_on(consumer).unwrap();
        }
        let objects = cache.0.lock().unwrap();
        assert_eq!(objects.values().map(label).collect::<Vec<_>>(), ["b@5"]);
    });
}

#[test]
fn a_pop_that_is_dropped_takes_no_change_and_no_wake_up_with_it() {
    crate::explore(SCHEDULES, || {
        let cache = Cache::default();
        let fifo = DeltaFifo::new(cache.clone(), FifoOptions::new());
        let consumer = consumer(&fifo, &cache, false);
        let quitter = {
            let fifo = fifo.clone();
            thread::spawn(move || {
                let mut pop = Box::pin(fifo.pop());
                let polled = pop.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                thread::yield_now();
                drop((polled, pop));
            })
        };
        fifo.add(object("a", 1)).unwrap();
        fifo.update(object("a", 2)).unwrap();
        quitter.join().unwrap();
        fifo.close();
        future::block_on(consumer).unwrap();
        assert_eq!(cache.0.lock().unwrap().len(), 1);
        assert!(pin!(fifo.pop()).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(fifo.queued_deltas(), 0);
    });
}

#[test]
fn a_deletion_that_races_with_its_addition_is_not_lost() {
    crate::explore(SCHEDULES, || {
        let cache = Cache::default();
        let fifo = DeltaFifo::new(cache.clone(), FifoOptions::new());
        let consumer = consumer(&fifo, &cache, false);
        fifo.add(object("a", 1)).unwrap();
        fifo.delete(object("a", 2)).unwrap();
        fifo.close();
        future::block_on(consumer).unwrap();
        assert!(cache.0.lock().unwrap().is_empty());
    });
}

/// The cache and the handlers as a shared informer has them, and the queue in front of them.
#[derive(Clone)]
struct Joined {
    distributor: Arc<Distributor<ConfigMap>>,
    fifo: DeltaFifo<ConfigMap>,
}

/// The cache, as the queue has to know it.
struct Known(CacheReader<ConfigMap>);

impl KnownObjects<ConfigMap> for Known {
    fn get(&self, key: &str) -> Option<Cached<ConfigMap>> {
        self.0.cached(key)
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&str)) {
        for key in self.0.keys() {
            visit(key.as_str());
        }
    }
}

fn version(object: &Cached<ConfigMap>) -> u64 {
    object.metadata().resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

impl Joined {
    fn new() -> Self {
        let distributor = Arc::new(Distributor::new(1, Duration::ZERO));
        let fifo = DeltaFifo::new(Known(distributor.reader()), FifoOptions::new());
        Self { distributor, fifo }
    }

    fn add(&self, options: HandlerOptions) -> Option<(Registration<ConfigMap>, Views)> {
        let view = Views::default();
        let (received, cache) = (Arc::clone(&view), self.distributor.reader());
        let handler = move |event: &Event<ConfigMap>| {
            received.lock().unwrap().receive(event);
            let object = event.object();
            if let Some(stored) = cache.cached(key(object))
                && stored.metadata().uid() == object.metadata().uid()
            {
                assert!(
                    version(&stored) >= version(object),
                    "the cache is behind {event:?} of {}",
                    label(object)
                );
            }
            thread::yield_now();
        };
        Some((self.distributor.add_handler(handler, options).ok()?, view))
    }

    /// Runs handlers until the end, and then waits for them.
    fn run(&self) -> JoinHandle<()> {
        let distributor = Arc::clone(&self.distributor);
        future::spawn(async move {
            let mut tasks = Vec::new();
            while let Some(task) = distributor.accept().await {
                tasks.push(future::spawn(task.run()));
            }
            for task in tasks {
                task.await.unwrap();
            }
        })
    }

    /// The loop of a controller.
    fn process(&self) -> JoinHandle<()> {
        let Self { distributor, fifo } = self.clone();
        future::spawn(async move {
            while let Some(popped) = fifo.pop_batch(2).await {
                distributor.process(0, &popped).unwrap();
                popped.done();
                if fifo.has_synced() {
                    distributor.part_synced(0);
                }
            }
        })
    }

    /// Queues the changes of a reflector, in a thread.
    fn feed(&self) -> thread::JoinHandle<()> {
        let fifo = self.fifo.clone();
        thread::spawn(move || {
            fifo.replace(vec![object("a", 1), object("b", 2)], Some("2")).unwrap();
            fifo.update(object("a", 3)).unwrap();
            fifo.replace(vec![incarnation("b", "2", 4), object("c", 5)], Some("5")).unwrap();
            fifo.delete(object("c", 6)).unwrap();
            fifo.close();
        })
    }

    /// Waits until a handler has received everything, and compares.
    fn compare(&self, (registration, view): &(Registration<ConfigMap>, Views)) {
        future::block_on(registration.synced()).unwrap();
        while registration.status().is_some_and(|status| status.pending > 0) {
            thread::yield_now();
        }
        let (view, cache) = (view.lock().unwrap(), self.distributor.reader());
        assert_eq!(view.objects.len(), cache.len());
        assert!(view.objects.iter().all(|(key, delivered)| cache.cached(key).unwrap().ptr_eq(delivered)));
    }
}

#[test]
fn handlers_and_indexes_that_come_while_a_queue_feeds_the_cache_agree_with_it() {
    crate::explore(SCHEDULES, || {
        let joined = Joined::new();
        let (runner, processing) = (joined.run(), joined.process());
        let early = joined.add(lag(0)).unwrap();
        let feeding = joined.feed();
        let late = {
            let joined = joined.clone();
            thread::spawn(move || joined.add(lag(100)).unwrap())
        };
        let indexing = {
            let distributor = Arc::clone(&joined.distributor);
            thread::spawn(move || {
                distributor.add_index("name", |object: &ConfigMap| object.metadata.name.clone()).unwrap()
            })
        };
        feeding.join().unwrap();
        future::block_on(processing).unwrap();
        let (late, index) = (late.join().unwrap(), indexing.join().unwrap());
        for listener in [&early, &late] {
            joined.compare(listener);
        }
        assert_eq!(joined.distributor.reader().resource_version().unwrap().as_str(), "6");
        assert_eq!([index.count("a"), index.count("b"), index.count("c")], [0, 1, 0]);
        joined.distributor.shutdown();
        future::block_on(runner).unwrap();
        assert_eq!(joined.distributor.handler_count(), 0);
    });
}

#[test]
fn a_handler_removed_while_a_queue_feeds_the_cache_is_not_called_again() {
    crate::explore(SCHEDULES, || {
        let joined = Joined::new();
        let (runner, processing) = (joined.run(), joined.process());
        let (registration, view) = joined.add(lag(1)).unwrap();
        let stays = joined.add(lag(0)).unwrap();
        let feeding = joined.feed();
        let removing = future::spawn(async move {
            registration.remove().await;
            view.lock().unwrap().is_over = true;
        });
        feeding.join().unwrap();
        future::block_on(removing).unwrap();
        future::block_on(processing).unwrap();
        joined.compare(&stays);
        joined.distributor.shutdown();
        future::block_on(runner).unwrap();
    });
}

#[test]
fn a_shutdown_while_a_queue_feeds_the_cache_ends_every_handler_and_leaves_the_cache_true() {
    crate::explore(SCHEDULES, || {
        let joined = Joined::new();
        let (runner, processing) = (joined.run(), joined.process());
        let (registration, view) = joined.add(lag(0)).unwrap();
        let feeding = joined.feed();
        let adding = {
            let joined = joined.clone();
            thread::spawn(move || joined.add(lag(1)))
        };
        let stopping = {
            let distributor = Arc::clone(&joined.distributor);
            thread::spawn(move || distributor.shutdown())
        };
        future::block_on(runner).unwrap();
        view.lock().unwrap().is_over = true;
        future::block_on(registration.remove());
        stopping.join().unwrap();
        drop(adding.join().unwrap());
        feeding.join().unwrap();
        future::block_on(processing).unwrap();
        assert_eq!(joined.distributor.handler_count(), 0);
        let cache = joined.distributor.reader();
        assert_eq!(cache.snapshot().iter_cached().map(label).collect::<Vec<_>>(), ["b@4"]);
    });
}
