//! The store beside client-go's indexer and kube-rs's reflector store: 50,000 pods on 1000 nodes in 41 namespaces.
//!
//! All sides store the same pods, created beforehand, indexed by namespace and by node where the side has indexes. Keys, nodes
//! and pods are visited with a stride, because the lookups of a controller have no order either.

mod kube_rs;
mod listing;
mod memory;
mod ours;
mod pods;

use crate::peer::{CLIENT_GO, KUBE_RS};
use crate::suite::{Figure, Row, Size, Suite, Target};

const BY_INDEX_SCAN: &str = "by-index-or-scan";

const LOOKUPS: Size = Size { full: 2_000_000, quick: 500_000 };
const BY_INDEX: Size = Size { full: 200_000, quick: 50_000 };
const PODS: Size = Size { full: pods::COUNT, quick: pods::COUNT };

pub(crate) static SUITE: Suite = Suite {
    name: "store",
    about: "the cache beside client-go's indexer and kube-rs's reflector store",
    rows: &[
        Row {
            name: "get",
            about: "lookup of one of 50,000 pods by key, borrowed, not read",
            unit: "lookup",
            size: LOOKUPS,
            runs: None,
            ours: ours::get,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.2),
        },
        Row {
            name: "get-look",
            about: "lookup of one of 50,000 pods by key, borrowed and read",
            unit: "lookup",
            size: LOOKUPS,
            runs: None,
            ours: ours::get_and_look,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.2),
        },
        Row {
            name: "get-shared",
            about: "lookup of one of 50,000 pods by key, shared and read",
            unit: "lookup",
            size: LOOKUPS,
            runs: None,
            ours: ours::get_shared,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            // Sharing counts a reference in the object, which is a cache miss; in Go the garbage collector does this work.
            target: Target::ShareOfPeer(1.2),
        },
        Row {
            name: "by-index",
            about: "the 50 pods of a node, of 50,000, borrowed",
            unit: "lookup",
            size: BY_INDEX,
            runs: None,
            ours: ours::by_index,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::Absolute { bound: 2000.0, unit: "ns" },
        },
        Row {
            name: "by-index-shared",
            about: "the 50 pods of a node, of 50,000, shared",
            unit: "lookup",
            size: BY_INDEX,
            runs: None,
            ours: ours::by_index_shared,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.0),
        },
        Row {
            name: BY_INDEX_SCAN,
            about: "the same, beside kube-rs, which has no indexes and scans all pods",
            unit: "lookup",
            size: Size { full: 1_000, quick: 300 },
            runs: None,
            ours: ours::by_index,
            peer: Some(&KUBE_RS),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(0.02),
        },
        Row {
            name: "update",
            about: "a newer version of a pod, on the same node",
            unit: "update",
            size: Size { full: 1_000_000, quick: 200_000 },
            runs: None,
            ours: ours::update,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.0),
        },
        Row {
            name: "move",
            about: "a newer version of a pod, on another node each time",
            unit: "update",
            size: Size { full: 1_000_000, quick: 200_000 },
            runs: None,
            ours: ours::move_to_other_node,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.0),
        },
        Row {
            name: "replace",
            about: "50,000 pods into an empty store, at once",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: ours::replace,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.0),
        },
        Row {
            name: "scan",
            about: "the 50 pods of a node, found by scanning a snapshot of all 50,000",
            unit: "scan",
            size: Size { full: 500, quick: 200 },
            runs: None,
            ours: ours::scan,
            peer: Some(&CLIENT_GO),
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.0),
        },
        Row {
            name: "update-while-listing",
            about: "updates, one each 50 µs, while another thread lists in a loop; the 99th percentile",
            unit: "update",
            size: Size { full: 20_000, quick: 5_000 },
            runs: None,
            ours: listing::update_while_listing,
            peer: Some(&CLIENT_GO),
            figure: Figure::Named(listing::P99),
            target: Target::Absolute { bound: 20.0, unit: "us" },
        },
        Row {
            name: "memory",
            about: "live heap beside the pods, with indexes by namespace and node",
            unit: "pod",
            size: PODS,
            runs: None,
            ours: memory::held,
            peer: Some(&CLIENT_GO),
            figure: Figure::LiveBytesPerOperation,
            target: Target::ShareOfPeer(0.6),
        },
    ],
    on_jemalloc: &[],
    against_replay: false,
};

/// kube-rs's side of these rows.
pub(crate) static PEER: Suite = Suite {
    name: SUITE.name,
    about: "kube-rs's side of the store suite",
    rows: &[Row {
        name: BY_INDEX_SCAN,
        about: "",
        unit: "",
        size: PODS,
        runs: None,
        ours: kube_rs::scan,
        peer: None,
        figure: Figure::CpuPerOperation,
        target: Target::ShareOfPeer(1.0),
    }],
    on_jemalloc: &[],
    against_replay: false,
};
