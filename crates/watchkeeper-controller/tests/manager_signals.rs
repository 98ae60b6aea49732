//! A manager that is stopped by signals. This is a separate program, because a signal is sent to the whole
//! process.
#![cfg(unix)]

use std::process::{Command, id};

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_controller::manager::{Manager, ManagerError, RunError, Runnable, Signal};

/// A runnable that reports its start and its stop request, and never ends if it is stuck.
struct Told {
    events: mpsc::UnboundedSender<&'static str>,
    is_stuck: bool,
}

impl Runnable for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            let _ = self.events.send("runs");
            stop.cancelled().await;
            let _ = self.events.send("is to stop");
            if self.is_stuck {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }
}

fn signal(name: &str) {
    let sent = Command::new("kill").args([name, &id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {name}");
}

async fn run(is_stuck: bool, signals: &[&str]) -> Result<(), ManagerError> {
    let server = ApiServer::in_process();
    let (events, mut told) = mpsc::unbounded_channel();
    let mut manager = Manager::builder(server.client()).build();
    manager.add(Told { events, is_stuck }).expect("a name of its own");
    let telling = async {
        for name in signals {
            // Each signal is sent after the previous one has taken effect.
            told.recv().await.expect("it runs");
            signal(name);
        }
    };
    tokio::join!(manager.run(), telling).0
}

/// Sequential, because each signal reaches the whole process.
#[tokio::test]
async fn one_signal_ends_a_manager_in_order_and_a_second_one_at_once() {
    for name in ["-TERM", "-INT"] {
        assert!(run(false, &[name]).await.is_ok(), "{name}");
    }
    let ended = run(true, &["-TERM", "-INT"]).await;
    assert!(
        matches!(&ended, Err(error @ ManagerError::Interrupted { signal: Signal::Interrupt }) if error.exit_code() == 130)
    );
    let ended = run(true, &["-INT", "-TERM"]).await;
    assert!(
        matches!(&ended, Err(error @ ManagerError::Interrupted { signal: Signal::Terminate }) if error.exit_code() == 143)
    );
}
