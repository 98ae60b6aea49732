//! Progress of the runs on standard error: a bar on a terminal, a line per run elsewhere.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

/// A display of runs as they start and finish.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    finished: u64,
}

impl Progress {
    /// Creates a display for `total` runs.
    pub(crate) fn new(total: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, total, finished: 0 }
    }

    /// Shows the start of a run.
    pub(crate) fn start(&self, run: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(run.to_owned());
            bar.tick();
        }
    }

    /// Shows the end of a run, with its outcome.
    pub(crate) fn finish(&mut self, run: &str, outcome: &str) {
        self.finished += 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => {
                // If standard error is closed, the note is lost but not the measurement.
                let _ = writeln!(io::stderr(), "[{}/{}] {run}: {outcome}", self.finished, self.total);
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
