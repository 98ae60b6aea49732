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

/// The side of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    Ours,
    Peer,
}

/// A run with its measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) row: &'static str,
    pub(crate) side: Side,
    pub(crate) round: u32,
    /// The share of the machine's CPU time that other processes used during this run.
    pub(crate) foreign_share: Option<f64>,
    pub(crate) measured: Measurement,
}

/// A pending run.
#[derive(Debug)]
struct Step {
    row: &'static Row,
    side: Side,
    round: u32,
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// Performs every run of the plan, in an order that favours neither side.
pub(crate) fn run(plan: &Plan, peers: &Peers, programs: &Programs) -> Result<Vec<Run>, BenchError> {
    let start = |cause| BenchError::Start { program: "the harness".to_owned(), cause };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(start)?;

    let steps = steps(plan, peers, programs);
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

/// Returns the runs in order. Rounds are outermost, so that a change in the machine's load affects all rows
/// and both sides; within a row the first side alternates from round to round.
fn steps(plan: &Plan, peers: &Peers, programs: &Programs) -> Vec<Step> {
    let mut steps = Vec::new();
    for round in 1..=plan.rounds {
        for &row in &plan.rows {
            let load: [String; 3] =
                [plan.suite.name.to_owned(), row.name.to_owned(), plan.load(row).operations.to_string()];
            let step = |side, whose: &str, program: PathBuf, prefix: Vec<String>| Step {
                row,
                side,
                round,
                name: format!("round {round} {}/{} {whose}", plan.suite.name, row.name),
                program,
                arguments: prefix.into_iter().chain(load.clone()).map(OsString::from).collect(),
            };
            let ours = step(Side::Ours, "ours", programs.of(plan, row).to_owned(), cli::run_one_prefix());
            let peer = peers
                .of(row)
                .map(|peer| step(Side::Peer, peer.name, peer.program.clone(), peer.prefix.clone()));
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

fn command(step: &Step) -> Command {
    let mut command = Command::new(&step.program);
    command.args(&step.arguments).stdin(Stdio::null()).kill_on_drop(true);
    for variable in TUNING {
        command.env_remove(variable);
    }
    command
}

async fn execute(step: &Step) -> Result<Run, BenchError> {
    let shown = || {
        let arguments: Vec<_> = step.arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        format!("{} {}", step.program.display(), arguments.join(" "))
    };

    let before = CpuTicks::now();
    let output = tokio::time::timeout(TIME_LIMIT, command(step).output())
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
        row: step.row.name,
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
            side: Side::Peer,
            round: 1,
            name: "a run".to_owned(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
        }
    }

    fn execute_shell(script: &str) -> Result<Run, BenchError> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(execute(&shell(script)))
    }

    #[test]
    fn the_sides_take_turns_at_going_first() {
        let arguments = ["watchkeeper-bench", "queue", "--only", "lockstep,lateness", "--rounds", "2"];
        let plan = suite_plan(arguments);
        let peers = Peers(vec![Prepared {
            name: "client-go",
            version: String::new(),
            program: "/peer".into(),
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
        let command = command(&shell(""));
        let removed: Vec<_> = command.as_std().get_envs().filter(|(_, value)| value.is_none()).collect();
        for variable in ["GOGC", "GOMAXPROCS", "TOKIO_WORKER_THREADS"] {
            assert!(removed.iter().any(|(name, _)| *name == variable), "{variable} is passed on");
        }
    }
}
