//! A client that asks for one object again and again.

use std::{
    net::SocketAddr,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::http::{Input, Outcome, exchange, get};

/// Time between two requests.
const INTERVAL: Duration = Duration::from_millis(15);

/// The canary asks at least so often: with fewer answers the 99th percentile would be the slowest of them.
const LEAST: usize = 120;

/// The longest time the canary waits for one answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A canary at work.
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

    /// Stops the canary after at least [`LEAST`] requests. Returns the time within which it got 99 of 100 answers, and the
    /// number of answers.
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
