//! Execution of a plan: every run in a new process, alternating between ours and the peer's, one at a time.

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
use crate::programs::Programs;
use crate::progress::Progress;
use crate::replay::Replay;
use crate::suite::Row;

/// The time limit of a run. The longest row, `apiserver/paging`, stores 100,000 pods first and takes three
/// minutes on two idle cores; a run that reaches the limit hangs.
const TIME_LIMIT: Duration = Duration::from_mins(20);

/// Environment variables that tune a runtime, and would make runs on two machines, or of two sides, differ
/// silently.
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

/// The side of our runs. The side of a peer's runs is the name of the peer.
pub(crate) const OURS: &str = "ours";

/// A run with its measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    /// The name of the run: that of the row, unless rows share it.
    #[serde(rename = "run")]
    pub(crate) name: &'static str,
    pub(crate) side: &'static str,
    pub(crate) round: u32,
    /// The share of the machine's CPU time that other processes used during this run.
    pub(crate) foreign_share: Option<f64>,
    pub(crate) measured: Measurement,
}

/// A pending run.
#[derive(Debug)]
struct Step {
    row: &'static Row,
    run: &'static str,
    side: &'static str,
    round: u32,
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// Performs every run of the plan, in an order that favours neither side.
pub(crate) fn run(
    plan: &Plan,
    peers: &Peers,
    programs: &Programs,
    replay: Option<&Replay>,
) -> Result<Vec<Run>, BenchError> {
    let start = |cause| BenchError::Start { program: "the harness".to_owned(), cause };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(start)?;

    let steps = steps(plan, peers, programs);
    let mut progress = Progress::new(steps.len() as u64);
    let mut runs = Vec::with_capacity(steps.len());
    for step in steps {
        progress.start(&step.name);
        let run = runtime.block_on(execute(&step, replay))?;
        progress.finish(&step.name, &outcome(&run, step.row));
        runs.push(run);
    }
    Ok(runs)
}

/// Returns the runs in order. Rounds are outermost, so that a change in the machine's load affects all rows
/// and both sides; within a row the first side alternates from round to round. A run that several rows share is
/// made where the first of them needs it.
fn steps(plan: &Plan, peers: &Peers, programs: &Programs) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for round in 1..=plan.rounds {
        for &row in &plan.rows {
            let operations = plan.load(row).operations.to_string();
            let step = |side, run, variant: &str, program: PathBuf, prefix: Vec<String>| {
                let load = [plan.suite.name.to_owned(), format!("{run}{variant}"), operations.clone()];
                Step {
                    row,
                    run,
                    side,
                    round,
                    name: format!("round {round} {}/{run} {side}", plan.suite.name),
                    program,
                    arguments: prefix.into_iter().chain(load).map(OsString::from).collect(),
                }
            };
            let runs = row.runs();
            let ours = step(OURS, runs.ours, "", programs.of(plan, row).to_owned(), cli::run_one_prefix());
            let peer = peers.of(row).map(|peer| {
                let program = peer.program.as_deref().unwrap_or_else(|| programs.of(plan, row));
                step(peer.name, runs.peer, peer.variant, program.to_owned(), peer.prefix.clone())
            });
            let both = [Some(ours), peer];
            let both: Vec<_> = if round % 2 == 1 { both.into() } else { both.into_iter().rev().collect() };
            for step in both.into_iter().flatten() {
                let is_same = |other: &Step| {
                    (other.round, other.side, &other.arguments) == (round, step.side, &step.arguments)
                };
                if !steps.iter().any(is_same) {
                    steps.push(step);
                }
            }
        }
    }
    steps
}

fn command(step: &Step, replay: Option<&Replay>) -> Command {
    let mut command = match replay {
        Some(replay) => replay.client(&step.program),
        None => Command::new(&step.program),
    };
    command.args(&step.arguments).stdin(Stdio::null()).kill_on_drop(true);
    for variable in TUNING {
        command.env_remove(variable);
    }
    command
}

