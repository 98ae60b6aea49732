//! A client that reads one object continuously.

use std::{
    net::SocketAddr,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::http::{Input, Outcome, exchange, get};

/// The time between two requests.
const INTERVAL: Duration = Duration::from_millis(15);

/// The minimum number of requests: with fewer, the 99th percentile would be the slowest response.
const LEAST: usize = 120;

/// The maximum time that the canary waits for a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running canary.
#[must_use]
pub(crate) struct Canary {
    stop: mpsc::Sender<()>,
    answers: mpsc::Receiver<()>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Canary {
    /// Starts a canary.
    pub(crate) fn start(address: SocketAddr) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (answered, answers) = mpsc::channel();
        let thread = thread::spawn(move || {
            let Input::Request(request) = get("/api/v1/namespaces/default", "") else { return Vec::new() };
            let mut times = Vec::new();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(INTERVAL) {
                let start = now();
                let outcome = exchange(address, &request, PATIENCE);
                let is_answer = outcome == Outcome::Status(200);
                times.push(if is_answer { now() - start } else { PATIENCE });
                let _ = answered.send(());
            }
            times
        });
        Self { stop, answers, thread }
    }

    /// Stops the canary after at least [`LEAST`] requests. Returns the 99th percentile of its response times,
    /// and the number of responses.
    pub(crate) fn stop(self) -> (Duration, usize) {
        for () in self.answers.iter().take(LEAST) {}
        drop(self.stop);
        let mut times = self.thread.join().unwrap();
        times.sort_unstable();
        let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
        (times.get(place).copied().unwrap_or(PATIENCE), times.len())
    }
}

#[expect(clippy::disallowed_methods, reason = "measures another process, which has no other clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
