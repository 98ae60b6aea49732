//! Keys through a reconciler without work, beside kube-rs's controller.
//!
//! Both sides have the objects in their caches and their controllers running, ten reconciles at a time on a runtime of two
//! workers; ours reports to a metrics registry, as under a manager. Then every key is triggered from outside, and the timed part runs
//! until the last one was reconciled. Measured are queue, workers and cache reads.

mod kube_rs;
mod ours;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::peer::KUBE_RS;
use crate::suite::{Figure, Row, Size, Suite, Target};

const NO_OP: &str = "no-op";
const NO_OP_MANY: &str = "no-op-many";
/// Reconciles at a time.
const WORKERS: u16 = 10;

pub(crate) static SUITE: Suite = Suite {
    name: "controller",
    about: "keys through a reconciler without work, beside kube-rs's controller",
    rows: &[
        Row {
            name: NO_OP,
            about: "10,000 keys, triggered from outside, through a reconciler without work",
            unit: "key",
            size: Size { full: 10_000, quick: 10_000 },
            runs: None,
            ours: ours::no_op,
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::TimesLess(4.0),
        },
        Row {
            name: NO_OP_MANY,
            about: "the same with 100,000 keys",
            unit: "key",
            size: Size { full: 100_000, quick: 50_000 },
            runs: None,
            ours: ours::no_op,
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::TimesLess(4.0),
        },
    ],
    on_jemalloc: &[],
    against_replay: false,
};

/// The rows of kube-rs, under the same names.
pub(crate) static PEER: Suite = Suite {
    name: SUITE.name,
    about: "kube-rs's side of the controller suite",
    rows: &[Row::of_peer(NO_OP, kube_rs::no_op), Row::of_peer(NO_OP_MANY, kube_rs::no_op)],
    on_jemalloc: &[],
    against_replay: false,
};

/// Returns the runtime of both sides: two workers.
fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_time().build()
}

/// Returns the objects that are reconciled.
fn objects(count: u64) -> impl Iterator<Item = ConfigMap> {
    (0..count).map(|number| ConfigMap {
        metadata: ObjectMeta {
            namespace: Some(format!("namespace-{:03}", number % 1000)),
            name: Some(format!("config-{number:08}")),
            uid: Some(format!("uid-{number:08}")),
            resource_version: Some((number + 1).to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

/// A counter of reconciles that notifies when a wanted number is reached.
#[derive(Debug, Default)]
struct Count {
    reconciled: AtomicU64,
    wanted: AtomicU64,
    is_reached: Notify,
}

impl Count {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn add(&self) {
        if self.reconciled.fetch_add(1, Relaxed) + 1 == self.wanted.load(Relaxed) {
            self.is_reached.notify_one();
        }
    }

    /// Sets the wanted number to this many more than now.
    fn want(&self, more: u64) {
        self.wanted.store(self.reconciled.load(Relaxed) + more, Relaxed);
    }

    async fn reached(&self) {
        self.is_reached.notified().await;
    }
}
