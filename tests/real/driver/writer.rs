//! The load: `ConfigMap` objects are created, updated and deleted at a fixed rate, whether or not the server responds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use kube_client::Api;
use kube_core::{
    DynamicObject,
    params::{DeleteParams, PostParams},
};
use tokio::{
    sync::{OwnedRwLockWriteGuard, RwLock},
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};

use crate::{
    clock::now,
    error::{During as _, Result},
    objects::{Kind, Server, object},
};

const WORKERS: usize = 8;
/// The number of writes to existing objects per deletion. There is one absent name for this many existing objects, and a
/// write to an absent name creates an object, so that the number of objects is about constant.
const DELETE_ONE_IN: usize = 10;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// A running load.
pub(crate) struct Writer {
    turn: Arc<RwLock<()>>,
    /// The guard that pauses the load.
    pause: Option<OwnedRwLockWriteGuard<()>>,
    shared: Arc<Shared>,
    _workers: JoinSet<()>,
}

struct Shared {
    objects: Api<DynamicObject>,
    /// The time between two writes of one worker.
    interval_us: AtomicU64,
    written: AtomicU64,
}

impl Writer {
    /// Creates `count` objects and starts to change them, `rate` times per second.
    pub(crate) async fn start(server: &Server, count: usize, rate: u32, seed: u64) -> Result<Self> {
        let turn = Arc::new(RwLock::new(()));
        let shared = Arc::new(Shared {
            objects: server.objects(Kind::ConfigMaps),
            interval_us: AtomicU64::new(interval_us(rate)),
            written: AtomicU64::new(0),
        });
        let names = count + count / DELETE_ONE_IN;
        let mut filling = JoinSet::new();
        for first in 0..WORKERS {
            let objects = (first..names)
                .step_by(WORKERS)
                .map(|index| Slot { name: format!("object-{index:06}"), exists: index < count });
            let rng = Rng::with_seed(seed.wrapping_add(first as u64));
            let worker = Worker { shared: Arc::clone(&shared), slots: objects.collect(), rng };
            filling.spawn(worker.fill());
        }
        let mut workers = JoinSet::new();
        for filled in filling.join_all().await {
            workers.spawn(filled?.run(Arc::clone(&turn)));
        }
        Ok(Self { turn, pause: None, shared, _workers: workers })
    }

    /// Pauses the load. No write is in progress when this returns.
    pub(crate) async fn pause(&mut self) {
        if self.pause.is_none() {
            self.pause = Some(Arc::clone(&self.turn).write_owned().await);
        }
    }

    /// Resumes the load.
    pub(crate) fn resume(&mut self) {
        self.pause = None;
    }

    /// Changes the number of writes per second.
    pub(crate) fn set_rate(&self, rate: u32) {
        self.shared.interval_us.store(interval_us(rate), Ordering::Relaxed);
    }

    /// Returns the number of successful writes.
    pub(crate) fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }
}

fn interval_us(rate: u32) -> u64 {
    WORKERS as u64 * 1_000_000 / u64::from(rate.max(1))
}

/// A worker that writes to its own share of the names, so that no two workers race.
struct Worker {
    shared: Arc<Shared>,
    slots: Vec<Slot>,
    rng: Rng,
}

/// A name, and whether the worker assumes that an object of this name exists. A 404 or 409 of the server corrects a wrong
/// assumption.
struct Slot {
    name: String,
    exists: bool,
}

impl Worker {
    async fn fill(self) -> Result<Self> {
        for slot in self.slots.iter().filter(|slot| slot.exists) {
            let object = object(Kind::ConfigMaps, &slot.name, 0);
            let created = self.shared.objects.create(&PostParams::default(), &object).await;
            created.during(|| format!("create {}", slot.name))?;
        }
        Ok(self)
    }

    async fn run(mut self, turn: Arc<RwLock<()>>) {
        // Distributes the workers over the interval.
        let mut next = now() + self.interval().mul_f64(self.rng.f64());
        loop {
            sleep_until(next).await;
            let turn = turn.read().await;
            let is_done = matches!(timeout(REQUEST_TIMEOUT, self.write()).await, Ok(true));
            drop(turn);
            if !is_done {
                sleep(PAUSE_AFTER_ERROR).await;
            }
            // Writes that were missed during an outage or a pause are skipped.
            next = (next + self.interval()).max(now());
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_micros(self.shared.interval_us.load(Ordering::Relaxed))
    }

    /// Executes one write. Returns whether the server responded as expected.
    async fn write(&mut self) -> bool {
        let index = self.rng.usize(..self.slots.len());
        let slot = &mut self.slots[index];
        let (objects, round) = (&self.shared.objects, self.rng.u64(..));
        let object = object(Kind::ConfigMaps, &slot.name, round);
        let (result, exists) = if !slot.exists {
            (objects.create(&PostParams::default(), &object).await.map(drop), true)
        } else if self.rng.usize(..DELETE_ONE_IN) == 0 {
            (objects.delete(&slot.name, &DeleteParams::default()).await.map(drop), false)
        } else {
            (objects.replace(&slot.name, &PostParams::default(), &object).await.map(drop), true)
        };
        match result {
            Ok(()) => {
                slot.exists = exists;
                self.shared.written.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(kube_client::Error::Api(status)) if status.code == 404 => {
                slot.exists = false;
                true
            }
            Err(kube_client::Error::Api(status)) if status.code == 409 => {
                slot.exists = true;
                true
            }
            Err(_) => false,
        }
    }
}
