//! The embedded API server alone. No comparable server exists in Rust, so rows have a fixed bound instead of
//! a peer.
//!
//! Requests use the server's tower service, as those of a client in the same process do: HTTP requests with
//! JSON bodies in, and responses read to their end. The server has its default options, including garbage
//! collection and the other controllers. It runs on two workers together with the load, so the figures
//! include the cost of the clients.

mod client;
mod memory;
mod paging;
mod pods;
mod start;
mod watchers;
mod writes;

use std::io;

use tokio::runtime::{Builder, Runtime};

use self::pods::Shape;
use crate::machine::as_f64;
use crate::measure::Measurement;
use crate::suite::{Figure, Row, Size, Suite, Target};

const WALL: &str = "wall_us";
/// The bound of a write: 10,000 per second.
const WRITE: Target = Target::Absolute { bound: 100.0, unit: "us" };
const WRITES: Size = Size { full: 50_000, quick: 10_000 };
/// The bound of a large write, which guards against regressions and is not a goal.
const LARGE_WRITE: Target = Target::Absolute { bound: 400.0, unit: "us" };
const LARGE_WRITES: Size = Size { full: 20_000, quick: 5_000 };

pub(crate) static SUITE: Suite = Suite {
    name: "apiserver",
    about: "the embedded API server, through its service, against fixed bounds",
    rows: &[
        Row {
            name: "start",
            about: "from creating a server to the first response, in a fresh process",
            unit: "start",
            size: Size { full: 1, quick: 1 },
            runs: None,
            ours: start::first_answer,
            peer: None,
            figure: Figure::Named(start::MILLISECONDS),
            target: Target::Absolute { bound: 20.0, unit: "ms" },
        },
        Row {
            name: "create",
            about: "pods of one container created by 4 clients, each event sent to 10 watchers",
            unit: "create",
            size: WRITES,
            runs: None,
            ours: |load| writes::create(load, Shape::Plain),
            peer: None,
            figure: Figure::Named(WALL),
            target: WRITE,
        },
        Row {
            name: "update",
            about: "1,000 such pods updated in turn by 4 clients, each event sent to 10 watchers",
            unit: "update",
            size: WRITES,
            runs: None,
            ours: |load| writes::update(load, Shape::Plain),
            peer: None,
            figure: Figure::Named(WALL),
            target: WRITE,
        },
        Row {
            name: "create-large",
            about: "the same with pods of a large cluster, 5 KB sent and 6 KB stored",
            unit: "create",
            size: LARGE_WRITES,
            runs: None,
            ours: |load| writes::create(load, Shape::Cluster),
            peer: None,
            figure: Figure::Named(WALL),
            target: LARGE_WRITE,
        },
        Row {
            name: "update-large",
            about: "the same with pods of a large cluster, 6 KB sent and stored",
            unit: "update",
            size: LARGE_WRITES,
            runs: None,
            ours: |load| writes::update(load, Shape::Cluster),
            peer: None,
            figure: Figure::Named(WALL),
            target: LARGE_WRITE,
        },
        Row {
            name: "watchers",
            about: "changes of pods sent to 1,000 watchers of all pods",
            unit: "event and watcher",
            size: Size { full: 2_000_000, quick: 500_000 },
            runs: None,
            ours: watchers::fan_out,
            peer: None,
            figure: Figure::CpuPerOperation,
            target: Target::Absolute { bound: 2_000.0, unit: "ns" },
        },
        Row {
            name: "paging",
            about: "9 KB pods read in pages of 500: the peak memory beyond the store, in pages",
            unit: "pod",
            size: Size { full: 100_000, quick: 10_000 },
            runs: None,
            ours: paging::list,
            peer: None,
            figure: Figure::Named(paging::PAGES),
            target: Target::Absolute { bound: 1.0, unit: "x" },
        },
        Row {
            name: "memory",
            about: "memory of a stored 9 KB pod, including history and indexes, in sizes of its JSON",
            unit: "pod",
            size: Size { full: 20_000, quick: 5_000 },
            runs: None,
            ours: memory::stored,
            peer: None,
            figure: Figure::Named(memory::SHARE),
            target: Target::Absolute { bound: 3.0, unit: "x" },
        },
    ],
    on_jemalloc: &["create", "update", "create-large", "update-large"],
    against_replay: false,
};

/// Creates a runtime with two workers, as in a small container.
fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Returns the measurement with its wall time as the judged figure.
fn judged_by_wall(measured: Measurement) -> Measurement {
    let microseconds = as_f64(measured.wall_ns) / as_f64(measured.operations) / 1e3;
    let in_a_second = 1e6 / microseconds;
    measured.with_figure(WALL, microseconds).with_figure("per_second", in_a_second)
}
