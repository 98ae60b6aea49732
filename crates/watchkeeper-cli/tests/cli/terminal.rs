//! The program on a pseudo terminal, and the text that a user sees on it.

use std::fs::File;

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::{io::AsyncReadExt as _, process::Child};

use crate::support::{PATIENCE, command};

/// A program whose output is a terminal of 100 columns and 8 lines.
pub(crate) struct OnTerminal {
    child: Child,
    output: tokio::fs::File,
    shown: Shown,
}

impl OnTerminal {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 8, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let programs_side = File::options().read(true).write(true).open(name).unwrap();
        let child = command(arguments).env("TERM", "xterm").stdout(programs_side).spawn().unwrap();
        Self { child, output: tokio::fs::File::from_std(File::from(terminal)), shown: Shown::default() }
    }

    /// Waits until the terminal shows the expected text, and returns its lines.
    pub(crate) async fn until(&mut self, is_shown: impl Fn(&[String]) -> bool) -> Vec<String> {
        let reading = async {
            let mut bytes = [0; 4096];
            while !(self.shown.is_whole() && is_shown(&self.shown.lines)) {
                let count = self.output.read(&mut bytes).await.expect("it still runs");
                self.shown.write(&bytes[..count]);
            }
        };
        let found = tokio::time::timeout(PATIENCE, reading).await;
        assert!(found.is_ok(), "not shown: {:#?}", self.shown.lines);
        self.shown.lines.clone()
    }

    /// Stops the program as Ctrl-C does, and returns its exit code.
    pub(crate) async fn interrupt(mut self) -> Option<i32> {
        let id = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(id, Signal::INT).unwrap();
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("it ends when it is asked to").unwrap().code()
    }
}

/// The content of a terminal after text, line ends and the three sequences that the program uses: move up by
/// some lines, clear the rest of the line, clear everything below.
#[derive(Default)]
struct Shown {
    lines: Vec<String>,
    line: usize,
    column: usize,
    /// The start of an incomplete sequence or character.
    pending: Vec<u8>,
}

impl Shown {
    /// Returns whether no sequence or character is incomplete.
    fn is_whole(&self) -> bool {
        self.pending.is_empty() && self.column == 0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.pending.push(byte);
            let Ok(text) = str::from_utf8(&self.pending) else { continue };
            let Some(done) = text.chars().last().filter(|last| is_end(text, *last)) else { continue };
            let parameter = text.strip_prefix("\x1b[").map(|rest| rest.trim_end_matches(done).to_owned());
            self.pending.clear();
            match parameter {
                Some(parameter) => self.control(done, &parameter),
                None => self.character(done),
            }
        }
    }

    fn character(&mut self, character: char) {
        match character {
            '\r' => self.column = 0,
            '\n' => (self.line, self.column) = (self.line + 1, 0),
            other => {
                let column = self.column;
                let line = self.current();
                let before: String = line.chars().take(column).collect();
                let after: String = line.chars().skip(column + 1).collect();
                *line = format!("{before}{other}{after}");
                self.column += 1;
            }
        }
    }

    fn control(&mut self, command: char, parameter: &str) {
        match command {
            'A' => self.line = self.line.checked_sub(parameter.parse().unwrap()).expect("not above the top"),
            'K' => {
                let column = self.column;
                let rest = self.current();
                *rest = rest.chars().take(column).collect();
            }
            'J' => self.lines.truncate(self.line),
            other => panic!("the program sent an unknown sequence: ESC [ {parameter} {other}"),
        }
    }

    fn current(&mut self) -> &mut String {
        if self.lines.len() <= self.line {
            self.lines.resize(self.line + 1, String::new());
        }
        &mut self.lines[self.line]
    }
}

/// Returns whether a character, or the sequence that it ends, is complete.
fn is_end(text: &str, last: char) -> bool {
    !text.starts_with('\x1b') || (text.len() > 2 && last.is_ascii_alphabetic())
}
