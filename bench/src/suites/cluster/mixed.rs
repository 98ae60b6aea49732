//! Our side of the mixed load: a controller whose four workers reconcile what changes, with three reads each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use watchkeeper_controller::manager::Runnable as _;
use watchkeeper_controller::metrics::ControllerMetrics;
use watchkeeper_controller::{Action, Context, Controller, ReconcileError, Reconciler, Request};
use watchkeeper_informer::{CacheReader, ObjectKey};

use super::policy::{ENCODINGS, Policy};
use super::types::Look as _;
use super::watched::{Watched, as_us};
use super::{BY_NODE, MIXED_RATE, memory, node_of, runtime};
use crate::measure::{Measurement, Meter};
use crate::replay::ReplayServer;
use crate::suite::{Load, RunFailure};

const WORKERS: usize = 4;
const STRIDE: usize = 7919;
const SECONDS: u64 = 20;
const CHECKED_EVERY: Duration = Duration::from_millis(10);

struct ThreeReads {
    reader: CacheReader<Pod>,
    keys: Vec<ObjectKey>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    reconciled: AtomicU64,
    read: AtomicU64,
    newest: AtomicU64,
}

impl Reconciler<Pod> for ThreeReads {
    async fn reconcile(&self, request: Request<Pod>, _: Context) -> Result<Action, ReconcileError> {
        let step = self.counts.reconciled.fetch_add(1, Relaxed);
        let Some(pod) = request.object else {
            return Ok(Action::done());
        };
        let node = node_of(&pod).unwrap_or_default();
        let neighbours = self.reader.by_index(BY_NODE, &node).map_err(ReconcileError::new)?;
        let other = usize::try_from(step).unwrap_or_default() * STRIDE % self.keys.len();
        let other = self.reader.get(&self.keys[other]);
        let read: usize = neighbours.iter().chain(&other).map(|pod| pod.look()).sum();
        self.counts.read.fetch_add(read as u64, Relaxed);
        let version = pod.metadata.resource_version.as_ref().and_then(|version| version.parse().ok());
        self.counts.newest.fetch_max(version.unwrap_or(0), Relaxed);
        Ok(Action::done())
    }
}

pub(super) fn mixed(load: Load) -> Result<Measurement, RunFailure> {
    let pods = load.operations;
    let server = ReplayServer::start(pods, ENCODINGS)?;
    runtime()?.block_on(async {
        let factory = Policy::Auto.factory(&server)?;
        let informer = factory.informer::<Pod>();
        informer.add_index(BY_NODE, node_of)?;
        let watched = Watched::new(server, factory, informer)?;
        watched.synced(pods).await?;
        let counts = Arc::new(Counts::default());
        let reader = watched.informer.reader();
        let mut registry = Registry::default();
        let controller = Controller::<Pod>::on(&watched.factory)
            .workers(WORKERS)
            .metrics(&ControllerMetrics::register(&mut registry))
            .reconcile_with(ThreeReads { keys: reader.keys(), reader, counts: Arc::clone(&counts) });
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        running.spawn({
            let stop = stop.clone();
            async move { controller.run(stop).await }
        });
        // Every pod is reconciled once at the start, before the timed part.
        while counts.reconciled.load(Relaxed) < pods {
            sleep(CHECKED_EVERY).await;
        }
        let steady = memory::settled_mib().await?;
        let before = counts.reconciled.load(Relaxed);
        let events = pods.min(SECONDS * MIXED_RATE);
        let meter = Meter::start();
        let answer = watched.server.order(&format!("/trigger?events={events}&rate={MIXED_RATE}")).await?;
        let last: u64 = answer.resource_version.parse()?;
        while counts.newest.load(Relaxed) < last {
            sleep(CHECKED_EVERY).await;
        }
        let measured = meter.stop(counts.reconciled.load(Relaxed) - before);
        let cpu_us = as_us(Duration::from_nanos(measured.cpu_ns), measured.operations);
        let measured = measured
            .with_figure("mixed_cpu_us", cpu_us)
            .with_figure("steady_mib", steady)
            .with_figure("mixed_mib", memory::rss_mib()?);
        stop.cancel();
        running.join_all().await.into_iter().collect::<Result<(), _>>()?;
        Ok(measured)
    })
}
