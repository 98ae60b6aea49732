//! The rows of the suite.

use super::policy::Policy;
use super::{informer, listing, mixed, reads};
use crate::measure::Measurement;
use crate::peer::{
    CLIENT_GO, CLIENT_GO_JSON, CLIENT_GO_JSON_STRIPPED, CLIENT_GO_STRIPPED, DECODED, KUBE_RS,
    KUBE_RS_STRIPPED, Peer,
};
use crate::suite::{Figure, Load, Row, RunFailure, Runs, Size, Suite, Target};

const PODS: Size = Size { full: 50_000, quick: 5_000 };
const MANY: Size = Size { full: 100_000, quick: 10_000 };
const FEW: Size = Size { full: 5_000, quick: 2_000 };

type Run = fn(Load) -> Result<Measurement, RunFailure>;

const STEADY: Figure = Figure::Named("steady_mib");
const PEAK: Figure = Figure::Named("sync_peak_mib");
const SYNC_CPU: Figure = Figure::Named("sync_cpu_us");
const EVENT_CPU: Figure = Figure::Named("event_cpu_us");

/// A row that compares a figure of the run of an informer in its default settings.
const fn informer(
    name: &'static str,
    about: &'static str,
    peer: &'static Peer,
    figure: Figure,
    share: f64,
) -> Row {
    of(
        name,
        about,
        ("informer", |load| informer::pods(load, Policy::Auto)),
        Some(("informer", peer)),
        figure,
        Target::ShareOfPeer(share),
    )
}

