//! From a server to a cache of whole pods, beside kube-rs's watcher and reflector.
//!
//! A separate process serves the same bytes to both sides over a loopback socket; the measured process is the client.
//! Both sides run on two workers and cache every pod decoded. Each pod passes through its whole pipeline: ours through the reflector, the FIFO, the
//! store and one handler, kube-rs's through the watcher's stream and its reflector store.

mod kube_rs;
mod ours;
pub(crate) mod server;

use std::io;

use tokio::runtime::{Builder, Runtime};

use crate::heap;
use crate::machine::{self, as_f64};
use crate::measure::Measurement;
use crate::peer::KUBE_RS;
use crate::suite::{Figure, Load, Row, RunFailure, Size, Suite, Target};

const PODS: Size = Size { full: 10_000, quick: 2_000 };
const PEAK: &str = "peak_mb";

const SYNC_CPU: &str = "sync-cpu";
const SYNC_PEAK: &str = "sync-peak";
const STREAM_CPU: &str = "stream-cpu";
const STREAM_PEAK: &str = "stream-peak";
const RELIST: &str = "relist";

pub(crate) static SUITE: Suite = Suite {
    name: "sync",
    about: "from a server to the cache, beside kube-rs's watcher and reflector",
    rows: &[
        Row {
            name: SYNC_CPU,
            about: "the first list of 9 KB pods, in pages of 500, into the cache",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: |load| ours::sync(load, Mode::Pages),
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(0.6),
        },
        Row {
            name: SYNC_PEAK,
            about: "the same; the peak memory of the process",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: |load| ours::sync(load, Mode::Pages),
            peer: Some(&KUBE_RS),
            figure: Figure::Named(PEAK),
            target: Target::ShareOfPeer(0.5),
        },
        Row {
            name: STREAM_CPU,
            about: "the first list of 9 KB pods, as a stream, into the cache",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: |load| ours::sync(load, Mode::Stream),
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(0.6),
        },
        Row {
            name: STREAM_PEAK,
            about: "the same; the peak memory of the process",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: |load| ours::sync(load, Mode::Stream),
            peer: Some(&KUBE_RS),
            figure: Figure::Named(PEAK),
            target: Target::ShareOfPeer(0.5),
        },
        Row {
            name: RELIST,
            about: "the list again, in pages, after the watch expired and nothing had changed",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: ours::relist,
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(0.1),
        },
    ],
    on_jemalloc: &[],
    against_replay: false,
};

/// kube-rs's side of these rows.
pub(crate) static PEER: Suite = Suite {
    name: SUITE.name,
    about: "kube-rs's side of the sync suite",
    rows: &[
        Row::of_peer(SYNC_CPU, |load| kube_rs::sync(load, Mode::Pages)),
        Row::of_peer(SYNC_PEAK, |load| kube_rs::sync(load, Mode::Pages)),
        Row::of_peer(STREAM_CPU, |load| kube_rs::sync(load, Mode::Stream)),
        Row::of_peer(STREAM_PEAK, |load| kube_rs::sync(load, Mode::Stream)),
        Row::of_peer(RELIST, kube_rs::relist),
    ],
    on_jemalloc: &[],
    against_replay: false,
};

/// The mode of the initial list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Pages of 500 pods, the default of kube-rs.
    Pages,
    /// A streaming list, our default.
    Stream,
}

/// Two workers, as a small container has, and the same on both sides.
fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Adds the peak memory of the process, and the live heap in addition to the bytes of `before`.
fn with_memory(mut measured: Measurement, before: u64) -> Result<Measurement, RunFailure> {
    measured.live_heap_bytes = Some(heap::live_bytes().saturating_sub(before));
    let peak =
        machine::peak_rss_bytes().ok_or("this machine does not report the peak memory of a process")?;
    Ok(measured.with_figure(PEAK, as_f64(peak) / 1e6))
}

/// Fails unless every pod is in the cache, because the sides would not be comparable.
fn expect(what: &str, found: u64, load: Load) -> Result<(), RunFailure> {
    if found == load.operations {
        Ok(())
    } else {
        Err(format!("{what}: {found} pods of {}", load.operations).into())
    }
}
