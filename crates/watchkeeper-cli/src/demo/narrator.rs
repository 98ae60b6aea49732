//! The output of the demonstration.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use tokio::time::Instant;

use crate::escape;

/// The actor of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    /// The user of the cluster.
    You,
    /// The API server and its built-in controllers.
    Cluster,
    /// The sample controller.
    Controller,
    /// The injection of faults.
    Fault,
}

impl Actor {
    fn name(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Cluster => "cluster",
            Self::Controller => "controller",
            Self::Fault => "fault",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::You => AnsiColor::Cyan.on_default().bold(),
            Self::Cluster => AnsiColor::Blue.on_default(),
            Self::Controller => AnsiColor::Green.on_default(),
            Self::Fault => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// Prints each step with the time since the start.
#[derive(Debug)]
pub(super) struct Narrator {
    began: Instant,
}

impl Narrator {
    #[expect(clippy::disallowed_methods, reason = "the demonstration shows elapsed real time")]
    pub(super) fn new() -> Self {
        Self { began: Instant::now() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Prints the heading of a part.
    pub(super) fn part(title: &str) -> io::Result<()> {
        let style = Style::new().bold();
        writeln!(anstream::stdout(), "\n{style}{title}{style:#}")
    }

    /// Prints a step.
    pub(super) fn say(&self, actor: Actor, what: &str) -> io::Result<()> {
        let dimmed = Style::new().dimmed();
        let style = actor.style();
        let seconds = self.elapsed().as_secs_f64();
        let mut out = anstream::stdout();
        writeln!(
            out,
            "{dimmed}{seconds:7.2}s{dimmed:#}  {style}{:<10}{style:#}  {}",
            actor.name(),
            escape::line(what)
        )?;
        out.flush()
    }

    /// Prints a line without a time.
    pub(super) fn note(text: &str) -> io::Result<()> {
        writeln!(anstream::stdout(), "{}", escape::lines(text))
    }
}
