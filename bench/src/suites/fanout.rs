//! One stream of events to ten handlers, beside a channel for each handler.
//!
//! Both sides publish the same prepared events in the same steps from one task, run a task for each handler,
//! and count the events that each handler receives. The peer sends an `Arc` of the event down one unbounded tokio
//! channel for each handler, and each handler takes out as many at once as there are: the cheapest way to fan
//! out with channels that loses nothing.

mod channels;
mod load;
mod ours;

use crate::peer::CHANNELS;
use crate::suite::{Figure, Row, Size, Suite, Target};

const MILLION: Size = Size { full: 1_000_000, quick: 200_000 };
const IN_BATCHES: &str = "in-batches";
const ONE_BY_ONE: &str = "one-by-one";
const STALLED: &str = "stalled-memory";

pub(crate) static SUITE: Suite = Suite {
    name: "fanout",
    about: "the processor beside a channel for each handler",
    rows: &[
        Row {
            name: IN_BATCHES,
            about: "events to 10 handlers, published 100 at a time, all delivered",
            unit: "event",
            size: MILLION,
            runs: None,
            ours: |load| ours::fan_out(load, 100),
            peer: Some(&CHANNELS),
            figure: Figure::CpuPerOperation,
            target: Target::TimesLess(3.0),
        },
        Row {
            name: ONE_BY_ONE,
            about: "events to 10 handlers, published one at a time, all delivered",
            unit: "event",
            size: MILLION,
            runs: None,
            ours: |load| ours::fan_out(load, 1),
            peer: Some(&CHANNELS),
            figure: Figure::CpuPerOperation,
            // Waking ten tasks for one event is what it costs, with either; this guards against getting much
            // worse.
            target: Target::TimesLess(0.75),
        },
        Row {
            name: STALLED,
            about: "memory that a blocked handler retains beyond the cache of 50,000 keys, in sizes of that cache",
            unit: "event",
            size: MILLION,
            runs: None,
            ours: ours::stalled,
            peer: Some(&CHANNELS),
            figure: Figure::Named(load::HELD),
            target: Target::Absolute { bound: 2.0, unit: "x" },
        },
    ],
    on_jemalloc: &[],
    against_replay: false,
};

/// The channels' side of these rows.
pub(crate) static PEER: Suite = Suite {
    name: SUITE.name,
    about: "the channels' side of the fanout suite",
    rows: &[
        Row::of_peer(IN_BATCHES, |load| channels::fan_out(load, 100)),
        Row::of_peer(ONE_BY_ONE, |load| channels::fan_out(load, 1)),
        Row::of_peer(STALLED, channels::stalled),
    ],
    on_jemalloc: &[],
    against_replay: false,
};
