//! Instruction counts instead of times, which do not depend on the load of the machine.
//!
//! The row runs the plain row once more, in a process under Valgrind's callgrind, which counts only
//! instructions inside [`under_the_meter`].

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use tokio::runtime::Runtime;

use super::SUITE;
use crate::cli;
use crate::measure::{Measurement, Meter};
use crate::suite::{Figure, Load, RunFailure};

const INSTRUCTIONS: &str = "instructions_per_op";
/// The figure of rows that count instructions.
pub(super) const FIGURE: Figure = Figure::Named(INSTRUCTIONS);

/// Runs the measured part of a run. Callgrind finds this function by its name, so it must not be inlined.
#[inline(never)]
pub(super) fn under_the_meter<T>(runtime: &Runtime, part: impl Future<Output = T>) -> T {
    runtime.block_on(part)
}

pub(super) fn ours(row: &str, load: Load) -> Result<Measurement, RunFailure> {
    counted(cli::run_one_prefix(), row, load)
}

pub(super) fn peer(row: &str, load: Load) -> Result<Measurement, RunFailure> {
    counted(cli::run_peer_prefix(), row, load)
}

/// Returns whether instructions can be counted on this machine.
pub(crate) fn is_possible() -> bool {
    let version =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn counted(prefix: Vec<String>, row: &str, load: Load) -> Result<Measurement, RunFailure> {
    let meter = Meter::start();
    if !is_possible() {
        // Without a peer the row is not judged, and the harness has reported the reason.
        return Ok(meter.stop(load.operations).with_figure(INSTRUCTIONS, 0.0));
    }
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*count::under_the_meter*")
        .arg(std::env::current_exe()?)
        .args(prefix)
        .args([SUITE.name, row, &load.operations.to_string()])
        .output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind ended with {}: {report}", output.status).into());
    }
    let total = total(&report).ok_or_else(|| format!("no total in the output of valgrind: {report}"))?;
    let mut measured = meter.stop(load.operations);
    // The times are Valgrind's.
    measured.figures = BTreeMap::new();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people, far below 2^52")]
    let per_operation = total as f64 / load.operations as f64;
    Ok(measured.with_figure(INSTRUCTIONS, per_operation))
}

/// Parses the count in a line such as `==12== Collected : 123456`.
fn total(report: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok().filter(|total| *total > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_in_what_callgrind_prints() {
        let report =
            "==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n==7== I   refs:      1,234,567\n";
        assert_eq!(total(report), Some(1_234_567));
        assert_eq!(total("==7== Collected : 0\n"), None, "the part to be counted was never entered");
        assert_eq!(total("nothing of the kind"), None);
    }
}
