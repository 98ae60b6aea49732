//! The telling.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use tokio::time::Instant;

use crate::escape;

/// Who does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// Whoever uses the cluster.
    You,
    /// The API server and what belongs to it.
    Cluster,
    /// The sample controller.
    Controller,
    /// What breaks.
    Fault,
}

impl Voice {
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

/// Prints what happens, with the time since it began.
#[derive(Debug)]
pub(super) struct Narrator {
    began: Instant,
}

impl Narrator {
    #[expect(clippy::disallowed_methods, reason = "the clock of the story, which is told in real time")]
    pub(super) fn new() -> Self {
        Self { began: Instant::now() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// A part of the story begins.
    pub(super) fn part(title: &str) -> io::Result<()> {
        let style = Style::new().bold();
        writeln!(anstream::stdout(), "\n{style}{title}{style:#}")
    }

    /// Something happened.
    pub(super) fn say(&self, voice: Voice, what: &str) -> io::Result<()> {
        let dimmed = Style::new().dimmed();
        let style = voice.style();
        let seconds = self.elapsed().as_secs_f64();
        let mut out = anstream::stdout();
        writeln!(
            out,
            "{dimmed}{seconds:7.2}s{dimmed:#}  {style}{:<10}{style:#}  {}",
            voice.name(),
            escape::line(what)
        )?;
        out.flush()
    }

    /// A line without a time.
    pub(super) fn note(text: &str) -> io::Result<()> {
        writeln!(anstream::stdout(), "{}", escape::lines(text))
    }
}
