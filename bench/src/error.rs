//! Errors of a benchmark run; every one ends the program with exit code 2.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::suite::RunFailure;

/// The reason that a run has no verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum BenchError {
    #[error("{program} did not start: {cause}")]
    Start { program: String, cause: io::Error },

    #[error("building the {peer} peer in {} failed ({status}); `--no-peer` runs ours alone.\n{output}", directory.display())]
    PeerBuild { peer: &'static str, directory: PathBuf, status: String, output: String },

    #[error("suite {suite} needs its replay server, a Go program, but go is not on PATH")]
    NoReplay { suite: &'static str },

    #[error("building {program} failed ({status}); other suites do not need it.\n{output}")]
    Build { program: &'static str, status: String, output: String },

    #[error("{run} failed ({status}); the command was `{command}`.\n{output}")]
    Run { run: String, status: String, command: String, output: String },

    #[error("{run} was still running after {} s and was ended; the command was `{command}`", limit.as_secs())]
    TimeLimit { run: String, limit: Duration, command: String },

    #[error("{run} printed no result: {reason}; the command was `{command}`")]
    NoResult { run: String, reason: String, command: String },

    #[error("{row}: {cause}")]
    Ours { row: &'static str, cause: RunFailure },

    #[error("row {row} cannot be judged: {reason}")]
    Unjudged { row: &'static str, reason: String },

    #[error("the report could not be written to {}: {cause}; choose another file for `--json`", file.display())]
    Json { file: PathBuf, cause: io::Error },

    #[error("plotting failed at {}: {reason}", file.display())]
    Plot { file: PathBuf, reason: String },

    #[error("serving pods to a run: {0}")]
    Serve(RunFailure),

    #[error("the result could not be encoded: {0}")]
    Encode(serde_json::Error),

    #[error("writing the result to standard output: {0}")]
    Output(io::Error),
}
