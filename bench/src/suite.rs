//! The parts of a benchmark: a suite is a list of rows, a row is one load that Watchkeeper and a peer run.

use std::error::Error;

use crate::measure::Measurement;
use crate::peer::Peer;

/// Rows that belong together and run with one command.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) rows: &'static [Row],
    /// The rows that run in the program [without counters](crate::programs), because counting would distort
    /// their figures.
    pub(crate) on_jemalloc: &'static [&'static str],
    /// Whether the rows run against the [replay server](crate::replay), in the program whose allocator is the system's
    /// and does not count.
    pub(crate) against_replay: bool,
}

/// A load, the sides that run it, and the target.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// A description of one run, in a line.
    pub(crate) about: &'static str,
    /// The operation that figures refer to.
    pub(crate) unit: &'static str,
    pub(crate) size: Size,
    /// The runs whose figures are compared, if they are not those of the row alone. A run that several rows need is
    /// made once in each round.
    pub(crate) runs: Option<Runs>,
    /// Runs ours, in a separate process.
    pub(crate) ours: fn(Load) -> Result<Measurement, RunFailure>,
    /// The peer that runs the same load under the same names, if any.
    pub(crate) peer: Option<&'static Peer>,
    /// The figure that is compared.
    pub(crate) figure: Figure,
    pub(crate) target: Target,
}

impl Row {
    /// Creates a peer's side of a row, which is only run and never judged.
    pub(crate) const fn of_peer(
        name: &'static str,
        run: fn(Load) -> Result<Measurement, RunFailure>,
    ) -> Self {
        Self {
            name,
            about: "",
            unit: "",
            size: Size { full: 1, quick: 1 },
            runs: None,
            ours: run,
            peer: None,
            figure: Figure::CpuPerOperation,
            target: Target::ShareOfPeer(1.0),
        }
    }

    /// Returns the names of the runs that the row compares.
    pub(crate) fn runs(&self) -> Runs {
        self.runs.unwrap_or(Runs { ours: self.name, peer: self.name })
    }
}

/// The names of the runs that a row compares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs {
    pub(crate) ours: &'static str,
    pub(crate) peer: &'static str,
}

/// The number of operations of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) full: u64,
    pub(crate) quick: u64,
}

/// The load of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) operations: u64,
}

/// The reason that a run of ours has no result, for display only.
pub(crate) type RunFailure = Box<dyn Error + Send + Sync>;

/// A figure of a run. Every figure is a cost, so less is better; a throughput is compared as its cost per
/// operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure {
    /// CPU nanoseconds per operation, the inverse of the throughput per CPU second.
    CpuPerOperation,
    /// Live heap bytes per operation.
    LiveBytesPerOperation,
    /// A further figure of the run, by name.
    Named(&'static str),
}

/// The target of the compared figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// Ours costs this many times less than the peer: the ratio is peer to ours, more is better.
    TimesLess(f64),
    /// Ours costs at most this share of the peer: the ratio is ours to peer, less is better.
    ShareOfPeer(f64),
    /// Ours costs at most this, regardless of the peer.
    Absolute { bound: f64, unit: &'static str },
}
