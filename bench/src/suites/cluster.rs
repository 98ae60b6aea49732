//! Caches of large clusters, beside client-go and kube-rs, against the replay server.
//!
//! A run measures a whole life: the first list, the memory when it has settled, events, and the list after an expired watch. Several
//! rows compare figures of the same run.

mod informer;
mod kube_rs;
mod listing;
mod memory;
mod mixed;
mod policy;
mod reads;
mod rows;
mod types;
mod watched;

use std::io;

use k8s_openapi::api::core::v1::Pod;
use tokio::runtime::{Builder, Runtime};

use self::policy::Policy;
pub(crate) use self::rows::SUITE;
use crate::suite::{Row, Suite};

const BY_NODE: &str = "node";
/// Events of a phase, at most.
const MOST_EVENTS: u64 = 20_000;
/// Steps in which a cache grows.
const GROWTH_STEPS: u64 = 10;
/// Changes per second of the mixed load.
const MIXED_RATE: u64 = 200;
const READERS_BESIDE: usize = 10;

/// The sides of kube-rs, and of ours where it is its own peer.
pub(crate) static PEER: Suite = Suite {
    name: SUITE.name,
    about: "the sides of kube-rs and of other policies of ours in the cluster suite",
    rows: &[
        Row::of_peer("informer", |load| kube_rs::informer(load, false)),
        Row::of_peer("informer-stripped", |load| kube_rs::informer(load, true)),
        Row::of_peer("listing-decoded", |load| listing::listing(load, Policy::Decoded)),
        Row::of_peer("fits-decoded", |load| listing::fits(load, Policy::Decoded)),
    ],
    on_jemalloc: &[],
    against_replay: true,
};

/// Returns the runtime of both sides, with tokio's default of a worker for each CPU of the process.
fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

fn events_of(pods: u64) -> u64 {
    pods.min(MOST_EVENTS)
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}
