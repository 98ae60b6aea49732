//! Benchmarks of Watchkeeper and its peers: one command per suite, one verdict per row.
//!
//! The harness starts every run in a new process, alternating between Watchkeeper and the peer, and judges
//! the medians. Start reading at `suite` (the definition of a row), then `runner` (how rows are run),
//! `verdict` (how they are judged) and `suites` (the rows).
//!
//! Three programs are built from this crate, which differ in their allocator: see `programs`.

mod cli;
mod clock;
mod error;
mod go;
mod heap;
mod machine;
mod measure;
mod peer;
mod plot;
mod programs;
mod progress;
mod replay;
mod report;
mod runner;
mod stats;
mod suite;
mod suites;
mod verdict;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::{Plan, Request};
use crate::error::BenchError;
use crate::programs::Programs;
use crate::replay::Replay;
use crate::report::Report;
use crate::suite::Row;

/// The exit code if a target is missed.
const SHORT: u8 = 1;
/// The exit code without a verdict: wrong usage, or a failed run.
const FAILED: u8 = 2;

/// The main function of both programs.
#[must_use]
pub fn main() -> ExitCode {
    let answer = match cli::parse() {
        Request::List => list(),
        Request::RunOne { row, load } => run_one(row, load),
        Request::Suites { plans, json } => run_suites(&plans, json),
        Request::Serve { pods } => serve(pods),
        Request::Plot { report, svg } => plot_report(&report, &svg),
    };
    answer.unwrap_or_else(|error| {
        // An error on standard error cannot be reported.
        let _ = writeln!(io::stderr(), "watchkeeper-bench: {error}");
        ExitCode::from(FAILED)
    })
}

fn list() -> Result<ExitCode, BenchError> {
    let mut out = io::stdout().lock();
    for suite in suites::ALL {
        write!(out, "{}", cli::describe(suite)).map_err(BenchError::Output)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Performs one run of ours, in the process that the harness started for it.
fn run_one(row: &Row, load: suite::Load) -> Result<ExitCode, BenchError> {
    let measured = (row.ours)(load).map_err(|cause| BenchError::Ours { row: row.name, cause })?;
    let line = serde_json::to_string(&measured).map_err(BenchError::Encode)?;
    writeln!(io::stdout(), "{line}").map_err(BenchError::Output)?;
    Ok(ExitCode::SUCCESS)
}

fn serve(pods: u64) -> Result<ExitCode, BenchError> {
    suites::sync::server::serve(pods).map_err(BenchError::Serve)?;
    Ok(ExitCode::SUCCESS)
}

fn plot_report(report: &Path, svg: &Path) -> Result<ExitCode, BenchError> {
    let failed = |file: &Path, reason: String| BenchError::Plot { file: file.to_owned(), reason };
    let text = std::fs::read_to_string(report).map_err(|error| failed(report, error.to_string()))?;
    let plots = plot::plot(&text).map_err(|reason| failed(report, reason))?;
    std::fs::write(svg, plots).map_err(|error| failed(svg, error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

fn run_suites(plans: &[Plan], json: Option<PathBuf>) -> Result<ExitCode, BenchError> {
    if cfg!(debug_assertions) {
        say("note: this is a debug build; its figures are meaningless. Run with `cargo run --release`.");
    }
    if plans.iter().any(|plan| plan.quick) {
        say("note: --quick runs fewer rounds and smaller sizes; its figures are rough.");
    }
    // Opened before anything runs, so that an unwritable file is reported immediately and not after minutes.
    let open = |path| match File::create(&path) {
        Ok(file) => Ok((path, file)),
        Err(cause) => Err(BenchError::Json { file: path, cause }),
    };
    let json = json.map(open).transpose()?;

    let mut reports = Vec::with_capacity(plans.len());
    for plan in plans {
        let peers = peer::prepare(plan, &mut say)?;
        let programs = Programs::prepare(plan, &mut say)?;
        let replay = Replay::prepare(plan, &mut say)?;
        let runs = runner::run(plan, &peers, &programs, replay.as_ref())?;
        let report = Report::new(plan, &peers, runs)?;
        // Printed immediately, because the next suite may take minutes.
        write!(io::stdout(), "{report}").map_err(BenchError::Output)?;
        reports.push(report);
    }
    if let Some((path, file)) = json {
        report::write_json(&reports, file).map_err(|cause| BenchError::Json { file: path, cause })?;
    }
    Ok(if reports.iter().any(Report::is_short) { ExitCode::from(SHORT) } else { ExitCode::SUCCESS })
}

/// Prints a note to standard error. If that is closed, the note is lost but not the measurement.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
