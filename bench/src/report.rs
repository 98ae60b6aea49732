//! The report: medians with their range as a table, one verdict per row, and everything as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::cli::Plan;
use crate::error::BenchError;
use crate::machine::as_f64;
use crate::peer::{Peers, Prepared};
use crate::runner::{OURS, Run};
use crate::stats::Spread;
use crate::suite::{Figure, Row, Runs};
use crate::verdict::{self, Verdict};

/// The share of CPU time used by others above which wall times are unreliable.
const NOISY_SHARE: f64 = 0.05;
const MIB: f64 = 1024.0 * 1024.0;

/// The summarized and judged runs of a suite.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    suite: &'static str,
    quick: bool,
    rounds: u32,
    cpus: Option<usize>,
    peers: BTreeMap<&'static str, String>,
    rows: Vec<Summary>,
    runs: Vec<Run>,
}

/// The summary and verdict of a row.
#[derive(Debug, Serialize)]
struct Summary {
    row: &'static str,
    #[serde(skip)]
    runs: Runs,
    unit: &'static str,
    target: String,
    #[serde(flatten)]
    verdict: Verdict,
    line: String,
    ours: Figures,
    peer: Option<PeerFigures>,
}

#[derive(Debug, Serialize)]
struct PeerFigures {
    name: &'static str,
    #[serde(flatten)]
    figures: Figures,
}

/// The figures of one side of a row over all rounds, per operation if the name ends in `_per_op`.
#[derive(Debug, Serialize)]
struct Figures {
    wall_ns_per_op: Option<Spread>,
    cpu_ns_per_op: Option<Spread>,
    live_bytes_per_op: Option<Spread>,
    peak_rss_mib: Option<Spread>,
    foreign_share: Option<Spread>,
    further: BTreeMap<String, Spread>,
}

impl Figures {
    fn of(runs: &[&Run]) -> Self {
        let per_op = |run: &Run, count: u64| as_f64(count) / as_f64(run.measured.operations);
        let names = runs.iter().flat_map(|run| run.measured.figures.keys().cloned());
        let further = names.filter_map(|name| {
            let spread = Spread::of_all(runs.iter().map(|run| run.measured.figures.get(&name).copied()))?;
            Some((name, spread))
        });
        Self {
            wall_ns_per_op: Spread::of(runs.iter().map(|run| per_op(run, run.measured.wall_ns))),
            cpu_ns_per_op: Spread::of(runs.iter().map(|run| per_op(run, run.measured.cpu_ns))),
            live_bytes_per_op: Spread::of_all(
                runs.iter().map(|run| run.measured.live_heap_bytes.map(|bytes| per_op(run, bytes))),
            ),
            peak_rss_mib: Spread::of_all(
                runs.iter().map(|run| run.measured.peak_rss_bytes.map(|bytes| as_f64(bytes) / MIB)),
            ),
            foreign_share: Spread::of_all(runs.iter().map(|run| run.foreign_share)),
            further: further.collect(),
        }
    }

    fn compared(&self, figure: Figure) -> Result<f64, String> {
        let (spread, name) = match figure {
            Figure::CpuPerOperation => (self.cpu_ns_per_op, "CPU time"),
            Figure::LiveBytesPerOperation => (self.live_bytes_per_op, "live heap bytes"),
            Figure::Named(name) => (self.further.get(name).copied(), name),
        };
        spread.map(|spread| spread.median).ok_or_else(|| format!("a run did not report {name}"))
    }
}

impl Summary {
    fn of(suite: &str, row: &'static Row, peer: Option<&Prepared>, runs: &[Run]) -> Result<Self, String> {
        let side = |side, name| {
            let runs: Vec<&Run> = runs.iter().filter(|run| run.name == name && run.side == side).collect();
            Figures::of(&runs)
        };
        let of = row.runs();
        let ours = side(OURS, of.ours);
        let peer = peer.map(|peer| PeerFigures { name: peer.name, figures: side(peer.name, of.peer) });
        let compared_peer = peer.as_ref().map(|peer| peer.figures.compared(row.figure)).transpose()?;
        let verdict = verdict::judge(row.target, ours.compared(row.figure)?, compared_peer)?;
        let line = verdict::line(suite, row.name, row.target, verdict);
        Ok(Self {
            row: row.name,
            runs: of,
            unit: row.unit,
            target: row.target.to_string(),
            verdict,
            line,
            ours,
            peer,
        })
    }
}

