//! The server as a process.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::canary::now;

/// A server process, which is killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a server on a free port.
    pub(crate) fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
            .args(["serve", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .find_map(|line| {
                let line = line.unwrap();
                let (_, rest) = line.split_once("http://")?;
                let end = rest.find(|letter: char| !letter.is_ascii_digit() && !".:".contains(letter));
                rest[..end.unwrap_or(rest.len())].trim_end_matches('.').parse().ok()
            })
            .expect("the server prints its address");
        // Later output is read, so that the server never blocks on it.
        thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Returns the peak memory of the process so far, in MiB.
    pub(crate) fn peak_memory_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or_default() / 1024
    }

    /// Returns whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Stops the process, and returns how long that took; `None` if it exceeded `patience`.
    pub(crate) fn terminate(&mut self, patience: Duration) -> Option<Duration> {
        let start = now();
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let (ended, end) = std::sync::mpsc::channel::<()>();
        while self.is_running() {
            if now() - start > patience {
                return None;
            }
            // No message is ever sent: this is a wait between two checks.
            let _ = end.recv_timeout(Duration::from_millis(5));
        }
        drop(ended);
        Some(now() - start)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
