//! Our side of reads of the cache, and of a writer beside readers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_informer::{CacheReader, Cached, ObjectKey, Store};

use super::policy::{ENCODINGS, Policy};
use super::types::Look as _;
use super::watched::{Watched, expect};
use super::{BY_NODE, READERS_BESIDE, node_of, runtime};
use crate::clock;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::replay::ReplayServer;
use crate::stats::percentile;
use crate::suite::{Load, RunFailure};

const STRIDE: usize = 7919;
const GETS: usize = 200_000;
const INDEX_READS: usize = 20_000;
const LISTS: u64 = 10;
const WRITES: usize = 10_000;
const WRITER_PAUSE: Duration = Duration::from_micros(50);
const READER_PAUSE: Duration = Duration::from_micros(200);

pub(super) fn reads(load: Load, policy: Policy) -> Result<Measurement, RunFailure> {
    let server = ReplayServer::start(load.operations, ENCODINGS)?;
    runtime()?.block_on(async {
        let factory = policy.factory(&server)?;
        let informer = factory.informer::<Pod>();
        informer.add_index(BY_NODE, node_of)?;
        let watched = Watched::new(server, factory, informer)?;
        watched.synced(load.operations).await?;
        // Reads block the thread; nothing else is to be done.
        let reader = watched.informer.reader();
        let meter = Meter::start();
        let figures = figures(&reader, load.operations)?;
        let mut measured = meter.stop(load.operations);
        measured.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        Ok(measured)
    })
}

fn figures(reader: &CacheReader<Pod>, pods: u64) -> Result<[(&'static str, f64); 5], RunFailure> {
    let keys = reader.keys();
    let nodes = reader.index_values(BY_NODE)?;
    let mut sum = 0;
    let get_ns = per_read(GETS, |step| {
        let found = reader.snapshot().get(&keys[step * STRIDE % keys.len()]).map(|pod| pod.look());
        sum += found.unwrap_or(0);
        Ok(u64::from(found.is_some()))
    })?;
    let index_ns = per_read(INDEX_READS, |step| {
        let snapshot = reader.snapshot();
        let mut found = 0;
        for pod in snapshot.by_index(BY_NODE, &nodes[step * STRIDE % nodes.len()])? {
            sum += pod.look();
            found += 1;
        }
        Ok(found)
    })?;
    let cpu = clock::process_cpu();
    for _ in 0..LISTS {
        let mut listed = 0;
        for pod in reader.snapshot().iter() {
            sum += pod.look();
            listed += 1;
        }
        expect("listed", listed, pods)?;
    }
    let spent = clock::process_cpu().saturating_sub(cpu).as_secs_f64();
    let list_ns = spent * 1e9 / as_f64(LISTS * pods);
    let [p50, p99] = beside(reader, &keys)?;
    if sum == 0 {
        return Err("the pods that were read have neither node nor containers".into());
    }
    Ok([
        ("get_ns", get_ns),
        ("index_ns", index_ns),
        ("list_ns_per_pod", list_ns),
        ("write_p50_us", p50),
        ("write_p99_us", p99),
    ])
}

/// Returns the CPU time of a read in nanoseconds.
fn per_read(count: usize, mut read: impl FnMut(usize) -> Result<u64, RunFailure>) -> Result<f64, RunFailure> {
    let cpu = clock::process_cpu();
    for step in 0..count {
        if read(step)? == 0 {
            return Err(format!("read {step} found nothing").into());
        }
    }
    Ok(clock::process_cpu().saturating_sub(cpu).as_secs_f64() * 1e9 / as_f64(count as u64))
}

/// Returns the median and the 99th percentile, in microseconds, of a writer beside ten readers.
fn beside(reader: &CacheReader<Pod>, keys: &[ObjectKey]) -> Result<[f64; 2], RunFailure> {
    let store = Store::<Pod>::new();
    // In the form in which the informer keeps them, so that readers decode beside the writer.
    let objects: Vec<Cached<Pod>> = reader.snapshot().iter_cached().cloned().collect();
    store.replace(objects.iter().cloned(), None)?;
    let is_over = AtomicBool::new(false);
    let mut nanos = Vec::with_capacity(WRITES);
    thread::scope(|scope| {
        for first in 0..READERS_BESIDE {
            let (store, is_over) = (&store, &is_over);
            scope.spawn(move || {
                let mut step = first;
                while !is_over.load(Relaxed) {
                    for _ in 0..10 {
                        // The result is not needed.
                        let _ = store.get(&keys[step * STRIDE % keys.len()]);
                        step += 1;
                    }
                    clock::pause(READER_PAUSE);
                }
            });
        }
        let written = (0..WRITES).try_for_each(|step| {
            let object = objects[step * STRIDE % objects.len()].clone();
            let start = clock::wall();
            let result = store.update(object);
            nanos.push(u64::try_from(clock::wall().duration_since(start).as_nanos()).unwrap_or(u64::MAX));
            clock::pause(WRITER_PAUSE);
            result.map(|_| ())
        });
        is_over.store(true, Relaxed);
        written
    })?;
    nanos.sort_unstable();
    let at = |percent| percentile(&nanos, percent).map(|value| as_f64(value) / 1000.0).ok_or("no writes");
    Ok([at(50)?, at(99)?])
}
