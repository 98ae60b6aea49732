//! Stop requests by signals.

use std::{future, io::Write as _, process, thread, time::Duration};

use tokio::sync::oneshot;

/// The exit code of a program that is interrupted while it stops.
const INTERRUPTED: i32 = 130;

/// Waits for a stop request: Ctrl-C, or on Unix SIGTERM. Never returns if signals cannot be received.
pub(crate) async fn requested() {
    Requests::new().next().await;
}

/// A stop request that ends the process if the program then exceeds its grace period, or at a second request.
///
/// Signals are received on a separate thread, so that this works even if all runtime threads are busy.
#[derive(Debug)]
#[must_use = "signals end the process by default once this is dropped"]
pub(crate) struct StopWithDeadline {
    is_asked: oneshot::Receiver<()>,
}

impl StopWithDeadline {
    /// Starts receiving signals.
    ///
    /// # Errors
    /// Returns the error of the operating system if the thread cannot be started.
    pub(crate) fn listen(grace: Duration) -> std::io::Result<Self> {
        let (asked, is_asked) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let requests = {
            let _entered = runtime.enter();
            Requests::new()
        };
        let wait = move || runtime.block_on(Self::watch(requests, asked, grace));
        thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
        Ok(Self { is_asked })
    }

    async fn watch(mut requests: Requests, asked: oneshot::Sender<()>, grace: Duration) {
        requests.next().await;
        // An error means that the program is no longer waiting, because it is already ending.
        let _ = asked.send(());
        let (code, reason) = tokio::select! {
            () = requests.next() => (INTERRUPTED, "interrupted again while stopping"),
            () = tokio::time::sleep(grace) => (1, "not stopped within the grace period"),
        };
        // The process ends whether or not this can be written.
        let _ = writeln!(anstream::stderr(), "error: {reason}; exiting");
        process::exit(code)
    }

    /// Waits for a stop request.
    pub(crate) async fn requested(self) {
        if self.is_asked.await.is_err() {
            future::pending::<()>().await;
        }
    }
}

/// The stop requests since the creation of this value.
struct Requests {
    #[cfg(unix)]
    signals: Option<[tokio::signal::unix::Signal; 2]>,
}

impl Requests {
    #[cfg(unix)]
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let both =
            || Ok::<_, std::io::Error>([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]);
        Self { signals: both().ok() }
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        let Some([interrupt, terminate]) = &mut self.signals else { return future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn new() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            future::pending::<()>().await;
        }
    }
}