/// A row that compares a figure of a run of ours with the same figure of a run of a peer.
const fn of(
    name: &'static str,
    about: &'static str,
    (run, ours): (&'static str, Run),
    peer: Option<(&'static str, &'static Peer)>,
    figure: Figure,
    target: Target,
) -> Row {
    let (runs, peer) = match peer {
        Some((of_peer, peer)) => (Runs { ours: run, peer: of_peer }, Some(peer)),
        None => (Runs { ours: run, peer: run }, None),
    };
    Row { name, about, unit: "pod", size: PODS, runs: Some(runs), ours, peer, figure, target }
}

const fn at_most(bound: f64, unit: &'static str) -> Target {
    Target::Absolute { bound, unit }
}

const DECODED_RUN: (&str, Run) = ("informer-decoded", |load| informer::pods(load, Policy::Decoded));
const PACKED_RUN: (&str, Run) = ("informer-packed", |load| informer::pods(load, Policy::Packed));
const NARROW_RUN: (&str, Run) = ("narrow", informer::narrow);
const METADATA_RUN: (&str, Run) = ("metadata", informer::metadata);
const READS_RUN: (&str, Run) = ("reads", |load| reads::reads(load, Policy::Auto));
const READS_DECODED_RUN: (&str, Run) = ("reads-decoded", |load| reads::reads(load, Policy::Decoded));
const READS_PACKED_RUN: (&str, Run) = ("reads-packed", |load| reads::reads(load, Policy::Packed));
const GROWTH_RUN: (&str, Run) = ("growth", informer::growth);
const MIXED_RUN: (&str, Run) = ("mixed", mixed::mixed);

pub(crate) static SUITE: Suite = Suite {
    name: "cluster",
    about: "caches of 10,000 to 100,000 varied pods, beside client-go and kube-rs",
    rows: &[
        informer("steady", "resident memory when it has settled after the sync", &CLIENT_GO, STEADY, 0.15),
        informer("peak", "peak memory until every pod is in the cache", &CLIENT_GO, PEAK, 0.30),
        informer(
            "sync-cpu",
            "from the request until the handler was called for every pod",
            &CLIENT_GO,
            SYNC_CPU,
            0.7,
        ),
        informer("event-cpu", "an update, with a handler that reads its key", &CLIENT_GO, EVENT_CPU, 0.5),
        informer(
            "event-new-cpu",
            "an update, with a handler that reads the new state",
            &CLIENT_GO,
            Figure::Named("event_new_cpu_us"),
            0.9,
        ),
        informer(
            "event-both-cpu",
            "an update, with a handler that reads both states",
            &CLIENT_GO,
            Figure::Named("event_both_cpu_us"),
            1.2,
        ),
        informer(
            "relist-cpu",
            "the list after an expired watch, when nothing has changed",
            &CLIENT_GO,
            Figure::Named("relist_cpu_us"),
            0.3,
        ),
        informer(
            "steady-stripped",
            "settled memory beside client-go without managedFields",
            &CLIENT_GO_STRIPPED,
            STEADY,
            0.2,
        ),
        informer("sync-cpu-json", "the sync beside client-go with JSON", &CLIENT_GO_JSON, SYNC_CPU, 0.2),
        informer("event-cpu-json", "an update beside client-go with JSON", &CLIENT_GO_JSON, EVENT_CPU, 0.2),
        informer(
            "steady-json-stripped",
            "settled memory beside client-go with JSON, without managedFields",
            &CLIENT_GO_JSON_STRIPPED,
            STEADY,
            0.2,
        ),
        informer("steady-kube-rs", "settled memory beside kube-rs", &KUBE_RS, STEADY, 0.05),
        informer("sync-cpu-kube-rs", "the sync beside kube-rs", &KUBE_RS, SYNC_CPU, 0.5),
        informer("event-cpu-kube-rs", "an update beside kube-rs", &KUBE_RS, EVENT_CPU, 0.4),
        informer(
            "steady-kube-rs-stripped",
            "settled memory beside kube-rs without managedFields",
            &KUBE_RS_STRIPPED,
            STEADY,
            0.1,
        ),
        informer(
            "peak-kube-rs-stripped",
            "peak memory beside kube-rs without managedFields",
            &KUBE_RS_STRIPPED,
            PEAK,
            0.2,
        ),
        of(
            "decoded-steady",
            "settled memory with every pod decoded, beside client-go without managedFields",
            DECODED_RUN,
            Some(("informer", &CLIENT_GO_STRIPPED)),
            STEADY,
            Target::ShareOfPeer(1.0),
        ),
        of(
            "packed-steady",
            "settled memory with every pod packed",
            PACKED_RUN,
            Some(("informer", &CLIENT_GO)),
            STEADY,
            Target::ShareOfPeer(0.15),
        ),
        of(
            "packed-event-new-cpu",
            "an update whose new state is read, with every pod packed",
            PACKED_RUN,
            Some(("informer", &CLIENT_GO)),
            Figure::Named("event_new_cpu_us"),
            Target::ShareOfPeer(1.0),
        ),
        of(
            "narrow-steady",
            "settled memory of a type with six fields, beside whole pods",
            NARROW_RUN,
            Some(("informer", &CLIENT_GO)),
            STEADY,
            Target::ShareOfPeer(0.05),
        ),
        of(
            "metadata-steady",
            "settled memory of metadata-only informers",
            METADATA_RUN,
            Some(("metadata", &CLIENT_GO)),
            STEADY,
            Target::ShareOfPeer(0.3),
        ),
        of(
            "get-decoded",
            "a read of a pod by key, with every pod decoded",
            READS_DECODED_RUN,
            Some(("reads", &CLIENT_GO)),
            Figure::Named("get_ns"),
            at_most(1000.0, "ns"),
        ),
        of(
            "get-packed",
            "a read of a pod by key, with every pod packed",
            READS_PACKED_RUN,
            Some(("reads", &CLIENT_GO)),
            Figure::Named("get_ns"),
            at_most(60_000.0, "ns"),
        ),
        of(
            "list",
            "a list of everything that reads each pod, per pod",
            READS_RUN,
            Some(("reads", &CLIENT_GO)),
            Figure::Named("list_ns_per_pod"),
            at_most(60_000.0, "ns"),
        ),
        of(
            "index",
            "a read of the pods of a node",
            READS_DECODED_RUN,
            Some(("reads", &CLIENT_GO)),
            Figure::Named("index_ns"),
            at_most(10_000.0, "ns"),
        ),
        of(
            "write-p99",
            "a write to the store beside ten readers",
            READS_RUN,
            Some(("reads", &CLIENT_GO)),
            Figure::Named("write_p99_us"),
            at_most(50.0, "us"),
        ),
        Row {
            size: MANY,
            ..of(
                "growth",
                "the distance of memory from a straight line while the cache grows tenfold",
                GROWTH_RUN,
                Some(("growth", &CLIENT_GO)),
                Figure::Named("off_line_percent"),
                at_most(10.0, "%"),
            )
        },
        Row {
            size: MANY,
            ..of(
                "large",
                "settled memory after that growth, 100,000 pods",
                GROWTH_RUN,
                Some(("growth", &CLIENT_GO)),
                STEADY,
                at_most(256.0, "MiB"),
            )
        },
        of(
            "listing",
            "a loop that lists everything, after a minute, beside every pod decoded",
            ("listing", |load| listing::listing(load, Policy::Auto)),
            Some(("listing", &DECODED)),
            Figure::CpuPerOperation,
            Target::ShareOfPeer(1.2),
        ),
        Row {
            size: FEW,
            ..of(
                "fits",
                "sync, events and lists of a cache within the budget, beside every pod decoded",
                ("fits", |load| listing::fits(load, Policy::Auto)),
                Some(("fits", &DECODED)),
                Figure::CpuPerOperation,
                Target::ShareOfPeer(1.1),
            )
        },
        of(
            "mixed-cpu",
            "200 reconciles a second by four workers, with three reads each",
            MIXED_RUN,
            Some(("mixed", &CLIENT_GO)),
            Figure::Named("mixed_cpu_us"),
            Target::ShareOfPeer(1.0),
        ),
        of(
            "mixed-memory",
            "the same; resident memory at the end",
            MIXED_RUN,
            Some(("mixed", &CLIENT_GO)),
            Figure::Named("mixed_mib"),
            Target::ShareOfPeer(1.0),
        ),
    ],
    on_jemalloc: &[],
    against_replay: true,
};
