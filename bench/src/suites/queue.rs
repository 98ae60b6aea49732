//! The work queue beside client-go's `util/workqueue`, keys `namespace-000/pod-name-00000000`.
//!
//! Both sides run as in production: the queue is registered for Prometheus metrics, ours directly, client-go's through the provider of
//! `component-base`; our adds have a cause. Both sides hold all keys in a vector before the timed part, ours as `Arc<str>`,
//! client-go's as `string`, and have the same load: a task in place of a goroutine, keys split among producers the same way.

mod delay;
mod load;
mod memory;
mod throughput;

use crate::peer::CLIENT_GO;
use crate::suite::{Figure, Row, Size, Suite, Target};

const MILLION: Size = Size { full: 1_000_000, quick: 200_000 };
/// Bytes per key depend on the last doubling of the structures, so quick runs keep the size.
const SAME_MILLION: Size = Size { full: 1_000_000, quick: 1_000_000 };
const NO_SLOWER: Target = Target::TimesLess(1.0);

pub(crate) static SUITE: Suite = Suite {
    name: "queue",
    about: "the work queue beside client-go's util/workqueue",
    rows: &[
        Row {
            name: "lockstep",
            about: "add, get, done of distinct keys on one thread",
            unit: "key",
            size: MILLION,
            runs: None,
            ours: throughput::lockstep,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: NO_SLOWER,
        },
        Row {
            name: "distinct-1p1c",
            about: "distinct keys from 1 producer to 1 consumer",
            unit: "key",
            size: MILLION,
            runs: None,
            ours: |load| throughput::distinct(load, 1, 1),
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: NO_SLOWER,
        },
        Row {
            name: "distinct-4p4c",
            about: "distinct keys from 4 producers to 4 consumers",
            unit: "key",
            size: MILLION,
            runs: None,
            ours: |load| throughput::distinct(load, 4, 4),
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: NO_SLOWER,
        },
        Row {
            name: "duplicate",
            about: "adds of keys that are all queued, sharing their bytes with the queued keys",
            unit: "add",
            size: MILLION,
            runs: None,
            ours: throughput::duplicate,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: NO_SLOWER,
        },
        Row {
            name: "duplicate-hot",
            about: "adds of 1000 queued keys, allocated separately from the queued ones",
            unit: "add",
            size: MILLION,
            runs: None,
            ours: throughput::duplicate_hot,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: NO_SLOWER,
        },
        Row {
            name: "rate-limited",
            about: "rate limited add, get, forget, done; exponential limiter with base 0 s, maximum 1 s",
            unit: "key",
            size: MILLION,
            runs: None,
            ours: throughput::rate_limited,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: NO_SLOWER,
        },
        Row {
            name: "delay-insert",
            about: "delayed adds of distinct keys, 1-2 h out",
            unit: "key",
            size: MILLION,
            runs: None,
            ours: delay::insert,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: NO_SLOWER,
        },
        Row {
            name: "memory-queued",
            about: "live heap of queued keys, the keys' own bytes excluded",
            unit: "key",
            size: SAME_MILLION,
            runs: None,
            ours: memory::queued,
            peer: Some(&CLIENT_GO),
            figure: Figure::LiveBytesPerOperation,
            target: Target::ShareOfPeer(0.7),
        },
        Row {
            name: "memory-delayed",
            about: "live heap of keys delayed 1-2 h, the keys' own bytes excluded",
            unit: "key",
            size: SAME_MILLION,
            runs: None,
            ours: memory::delayed,
            peer: Some(&CLIENT_GO),
            figure: Figure::LiveBytesPerOperation,
            target: Target::ShareOfPeer(1.0),
        },
        Row {
            name: "lateness",
            about: "delays uniform over 5 s to 2 consumers; lateness of the 99th percentile, no key early",
            unit: "key",
            size: MILLION,
            runs: None,
            ours: delay::lateness,
            peer: Some(&CLIENT_GO),
            figure: Figure::Named("late_p99_ms"),
            target: Target::ShareOfPeer(1.0),
        },
    ],
    on_jemalloc: &[],
    against_replay: false,
};
