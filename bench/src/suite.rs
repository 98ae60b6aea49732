//! What a benchmark is made of: a suite is a list of rows, a row is one load run by ours and by a peer.

use std::error::Error;

use crate::measure::Measurement;
use crate::peer::Peer;

/// Rows that belong together and run with one command.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) rows: &'static [Row],
    /// The rows that are run by the program [without counters](crate::programs): those of which the counters would be a part
    /// worth mentioning.
    pub(crate) on_jemalloc: &'static [&'static str],
}

/// One load, who runs it, and what has to come out.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What one run does, in a line.
    pub(crate) about: &'static str,
    /// What one operation is: the figures are per this.
    pub(crate) unit: &'static str,
    pub(crate) size: Size,
    /// Runs ours, in a process of its own.
    pub(crate) ours: fn(Load) -> Result<Measurement, RunFailure>,
    /// Runs the same load under the same names, or nobody does.
    pub(crate) peer: Option<&'static Peer>,
    /// The figure that is compared.
    pub(crate) figure: Figure,
    pub(crate) target: Target,
}

impl Row {
    /// A peer's side of a row: it is only run, never judged.
    pub(crate) const fn of_peer(
        name: &'static str,
        run: fn(Load) -> Result<Measurement, RunFailure>,
    ) -> Self {
        Self {
            name,
            about: "",
            unit: "",
            size: Size { full: 1, quick: 1 },
            ours: run,
            peer: None,
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.0),
        }
    }
}

/// Operations of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) full: u64,
    pub(crate) quick: u64,
}

/// How much one run is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) operations: u64,
}

/// Why a run of ours has no result. It is only ever shown.
pub(crate) type RunFailure = Box<dyn Error + Send + Sync>;

/// A figure of a run. Every figure is a cost: less is better. (A throughput is compared as its cost per operation.)
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure {
    /// CPU nanoseconds per operation: what throughput per CPU second is the inverse of.
    CpuPerOperation,
    /// Live heap bytes per operation.
    LiveBytesPerOperation,
    /// One of the run's further figures.
    Named(&'static str),
}

/// What the compared figure has to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// Ours costs this many times less than the peer: the ratio is peer to ours, more is better.
    TimesLess(f64),
    /// Ours costs at most this share of the peer: the ratio is ours to peer, less is better.
    ShareOfPeer(f64),
    /// Ours costs at most this, whatever the peer does.
    Absolute { bound: f64, unit: &'static str },
}