impl Report {
    /// Summarizes and judges the runs of a plan.
    pub(crate) fn new(plan: &Plan, peers: &Peers, runs: Vec<Run>) -> Result<Self, BenchError> {
        let summary = |&row: &&'static Row| {
            Summary::of(plan.suite.name, row, peers.of(row), &runs)
                .map_err(|reason| BenchError::Unjudged { row: row.name, reason })
        };
        Ok(Self {
            suite: plan.suite.name,
            quick: plan.quick,
            rounds: plan.rounds,
            cpus: std::thread::available_parallelism().ok().map(usize::from),
            peers: peers.iter().map(|peer| (peer.name, peer.version.clone())).collect(),
            rows: plan.rows.iter().map(summary).collect::<Result<_, _>>()?,
            runs,
        })
    }

    /// Returns whether a target is missed.
    pub(crate) fn is_short(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.verdict, Verdict::Short { .. }))
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header([
            "row",
            "side",
            "CPU ns/op",
            "wall ns/op",
            "bytes/op",
            "peak MiB",
            "others' CPU %",
            "further",
        ]);
        for column in table.column_iter_mut().skip(2).take(5) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        // Rows that share runs share their lines.
        let mut shown = Vec::new();
        let mut add = |run, unit: &str, side, figures: &Figures| {
            if !shown.contains(&(run, side)) {
                shown.push((run, side));
                table.add_row(cells(&format!("{run} (op = {unit})"), side, figures));
            }
        };
        for row in &self.rows {
            add(row.runs.ours, row.unit, OURS, &row.ours);
            if let Some(peer) = &row.peer {
                add(row.runs.peer, row.unit, peer.name, &peer.figures);
            }
        }
        table
    }
}

/// Writes everything as JSON, including the single runs.
pub(crate) fn write_json(reports: &[Report], out: File) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, reports)?;
    writeln!(out)?;
    out.flush()
}

/// Formats the table, a note if the machine was busy, then exactly one line per row.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "suite {}, {} rounds: median (min-max)", self.suite, self.rounds)?;
        writeln!(f, "{}", self.table())?;
        let is_noisy = |run: &&Run| run.foreign_share.is_some_and(|share| share > NOISY_SHARE);
        let noisy = self.runs.iter().filter(is_noisy).count();
        if noisy > 0 {
            writeln!(
                f,
                "note: in {noisy} of {} runs others took more than {:.0}% of the machine; read CPU time and memory, not wall time.",
                self.runs.len(),
                NOISY_SHARE * 100.0,
            )?;
        }
        self.rows.iter().try_for_each(|row| writeln!(f, "{}", row.line))
    }
}

fn cells(row: &str, side: &str, figures: &Figures) -> Vec<String> {
    let percent = |share: Spread| Spread {
        median: share.median * 100.0,
        min: share.min * 100.0,
        max: share.max * 100.0,
    };
    let further: Vec<String> =
        figures.further.iter().map(|(name, spread)| format!("{name} {}", shown(*spread))).collect();
    let optional = |spread: Option<Spread>| spread.map_or_else(|| "-".to_owned(), shown);
    vec![
        row.to_owned(),
        side.to_owned(),
        optional(figures.cpu_ns_per_op),
        optional(figures.wall_ns_per_op),
        optional(figures.live_bytes_per_op),
        optional(figures.peak_rss_mib),
        optional(figures.foreign_share.map(percent)),
        further.join("; "),
    ]
}

fn shown(spread: Spread) -> String {
    format!("{} ({}-{})", number(spread.median), number(spread.min), number(spread.max))
}

/// Formats a number with about three significant digits: more would suggest a precision that the runs do not
/// have.
fn number(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measurement;

    fn run(side: &'static str, round: u32, cpu_ns: u64, foreign_share: Option<f64>, p99: Option<f64>) -> Run {
        let measured = Measurement {
            operations: 10,
            wall_ns: cpu_ns * 2,
            cpu_ns,
            peak_rss_bytes: None,
            live_heap_bytes: Some(640),
            figures: p99.map(|value| ("late_p99_ms".to_owned(), value)).into_iter().collect(),
        };
        Run { name: "row", side, round, foreign_share, measured }
    }

    #[test]
    fn figures_are_medians_per_operation() {
        let runs = [
            run(OURS, 1, 500, Some(0.5), Some(1.0)),
            run(OURS, 2, 100, Some(0.1), Some(3.0)),
            run(OURS, 3, 300, None, Some(2.0)),
        ];
        let figures = Figures::of(&runs.iter().collect::<Vec<_>>());
        assert_eq!(figures.cpu_ns_per_op, Some(Spread { median: 30.0, min: 10.0, max: 50.0 }));
        assert_eq!(figures.wall_ns_per_op, Some(Spread { median: 60.0, min: 20.0, max: 100.0 }));
        assert_eq!(figures.live_bytes_per_op, Some(Spread { median: 64.0, min: 64.0, max: 64.0 }));
        assert_eq!(figures.foreign_share, None, "one run could not tell");
        assert_eq!(figures.compared(Figure::Named("late_p99_ms")), Ok(2.0));
        assert_eq!(figures.compared(Figure::CpuPerOperation), Ok(30.0));
        assert_eq!(figures.compared(Figure::LiveBytesPerOperation), Ok(64.0));
    }

    #[test]
    fn a_compared_figure_that_a_run_lacks_is_an_error() {
        let runs = [run(OURS, 1, 1, None, Some(1.0)), run(OURS, 2, 1, None, None)];
        let figures = Figures::of(&runs.iter().collect::<Vec<_>>());
        assert_eq!(
            figures.compared(Figure::Named("late_p99_ms")),
            Err("a run did not report late_p99_ms".to_owned())
        );
    }

    #[test]
    fn numbers_keep_about_three_digits() {
        let cases = [(0.0, "0.00"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (-12.34, "-12.3")];
        for (value, want) in cases {
            assert_eq!(number(value), want);
        }
    }
}
