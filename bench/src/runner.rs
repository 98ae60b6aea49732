//! Running a plan: every run a fresh process, ours and the peer's in turn, one at a time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::process::Command;
use tokio::runtime::Builder;

use crate::cli::{self, Plan};
use crate::error::BenchError;
use crate::machine::{CpuTicks, as_f64};
use crate::measure::Measurement;
use crate::peer::Peers;
use crate::progress::Progress;
use crate::suite::Row;

/// No row takes a tenth of this; a run that reaches it hangs.
const TIME_LIMIT: Duration = Duration::from_mins(5);

/// Settings of the runtimes that would make runs on two machines, or of two sides, differ unseen.
const TUNING: [&str; 8] = [
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "MALLOC_TRIM_THRESHOLD_",
    "TOKIO_WORKER_THREADS",
];

/// Whose run it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    Ours,
    Peer,
}

/// One run and what it measured.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) row: &'static str,
    pub(crate) side: Side,
    pub(crate) round: u32,
    /// The share of the machine that went to other processes from the start of this one to its end.
    pub(crate) foreign_share: Option<f64>,
    pub(crate) measured: Measurement,
}

/// A run still to be done.
#[derive(Debug)]
struct Step {
    row: &'static Row,
    side: Side,
    round: u32,
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// Does every run of the plan, in an order that gives neither side the better place.
pub(crate) fn run(plan: &Plan, peers: &Peers) -> Result<Vec<Run>, BenchError> {
    let start = |cause| BenchError::Start {
        program: "the harness".to_owned(),
        cause,
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(start)?;
    let own_program = std::env::current_exe().map_err(start)?;

    let steps = steps(plan, peers, &own_program);
    let mut progress = Progress::new(steps.len() as u64);
    let mut runs = Vec::with_capacity(steps.len());
    for step in steps {
        progress.start(&step.name);
        let run = runtime.block_on(execute(&step))?;
        progress.finish(&step.name, &outcome(&run, step.row));
        runs.push(run);
    }
    Ok(runs)
}

/// Rounds outermost, so that a change in the machine's load falls on all rows and both sides; within a row the side
/// that goes first changes from round to round.
fn steps(plan: &Plan, peers: &Peers, own_program: &std::path::Path) -> Vec<Step> {
    let mut steps = Vec::new();
    for round in 1..=plan.rounds {
        for &row in &plan.rows {
            let load: [String; 3] = [
                plan.suite.name.to_owned(),
                row.name.to_owned(),
                plan.load(row).operations.to_string(),
            ];
            let step = |side, whose: &str, program: PathBuf, prefix: Vec<String>| Step {
                row,
                side,
                round,
                name: format!("round {round} {}/{} {whose}", plan.suite.name, row.name),
                program,
                arguments: prefix
                    .into_iter()
                    .chain(load.clone())
                    .map(OsString::from)
                    .collect(),
            };
            let ours = step(Side::Ours, "ours", own_program.to_owned(), cli::run_one_prefix());
            let peer = peers
                .of(row)
                .map(|peer| step(Side::Peer, peer.name, peer.program.clone(), Vec::new()));
            if round % 2 == 1 {
                steps.push(ours);
                steps.extend(peer);
            } else {
                steps.extend(peer);
                steps.push(ours);
            }
        }
    }
    steps
}

async fn execute(step: &Step) -> Result<Run, BenchError> {
    let mut command = Command::new(&step.program);
    command
        .args(&step.arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for variable in TUNING {
        command.env_remove(variable);
    }
    let shown = || {
        let arguments: Vec<_> = step
            .arguments
            .iter()
            .map(|argument| argument.to_string_lossy())
            .collect();
        format!("{} {}", step.program.display(), arguments.join(" "))
    };

    let before = CpuTicks::now();
    let output = tokio::time::timeout(TIME_LIMIT, command.output())
        .await
        .map_err(|_| BenchError::TimeLimit {
            run: step.name.clone(),
            limit: TIME_LIMIT,
            command: shown(),
        })?
        .map_err(|cause| BenchError::Start {
            program: step.program.display().to_string(),
            cause,
        })?;
    let after = CpuTicks::now();

    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(BenchError::Run {
            run: step.name.clone(),
            status: output.status.to_string(),
            command: shown(),
            output: format!("{printed}{}", String::from_utf8_lossy(&output.stderr)),
        });
    }
    let measured = Measurement::parse(&printed).map_err(|reason| BenchError::NoResult {
        run: step.name.clone(),
        reason,
        command: shown(),
    })?;
    Ok(Run {
        row: step.row.name,
        side: step.side,
        round: step.round,
        foreign_share: before
            .zip(after)
            .and_then(|(before, after)| after.foreign_share_since(before)),
        measured,
    })
}

fn outcome(run: &Run, row: &Row) -> String {
    let per_operation = |nanoseconds| as_f64(nanoseconds) / as_f64(run.measured.operations);
    let foreign = run
        .foreign_share
        .map_or("unknown".to_owned(), |share| format!("{:.0}%", share * 100.0));
    format!(
        "{:.1} CPU ns and {:.1} wall ns per {}, others took {foreign}",
        per_operation(run.measured.cpu_ns),
        per_operation(run.measured.wall_ns),
        row.unit,
    )
}
