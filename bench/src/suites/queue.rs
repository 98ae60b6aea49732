//! The work queue beside client-go's `util/workqueue`, keys `namespace-000/pod-name-00000000`.
//!
//! Both sides hold all keys in a vector before the timed part, ours as `Arc<str>`, client-go's as `string`, and both
//! share the structure of the load: a task where the other has a goroutine, keys split among producers the same way.

mod delay;
mod load;
mod memory;
mod throughput;

use crate::peer::CLIENT_GO;
use crate::suite::{Figure, Row, Size, Suite, Target};

const MILLION: Size = Size { full: 1_000_000, quick: 200_000 };
/// Bytes per key depend on where growth by doubling happens to stand, so quick runs keep the size.
const SAME_MILLION: Size = Size { full: 1_000_000, quick: 1_000_000 };
const THREE_TIMES: Target = Target::TimesLess(3.0);
const HALF: Target = Target::ShareOfPeer(0.5);

pub(crate) static SUITE: Suite = Suite {
    name: "queue",
    about: "the work queue beside client-go's util/workqueue",
    rows: &[
        Row {
            name: "lockstep",
            about: "add, get, done of distinct keys on one thread",
            unit: "key",
            size: MILLION,
            ours: throughput::lockstep,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: THREE_TIMES,
        },
        Row {
            name: "distinct-1p1c",
            about: "distinct keys from 1 producer to 1 consumer",
            unit: "key",
            size: MILLION,
            ours: |load| throughput::distinct(load, 1, 1),
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: THREE_TIMES,
        },
        Row {
            name: "distinct-4p4c",
            about: "distinct keys from 4 producers to 4 consumers",
            unit: "key",
            size: MILLION,
            ours: |load| throughput::distinct(load, 4, 4),
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: THREE_TIMES,
        },
        Row {
            name: "duplicate",
            about: "adds of keys that are all queued already, the very keys the queue holds",
            unit: "add",
            size: MILLION,
            ours: throughput::duplicate,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: THREE_TIMES,
        },
        Row {
            name: "duplicate-hot",
            about: "adds of 1000 keys that are queued already, equal to what the queue holds but allocated apart",
            unit: "add",
            size: MILLION,
            ours: throughput::duplicate_hot,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: THREE_TIMES,
        },
        Row {
            name: "rate-limited",
            about: "rate limited add, get, forget, done; exponential limiter with base 0 s, maximum 1 s",
            unit: "key",
            size: MILLION,
            ours: throughput::rate_limited,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: THREE_TIMES,
        },
        Row {
            name: "delay-insert",
            about: "delayed adds of distinct keys, 1-2 h out",
            unit: "key",
            size: MILLION,
            ours: delay::insert,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: THREE_TIMES,
        },
        Row {
            name: "memory-queued",
            about: "live heap of queued keys, the keys' own bytes excluded",
            unit: "key",
            size: SAME_MILLION,
            ours: memory::queued,
            peer: Some(&CLIENT_GO),
            figure: Figure::LiveBytesPerOperation,
            target: HALF,
        },
        Row {
            name: "memory-delayed",
            about: "live heap of keys delayed 1-2 h, the keys' own bytes excluded",
            unit: "key",
            size: SAME_MILLION,
            ours: memory::delayed,
            peer: Some(&CLIENT_GO),
            figure: Figure::LiveBytesPerOperation,
            target: HALF,
        },
        Row {
            name: "lateness",
            about: "delays uniform over 5 s to 2 consumers; how late the 99th percentile comes, none early",
            unit: "key",
            size: MILLION,
            ours: delay::lateness,
            peer: Some(&CLIENT_GO),
            figure: Figure::Named("late_p99_ms"),
            target: Target::Absolute { bound: 2.0, unit: "ms" },
        },
    ],
    on_jemalloc: &[],
};
