//! kube-rs's side: its watcher and reflector store, as its users write them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Api, Client, Config};
use kube_core::ResourceExt as _;
use kube_runtime::watcher::Event;
use kube_runtime::{WatchStreamExt as _, reflector, watcher};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::watched::{as_us, expect};
use super::{events_of, memory, runtime};
use crate::clock;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::replay::ReplayServer;
use crate::suite::{Load, RunFailure};

const CHECKED_EVERY: Duration = Duration::from_millis(10);
const PHASE_LIMIT: Duration = Duration::from_mins(10);

#[derive(Debug, Default)]
struct Received {
    listed: AtomicU64,
    lists: AtomicU64,
    applied: AtomicU64,
    sum: AtomicU64,
}

pub(super) fn informer(load: Load, is_stripped: bool) -> Result<Measurement, RunFailure> {
    let count = load.operations;
    let server = ReplayServer::start(count, "json")?;
    runtime()?.block_on(async {
        let client = Client::try_from(Config::new(server.url().parse()?))?;
        let received = Arc::new(Received::default());
        let (store, writer) = reflector::store::<Pod>();
        let meter = Meter::start();
        let events = watcher(Api::<Pod>::all(client), watcher::Config::default())
            .default_backoff()
            .modify(move |pod| {
                if is_stripped {
                    pod.managed_fields_mut().clear();
                }
            })
            .reflect(writer);
        let of_task = Arc::clone(&received);
        let mut tasks = JoinSet::new();
        // The error of an expired watch is followed by a list.
        tasks.spawn(events.for_each(move |event| {
            if let Ok(event) = event {
                of_task.observe(&event);
            }
            async {}
        }));
        until(&received.lists, 1).await?;
        let mut measured = meter.stop(count);
        expect("listed", received.listed.load(Relaxed), count)?;
        let mut add = |name: &str, value| _ = measured.figures.insert(name.to_owned(), value);
        add("sync_peak_mib", memory::peak_mib()?);
        add("synced_mib", memory::rss_mib()?);
        add("steady_mib", memory::settled_mib().await?);
        // Items of the stream are whole objects, so reading them has no further cost.
        let (events, cpu) = (events_of(count), clock::process_cpu());
        server.order(&format!("/trigger?events={events}")).await?;
        until(&received.applied, events).await?;
        add("event_cpu_us", as_us(clock::process_cpu().saturating_sub(cpu), events));
        let cpu = clock::process_cpu();
        server.order("/expire").await?;
        until(&received.lists, 2).await?;
        add("relist_cpu_us", as_us(clock::process_cpu().saturating_sub(cpu), count));
        add("end_peak_mib", memory::peak_mib()?);
        let sync_cpu_us = as_f64(measured.cpu_ns) / 1e3 / as_f64(count);
        tasks.shutdown().await;
        expect("stored", store.len() as u64, count)?;
        Ok(measured.with_figure("sync_cpu_us", sync_cpu_us))
    })
}

impl Received {
    fn observe(&self, event: &Event<Pod>) {
        match event {
            Event::InitApply(pod) => {
                self.sum.fetch_add(pod.name_any().len() as u64, Relaxed);
                self.listed.fetch_add(1, Relaxed);
            }
            Event::Apply(pod) => {
                self.sum.fetch_add(pod.name_any().len() as u64, Relaxed);
                self.applied.fetch_add(1, Relaxed);
            }
            Event::InitDone => _ = self.lists.fetch_add(1, Relaxed),
            Event::Init | Event::Delete(_) => {}
        }
    }
}

async fn until(counter: &AtomicU64, wanted: u64) -> Result<(), RunFailure> {
    let reached = async {
        while counter.load(Relaxed) < wanted {
            sleep(CHECKED_EVERY).await;
        }
    };
    Ok(timeout(PHASE_LIMIT, reached).await?)
}
