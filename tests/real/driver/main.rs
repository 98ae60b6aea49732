//! Runs Watchkeeper's informer beside client-go's against a real control plane under faults.
//!
//! Prints how many seconds after the end of each fault each cache was current. `tests/real/run` builds the programs and
//! starts this one; `tests/real/README.md` describes the rows.

mod clock;
mod error;
mod faults;
mod follower;
mod objects;
mod plane;
mod process;
mod proxy;
mod recovery;
mod report;
mod session;
mod writer;

use std::{
    fmt,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, ValueEnum as _};
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    time::Instant,
};

use crate::{
    clock::now,
    error::{During as _, Error, Result},
    faults::Fault,
    objects::Kind,
    recovery::Recovery,
    report::{Report, Row},
    session::{Session, Settings},
};

/// Measures the recovery of Watchkeeper's and client-go's informers on a real control plane.
#[derive(Debug, Parser)]
struct Arguments {
    /// Directory of etcd, kube-apiserver, etcd-snapshot and client-go's follower
    #[arg(long, value_name = "DIRECTORY")]
    programs: PathBuf,
    /// Faults to cause, in this order
    #[arg(long, value_delimiter = ',', value_name = "FAULT,…")]
    rows: Option<Vec<Fault>>,
    /// Repetitions of each fault, instead of the default of its row
    #[arg(long)]
    runs: Option<u32>,
    /// Number of objects
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// Writes per second
    #[arg(long, default_value_t = 90)]
    rate: u32,
    /// Seed of all random choices; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Keep data and logs even if every row passes
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let keep = arguments.keep;
    let directory = match tempfile::Builder::new().prefix("watchkeeper-real-").tempdir() {
        Ok(directory) => directory,
        Err(error) => {
            log(format_args!("create a directory for data and logs: {error}"));
            return ExitCode::FAILURE;
        }
    };
    // Ending the run drops its processes, which kills them.
    let ended = select! {
        ended = run(arguments, directory.path()) => ended,
        signal = interrupted() => Err(signal.err().unwrap_or(Error::Interrupted)),
    };
    let has_passed = match ended {
        Ok(report) => {
            // A closed standard output is not an error of the run.
            let _ = write!(io::stdout(), "{report}");
            report.passes()
        }
        Err(error) => {
            log(format_args!("error: {error}"));
            false
        }
    };
    if keep || !has_passed {
        log(format_args!("data and logs: {}", directory.keep().display()));
    }
    if has_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(arguments: Arguments, directory: &Path) -> Result<Report> {
    let start = now();
    let our_follower = std::env::current_exe()
        .map(|driver| driver.with_file_name("real-follower"))
        .during(|| "find the follower beside the driver".to_owned())?;
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    let settings = Settings {
        programs: arguments.programs,
        our_follower,
        directory: directory.to_owned(),
        objects: arguments.objects,
        rate: arguments.rate,
        seed,
    };
    log(format_args!("seed {seed}, logs in {}", directory.display()));
    log(format_args!("starting; {} ConfigMaps, {} writes/s", arguments.objects, arguments.rate));
    let mut session = Session::start(settings).await?;
    progress(start, format_args!("both caches are current"));

    let (load_start, written_before) = (now(), session.writer.written());
    let mut report = Report::default();
    for fault in arguments.rows.unwrap_or_else(|| Fault::value_variants().to_vec()) {
        let mut row = Row { fault, runs: Vec::new() };
        for run in 1..=arguments.runs.unwrap_or(fault.runs()) {
            let recoveries = session.run(fault).await?;
            let [ours, theirs] = &recoveries;
            progress(
                start,
                format_args!("{}, run {run}: watchkeeper {ours}, client-go {theirs}", fault.title()),
            );
            if recoveries.iter().any(|recovery| !matches!(recovery, Recovery::Current(_))) {
                log(format_args!("{}", session.statuses(Kind::ConfigMaps).await?));
                // A wrong cache stays wrong, and would fail every following row.
                session.restart_followers().await?;
            }
            row.runs.push(recoveries);
        }
        report.0.push(row);
    }
    let (written, seconds) = (session.writer.written() - written_before, load_start.elapsed().as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "far fewer writes than a float is exact for")]
    let rate = written as f64 / seconds;
    progress(start, format_args!("{written} writes, {rate:.0} per second including outages and pauses"));
    Ok(report)
}

/// Waits for SIGINT or SIGTERM.
async fn interrupted() -> Result<()> {
    let listen = |kind| signal(kind).during(|| "listen for signals".to_owned());
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

fn progress(start: Instant, text: fmt::Arguments<'_>) {
    log(format_args!("[{:5.0} s] {text}", start.elapsed().as_secs_f64()));
}

fn log(text: fmt::Arguments<'_>) {
    // Progress is informational; the run continues without a reader.
    let _ = writeln!(io::stderr(), "{text}");
}
