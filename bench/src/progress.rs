//! How far the runs are: a bar on a terminal, a line per run elsewhere. Both on standard error.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

/// Shows runs as they start and finish.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    finished: u64,
}

impl Progress {
    /// Progress over `total` runs.
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

    /// A run starts.
    pub(crate) fn start(&self, run: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(run.to_owned());
            bar.tick();
        }
    }

    /// A run is over, with this outcome.
    pub(crate) fn finish(&mut self, run: &str, outcome: &str) {
        self.finished += 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => {
                // A closed standard error loses the remark, not the measurement.
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
