//! Peers: the programs that Watchkeeper is compared with.
//!
//! A peer is any program that, started as `<program> <suite> <row> <operations>`, runs that row once and
//! prints one [`Measurement`](crate::measure::Measurement) as a line of JSON. A peer that is a Rust library
//! is part of this program, and runs in a separate process like any other.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cli::{self, Plan};
use crate::error::BenchError;
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
    pub(crate) program: PathBuf,
    /// The arguments before those of the row.
    pub(crate) prefix: Vec<String>,
}

const CLIENT_GO_PROGRAM: &str = "bin/client-go-peer";

/// The peer client-go, in the Go module under `peers/client-go`.
pub(crate) static CLIENT_GO: Peer = Peer { name: "client-go", prepare: prepare_client_go };

/// The peer kube-rs, which is part of this program.
pub(crate) static KUBE_RS: Peer = Peer { name: "kube-rs", prepare: || prepare_kube_rs("kube-rs") };

/// The peer kube-rs under Valgrind.
pub(crate) static KUBE_RS_COUNTED: Peer = Peer {
    name: "kube-rs counted",
    prepare: || {
        if count::is_possible() {
            prepare_kube_rs("kube-rs counted")
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
        prepare_in_process("channels", format!("tokio {version}, one channel for each handler"))
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

fn prepare_client_go() -> Result<Availability, BenchError> {
    match Command::new("go").arg("version").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Availability::Missing("go is not on PATH"));
        }
        // Other problems are reported by the build.
        _ => {}
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/client-go");
    let go = |arguments: &[&str]| {
        let output = Command::new("go")
            .args(arguments)
            .current_dir(&directory)
            .output()
            .map_err(|cause| BenchError::Start { program: "go".to_owned(), cause })?;
        checked(&output, &directory)
    };
    go(&["build", "-trimpath", "-o", CLIENT_GO_PROGRAM, "."])?;
    let module = go(&["list", "-m", "k8s.io/client-go"])?;
    let toolchain = go(&["env", "GOVERSION"])?;
    Ok(Availability::Ready(Prepared {
        name: CLIENT_GO.name,
        version: format!("{} built with {}", module.trim(), toolchain.trim()),
        program: directory.join(CLIENT_GO_PROGRAM),
        prefix: Vec::new(),
    }))
}

fn prepare_kube_rs(name: &'static str) -> Result<Availability, BenchError> {
    let version = locked_version("kube-client").unwrap_or("of the lock file");
    prepare_in_process(name, format!("kube-client {version}, built like ours"))
}

/// Returns a peer that is a library and part of this program.
fn prepare_in_process(name: &'static str, version: String) -> Result<Availability, BenchError> {
    let program = std::env::current_exe()
        .map_err(|cause| BenchError::Start { program: "the harness".to_owned(), cause })?;
    Ok(Availability::Ready(Prepared { name, version, program, prefix: cli::run_peer_prefix() }))
}

/// Returns the version of a crate that this program was built with.
fn locked_version(name: &str) -> Option<&'static str> {
    let lock = include_str!("../../Cargo.lock");
    let (_, package) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    package.split('"').next()
}

fn checked(output: &Output, directory: &Path) -> Result<String, BenchError> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(BenchError::PeerBuild {
        peer: CLIENT_GO.name,
        directory: directory.to_owned(),
        status: output.status.to_string(),
        output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
    })
}
