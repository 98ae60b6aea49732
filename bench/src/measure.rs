//! The result of one run, and the meter of its timed part.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{clock, heap, machine};

/// The result of one run: the JSON line that a run prints, ours and a peer's alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// The number of operations in the timed part.
    pub(crate) operations: u64,
    /// The wall time of the timed part.
    pub(crate) wall_ns: u64,
    /// The CPU time of the whole process, user and system, during the timed part.
    pub(crate) cpu_ns: u64,
    /// The peak resident memory of the process, including preparation.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// The heap bytes of the structure under test, for rows that measure it.
    pub(crate) live_heap_bytes: Option<u64>,
    /// Further figures, by name with unit.
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, f64>,
}

impl Measurement {
    /// Parses the line that a run printed.
    pub(crate) fn parse(output: &str) -> Result<Self, String> {
        let mut lines = output.lines().filter(|line| !line.trim().is_empty());
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return Err(format!("want one line of JSON, got {}", output.lines().count()));
        };
        let measured: Self = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if measured.operations == 0 {
            return Err("the run reports no operations".to_owned());
        }
        Ok(measured)
    }

    /// Adds a further figure.
    pub(crate) fn with_figure(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }
}

/// A meter of the timed part of a run of ours.
#[derive(Debug)]
pub(crate) struct Meter {
    wall: Instant,
    cpu: Duration,
    allocations: u64,
}

impl Meter {
    /// Starts the timed part.
    pub(crate) fn start() -> Self {
        Self { allocations: heap::allocations(), cpu: clock::process_cpu(), wall: clock::wall() }
    }

    /// Ends the timed part after `operations`.
    pub(crate) fn stop(self, operations: u64) -> Measurement {
        let wall = clock::wall().duration_since(self.wall);
        let cpu = clock::process_cpu().saturating_sub(self.cpu);
        let allocations = heap::allocations() - self.allocations;
        let measured = Measurement {
            operations,
            wall_ns: nanoseconds(wall),
            cpu_ns: nanoseconds(cpu),
            peak_rss_bytes: machine::peak_rss_bytes(),
            live_heap_bytes: None,
            figures: BTreeMap::new(),
        };
        // Starting a process allocates, so a count of zero means that nothing is counted.
        if heap::allocations() == 0 {
            return measured;
        }
        let per_operation = machine::as_f64(allocations) / machine::as_f64(operations.max(1));
        measured.with_figure("allocations_per_op", per_operation)
    }
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_run_is_read_with_and_without_its_optional_parts() {
        let full = r#"{"operations":10,"wall_ns":200,"cpu_ns":100,"peak_rss_bytes":4096,
            "live_heap_bytes":640,"figures":{"late_p99_ms":1.5}}"#
            .replace('\n', " ");
        let measured = Measurement::parse(&full).unwrap();
        assert_eq!(measured.live_heap_bytes, Some(640));
        assert_eq!(measured.figures["late_p99_ms"].to_bits(), 1.5_f64.to_bits());

        let bare =
            r#"{"operations":10,"wall_ns":200,"cpu_ns":100,"peak_rss_bytes":null,"live_heap_bytes":null}"#;
        let measured = Measurement::parse(&format!("{bare}\n\n")).unwrap();
        assert_eq!(
            (measured.operations, measured.wall_ns, measured.cpu_ns, measured.peak_rss_bytes),
            (10, 200, 100, None)
        );
        assert!(measured.figures.is_empty());
    }

    #[test]
    fn a_line_that_is_no_result_is_refused() {
        let zero = r#"{"operations":0,"wall_ns":1,"cpu_ns":1,"peak_rss_bytes":null,"live_heap_bytes":null}"#;
        let cases = [
            ("nothing", String::new()),
            ("not JSON", "ready\n".to_owned()),
            ("a field missing", r#"{"operations":1,"wall_ns":1}"#.to_owned()),
            ("a negative time", r#"{"operations":1,"wall_ns":-1,"cpu_ns":1}"#.to_owned()),
            ("two lines", format!("{zero}\n{zero}\n").replace(":0,", ":1,")),
            ("no operations", zero.to_owned()),
        ];
        for (case, output) in cases {
            assert!(Measurement::parse(&output).is_err(), "{case} was taken for a result");
        }
    }

    #[test]
    fn the_output_of_a_run_is_parsed_by_the_harness() {
        let measured = Meter { wall: clock::wall(), cpu: clock::process_cpu(), allocations: 0 };
        let mut measured = measured.stop(4);
        measured.figures = BTreeMap::new();
        let measured = measured.with_figure("late_max_ms", 0.25);
        let line = serde_json::to_string(&measured).unwrap();
        assert_eq!(Measurement::parse(&line).unwrap(), measured);
    }
}
