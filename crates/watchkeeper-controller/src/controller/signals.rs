//! The program is asked to end.

/// The program was asked to end again, before it had.
#[derive(Debug, thiserror::Error)]
#[error("asked to end a second time; what was running was dropped")]
pub(super) struct AskedTwice;

/// What asks a program to end: Ctrl-C, and SIGTERM where there are signals. Listened to from when it is made, so that none is
/// missed between two waits.
pub(super) struct EndSignals {
    #[cfg(unix)]
    listening: [Option<tokio::signal::unix::Signal>; 2],
}

impl EndSignals {
    #[cfg(unix)]
    pub(super) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        // One that cannot be listened to never comes.
        Self { listening: [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok()) }
    }

    #[cfg(not(unix))]
    pub(super) fn listen() -> Self {
        Self {}
    }

    /// Returns when the program is asked to end, again if it was before.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.listening;
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}
