//! Peers: the programs that Watchkeeper is compared with.
//!
//! A peer is any program that, started as `<program> <suite> <row> <operations>`, runs that row once and
//! prints one [`Measurement`](crate::measure::Measurement) as a line of JSON. A peer that is a Rust library
//! is part of this program, and runs in a separate process like any other.

use std::path::PathBuf;

use crate::cli::{self, Plan};
use crate::error::BenchError;
use crate::go;
use crate::suite::Row;
use crate::suites::decode::count;

/// A program that Watchkeeper is compared with, and how to prepare it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Prepares the program, or returns the reason that it is not available on this machine.
    prepare: fn() -> Result<Availability, BenchError>,
}

/// The availability of a peer on this machine.
#[derive(Debug)]
enum Availability {
    Ready(Prepared),
    Missing(&'static str),
}

/// A peer that is ready to run.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) name: &'static str,
    /// The exact version, for the report.
    pub(crate) version: String,
    /// The end of the names of its runs, for one of several configurations of a peer.
    pub(crate) variant: &'static str,
    /// The program, or `None` for a library, which is part of the program that runs ours.
    pub(crate) program: Option<PathBuf>,
    /// The arguments before those of the row.
    pub(crate) prefix: Vec<String>,
}

/// The peer client-go, in the Go module under `peers/client-go`.
pub(crate) static CLIENT_GO: Peer =
    Peer { name: "client-go", prepare: || prepare_client_go("client-go", "") };

/// The peer client-go with a transform that removes managedFields.
pub(crate) static CLIENT_GO_STRIPPED: Peer =
    Peer { name: "client-go stripped", prepare: || prepare_client_go("client-go stripped", "-stripped") };

/// The peer client-go with JSON instead of protobuf.
pub(crate) static CLIENT_GO_JSON: Peer =
    Peer { name: "client-go json", prepare: || prepare_client_go("client-go json", "-json") };

/// The peer client-go with JSON and the transform.
pub(crate) static CLIENT_GO_JSON_STRIPPED: Peer = Peer {
    name: "client-go json stripped",
    prepare: || prepare_client_go("client-go json stripped", "-json-stripped"),
};

/// The peer kube-rs, which is part of this program.
pub(crate) static KUBE_RS: Peer = Peer { name: "kube-rs", prepare: || prepare_kube_rs("kube-rs", "") };

/// The peer kube-rs with managedFields removed before the store.
pub(crate) static KUBE_RS_STRIPPED: Peer =
    Peer { name: "kube-rs stripped", prepare: || prepare_kube_rs("kube-rs stripped", "-stripped") };

/// Ours with the memory policy that keeps every object decoded.
pub(crate) static DECODED: Peer = Peer {
    name: "ours decoded",
    prepare: || prepare_in_process("ours decoded", "-decoded", env!("CARGO_PKG_VERSION").to_owned()),
};

/// The peer kube-rs under Valgrind.
pub(crate) static KUBE_RS_COUNTED: Peer = Peer {
    name: "kube-rs counted",
    prepare: || {
        if count::is_possible() {
            prepare_kube_rs("kube-rs counted", "")
        } else {
            Ok(Availability::Missing("valgrind is not on PATH, so instructions cannot be counted"))
        }
    },
};

/// The peer of tokio channels, which is part of this program.
pub(crate) static CHANNELS: Peer = Peer {
    name: "channels",
    prepare: || {
        let version = locked_version("tokio").unwrap_or("of the lock file");
        prepare_in_process("channels", "", format!("tokio {version}, one channel for each handler"))
    },
};

/// The available peers of a plan.
#[derive(Debug)]
pub(crate) struct Peers(pub(crate) Vec<Prepared>);

impl Peers {
    /// Returns the peer of a row, if it has one that is available.
    pub(crate) fn of(&self, row: &Row) -> Option<&Prepared> {
        let wanted = row.peer?;
        self.0.iter().find(|peer| peer.name == wanted.name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Prepared> {
        self.0.iter()
    }
}

/// Prepares every peer of the plan once.
pub(crate) fn prepare(plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<Peers, BenchError> {
    let mut seen = Vec::new();
    let mut ready = Vec::new();
    for peer in plan.rows.iter().filter_map(|row| row.peer) {
        if !plan.with_peers || seen.contains(&peer.name) {
            continue;
        }
        seen.push(peer.name);
        say(&format!("preparing the peer {}", peer.name));
        match (peer.prepare)()? {
            Availability::Ready(prepared) => {
                say(&format!("peer {}: {}", prepared.name, prepared.version));
                ready.push(prepared);
            }
            Availability::Missing(reason) => {
                say(&format!("{reason}; ours runs alone, without {}", peer.name));
            }
        }
    }
    Ok(Peers(ready))
}

fn prepare_client_go(name: &'static str, variant: &'static str) -> Result<Availability, BenchError> {
    let Some(module) = go::build()? else {
        return Ok(Availability::Missing("go is not on PATH"));
    };
    Ok(Availability::Ready(Prepared {
        name,
        version: module.version()?,
        variant,
        program: Some(module.client_go()),
        prefix: Vec::new(),
    }))
}

fn prepare_kube_rs(name: &'static str, variant: &'static str) -> Result<Availability, BenchError> {
    let version = locked_version("kube-client").unwrap_or("of the lock file");
    prepare_in_process(name, variant, format!("kube-client {version}, built like ours"))
}

/// Returns a peer that is a library and part of this program.
#[expect(clippy::unnecessary_wraps, reason = "the result of every preparation")]
fn prepare_in_process(
    name: &'static str,
    variant: &'static str,
    version: String,
) -> Result<Availability, BenchError> {
    Ok(Availability::Ready(Prepared {
        name,
        version,
        variant,
        program: None,
        prefix: cli::run_peer_prefix(),
    }))
}

/// Returns the version of a crate that this program was built with.
fn locked_version(name: &str) -> Option<&'static str> {
    let lock = include_str!("../../Cargo.lock");
    let (_, package) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    package.split('"').next()
}
