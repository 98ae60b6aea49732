//! The table of a run, and whether the run passed.

use std::{fmt, time::Duration};

use crate::{faults::Fault, recovery::Recovery};

/// The maximum time by which our cache may be current later than client-go's.
const TOLERANCE: Duration = Duration::from_secs(1);

/// The results of all repetitions of one fault: ours, client-go's.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) fault: Fault,
    pub(crate) runs: Vec<[Recovery; 2]>,
}

/// The results of a run, as a Markdown table.
#[derive(Debug, Default)]
pub(crate) struct Report(pub(crate) Vec<Row>);

impl Report {
    /// Returns whether every row meets the target.
    pub(crate) fn passes(&self) -> bool {
        self.0.iter().all(Row::passes)
    }
}

impl Row {
    fn passes(&self) -> bool {
        self.runs.iter().all(|&[ours, theirs]| match (ours, theirs) {
            (Recovery::Current(ours), Recovery::Current(theirs)) => ours <= theirs + TOLERANCE,
            (Recovery::Current(_), Recovery::Late(_)) => true,
            (Recovery::Current(_), Recovery::Wrong(_)) => self.fault.replaces_history(),
            _ => false,
        })
    }

    fn cell(&self, follower: usize) -> String {
        let runs: Vec<String> = self.runs.iter().map(|run| run[follower].to_string()).collect();
        runs.join(", ")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| fault | watchkeeper | client-go | no later than client-go + 1 s, and right |")?;
        writeln!(f, "|---|---|---|---|")?;
        for row in &self.0 {
            let verdict = if row.passes() { "yes" } else { "**no**" };
            writeln!(f, "| {} | {} | {} | {verdict} |", row.fault.title(), row.cell(0), row.cell(1))?;
        }
        writeln!(f)?;
        writeln!(f, "Seconds until the cache was current; wrong: missing/stale/surplus objects.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Differences;

    fn passes(fault: Fault, ours: Recovery, theirs: Recovery) -> bool {
        Report(vec![Row { fault, runs: vec![[ours, theirs]] }]).passes()
    }

    #[test]
    fn a_row_passes_if_ours_is_right_and_at_most_a_second_later() {
        let after = |ms| Recovery::Current(Duration::from_millis(ms));
        let wrong = Recovery::Wrong(Differences { missing: 1, ..Differences::default() });
        let late = Recovery::Late(Duration::from_mins(3));
        assert!(passes(Fault::Kill, after(2_900), after(2_000)));
        assert!(!passes(Fault::Kill, after(3_100), after(2_000)));
        assert!(passes(Fault::Kill, after(3_100), late));
        assert!(!passes(Fault::Kill, late, late));
        assert!(!passes(Fault::RestoredPast, wrong, wrong));
        assert!(passes(Fault::RestoredPast, after(500), wrong));
        assert!(!passes(Fault::Restart, after(500), wrong), "the comparison itself is in doubt");
    }
}