async fn execute(step: &Step, replay: Option<&Replay>) -> Result<Run, BenchError> {
    let shown = || {
        let arguments: Vec<_> = step.arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        format!("{} {}", step.program.display(), arguments.join(" "))
    };

    let before = CpuTicks::now();
    let output = tokio::time::timeout(TIME_LIMIT, command(step, replay).output())
        .await
        .map_err(|_| BenchError::TimeLimit { run: step.name.clone(), limit: TIME_LIMIT, command: shown() })?
        .map_err(|cause| BenchError::Start { program: step.program.display().to_string(), cause })?;
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
        name: step.run,
        side: step.side,
        round: step.round,
        foreign_share: before.zip(after).and_then(|(before, after)| after.foreign_share_since(before)),
        measured,
    })
}

fn outcome(run: &Run, row: &Row) -> String {
    let per_operation = |nanoseconds| as_f64(nanoseconds) / as_f64(run.measured.operations);
    let foreign = run.foreign_share.map_or("unknown".to_owned(), |share| format!("{:.0}%", share * 100.0));
    format!(
        "{:.1} CPU ns and {:.1} wall ns per {}, others took {foreign}",
        per_operation(run.measured.cpu_ns),
        per_operation(run.measured.wall_ns),
        row.unit,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Prepared;

    fn suite_plan<const N: usize>(arguments: [&str; N]) -> Plan {
        match cli::parse_from(arguments).unwrap() {
            cli::Request::Suites { mut plans, .. } => plans.remove(0),
            other => panic!("a suite was asked for, not {other:?}"),
        }
    }

    fn shell(script: &str) -> Step {
        let plan = suite_plan(["watchkeeper-bench", "queue"]);
        Step {
            row: plan.rows[0],
            run: plan.rows[0].name,
            side: "a peer",
            round: 1,
            name: "a run".to_owned(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
        }
    }

    fn execute_shell(script: &str) -> Result<Run, BenchError> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(execute(&shell(script), None))
    }

    #[test]
    fn the_sides_take_turns_at_going_first() {
        let arguments = ["watchkeeper-bench", "queue", "--only", "lockstep,lateness", "--rounds", "2"];
        let plan = suite_plan(arguments);
        let peers = Peers(vec![Prepared {
            name: "client-go",
            version: String::new(),
            variant: "",
            program: Some("/peer".into()),
            prefix: Vec::new(),
        }]);
        let order: Vec<String> = steps(&plan, &peers, &Programs::for_test("/ours", None))
            .iter()
            .map(|step| {
                let arguments: Vec<_> = step.arguments.iter().map(|text| text.to_string_lossy()).collect();
                format!("{} {}", step.program.display(), arguments.join(" "))
            })
            .collect();
        let want = [
            "/ours run-one queue lockstep 1000000",
            "/peer queue lockstep 1000000",
            "/ours run-one queue lateness 1000000",
            "/peer queue lateness 1000000",
            "/peer queue lockstep 1000000",
            "/ours run-one queue lockstep 1000000",
            "/peer queue lateness 1000000",
            "/ours run-one queue lateness 1000000",
        ];
        assert_eq!(order, want);
    }

    #[test]
    fn a_run_that_fails_is_an_error_with_what_it_said() {
        let error = execute_shell("echo half a result; echo out of memory >&2; exit 3").unwrap_err();
        let text = error.to_string();
        for part in ["a run failed", "exit status: 3", "half a result", "out of memory", "/bin/sh -c"] {
            assert!(text.contains(part), "{part:?} is missing from: {text}");
        }
    }

    #[test]
    fn a_run_that_succeeds_without_a_result_is_an_error() {
        let error = execute_shell("echo done").unwrap_err();
        assert!(error.to_string().contains("a run printed no result"), "{error}");
    }

    #[test]
    fn a_result_counts_whatever_the_run_said_beside_it() {
        let result =
            r#"{"operations":2,"wall_ns":4,"cpu_ns":6,"peak_rss_bytes":null,"live_heap_bytes":null}"#;
        let run = execute_shell(&format!("echo remark >&2; echo '{result}'")).unwrap();
        assert_eq!((run.measured.operations, run.measured.cpu_ns), (2, 6));
    }

    #[test]
    fn runtime_tuning_of_the_caller_is_not_passed_on() {
        let command = command(&shell(""), None);
        let removed: Vec<_> = command.as_std().get_envs().filter(|(_, value)| value.is_none()).collect();
        for variable in ["GOGC", "GOMAXPROCS", "TOKIO_WORKER_THREADS"] {
            assert!(removed.iter().any(|(name, _)| *name == variable), "{variable} is passed on");
        }
    }
}
