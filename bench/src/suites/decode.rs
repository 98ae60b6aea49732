//! Decoding of lists and watches, compared with kube-rs's client, with pods of about 9 KB.
//!
//! Both sides request the same bytes from the same server in the same process, in chunks of 16 KiB, and keep
//! an `Arc` of every object, as a cache does. kube-rs is used as its users do: `Api::list` and `Api::watch`.

pub(crate) mod count;
mod kube_rs;
mod memory;
mod ours;
mod server;

use crate::peer::{KUBE_RS, KUBE_RS_COUNTED};
use crate::suite::{Figure, Row, Size, Suite, Target};

const PODS: Size = Size { full: 10_000, quick: 2_000 };
/// The size of rows that count instructions. The counts do not vary, and counting is slow.
const COUNTED_PODS: Size = Size { full: 500, quick: 200 };

const LIST: &str = "list";
const WATCH: &str = "watch";
const NARROW: &str = "narrow";

pub(crate) static SUITE: Suite = Suite {
    name: "decode",
    about: "lists and watches decoded, beside kube-rs",
    rows: &[
        Row {
            name: LIST,
            about: "a list of 9 KB pods into k8s-openapi Pods",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: ours::list,
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(0.7),
        },
        Row {
            name: "list-instructions",
            about: "the same, instructions instead of time",
            unit: "pod",
            size: COUNTED_PODS,
            runs: None,
            ours: |load| count::ours(LIST, load),
            peer: Some(&KUBE_RS_COUNTED),
            figure: count::FIGURE,
            target: Target::ShareOfPeer(0.66),
        },
        Row {
            name: WATCH,
            about: "a watch of 9 KB pods into k8s-openapi Pods",
            unit: "event",
            size: PODS,
            runs: None,
            ours: ours::watch,
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(0.7),
        },
        Row {
            name: "watch-instructions",
            about: "the same, instructions instead of time",
            unit: "event",
            size: COUNTED_PODS,
            runs: None,
            ours: |load| count::ours(WATCH, load),
            peer: Some(&KUBE_RS_COUNTED),
            figure: count::FIGURE,
            target: Target::ShareOfPeer(0.66),
        },
        Row {
            name: NARROW,
            about: "a list of 9 KB pods into a type of six fields, beside kube-rs into whole Pods",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: ours::narrow,
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(0.2),
        },
        Row {
            name: "list-memory",
            about: "the peak memory of a list of 100 MB beyond the Pods that are kept",
            unit: "pod",
            size: Size { full: 11_000, quick: 11_000 },
            runs: None,
            ours: memory::list,
            peer: None,
            figure: Figure::Named(memory::FIGURE),
            target: Target::Absolute { bound: 2.0, unit: "MB" },
        },
    ],
    on_jemalloc: &[],
    against_replay: false,
};

/// The rows of kube-rs under the same names.
pub(crate) static PEER: Suite = Suite {
    name: SUITE.name,
    about: "kube-rs's side of the decode suite",
    rows: &[
        Row::of_peer(LIST, kube_rs::list),
        Row::of_peer("list-instructions", |load| count::peer(LIST, load)),
        Row::of_peer(WATCH, kube_rs::watch),
        Row::of_peer("watch-instructions", |load| count::peer(WATCH, load)),
        Row::of_peer(NARROW, kube_rs::list),
    ],
    on_jemalloc: &[],
    against_replay: false,
};
