//! Our side of the loads in which packing must not cost: everything is read, again and again, or the cache is small.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::sleep;
use watchkeeper_informer::CacheReader;

use super::policy::{ENCODINGS, Policy};
use super::types::Look as _;
use super::watched::{Reads, Watched, expect};
use super::{events_of, memory, runtime};
use crate::clock;
use crate::measure::{Measurement, Meter};
use crate::replay::ReplayServer;
use crate::suite::{Load, RunFailure};

const PAUSE: Duration = Duration::from_millis(250);
const MEASURED_LISTS: u64 = 20;
/// The caches that are small enough for the test of the harness itself, which does not wait for a minute.
const FEW_PODS: u64 = 1_000;

/// Lists everything for a minute, and measures the lists after it.
pub(super) fn listing(load: Load, policy: Policy) -> Result<Measurement, RunFailure> {
    let server = ReplayServer::start(load.operations, ENCODINGS)?;
    runtime()?.block_on(async {
        let watched = synced(server, policy, load.operations).await?;
        let reader = watched.informer.reader();
        let minute = if load.operations < FEW_PODS { PAUSE } else { Duration::from_mins(1) };
        let start = clock::wall();
        while clock::wall().duration_since(start) < minute {
            list(&reader, load.operations)?;
            sleep(PAUSE).await;
        }
        let meter = Meter::start();
        for _ in 0..MEASURED_LISTS {
            list(&reader, load.operations)?;
            sleep(PAUSE).await;
        }
        let measured = meter.stop(MEASURED_LISTS * load.operations);
        Ok(measured.with_figure("listing_mib", memory::rss_mib()?))
    })
}

/// Syncs a small cache, delivers events of which both states are read, and lists.
pub(super) fn fits(load: Load, policy: Policy) -> Result<Measurement, RunFailure> {
    let server = ReplayServer::start(load.operations, ENCODINGS)?;
    runtime()?.block_on(async {
        let meter = Meter::start();
        let watched = synced(server, policy, load.operations).await?;
        watched.read(Reads::Both);
        let events = events_of(load.operations);
        watched.changed(&format!("/trigger?events={events}"), events).await?;
        let reader = watched.informer.reader();
        for _ in 0..MEASURED_LISTS {
            list(&reader, load.operations)?;
        }
        Ok(meter.stop(load.operations))
    })
}

async fn synced(server: ReplayServer, policy: Policy, pods: u64) -> Result<Watched<Pod>, RunFailure> {
    let factory = policy.factory(&server)?;
    let informer = factory.informer::<Pod>();
    let watched = Watched::new(server, factory, informer)?;
    watched.synced(pods).await?;
    Ok(watched)
}

fn list(reader: &CacheReader<Pod>, pods: u64) -> Result<(), RunFailure> {
    let snapshot = reader.snapshot();
    let listed = snapshot.iter().filter(|pod| pod.look() > 0).count();
    expect("listed", listed as u64, pods)
}
