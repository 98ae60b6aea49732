//! Programs that are stopped by signals.
#![cfg(unix)]

use std::{
    process::{Command, id},
    sync::Arc,
};

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::Level;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_controller::{
    Action, Cause, Context, Controller, ReconcileError, Request, Triggers,
    manager::{Manager, ManagerError, RunError, Runnable, Signal},
};

use crate::logs::subscribe;

/// Makes the tests sequential, because each signal reaches the whole process.
static SIGNALS: Mutex<()> = Mutex::const_new(());

fn send_signal(name: &str) {
    let sent = Command::new("kill").args([name, &id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {name}");
}

#[tokio::test]
async fn a_controller_stops_in_order_after_one_signal_and_immediately_after_a_second() {
    let (_log, _subscribed) = subscribe(Level::WARN);
    let _sequential = SIGNALS.lock().await;
    let server = ApiServer::in_process();
    let started = Arc::new(Notify::new());
    for signal in ["-TERM", "-INT"] {
        let (triggers, starts, finish) = (Triggers::new(), Arc::clone(&started), Arc::new(Notify::new()));
        let finishes = Arc::clone(&finish);
        let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
            let (starts, finishes) = (Arc::clone(&starts), Arc::clone(&finishes));
            async move {
                if request.name() == "slow" {
                    starts.notify_one();
                    finishes.notified().await;
                    assert!(ctx.is_stopping());
                }
                Ok::<_, ReconcileError>(Action::done())
            }
        };
        triggers.send("default/slow".parse().unwrap(), Cause::Requeue);
        let running = Controller::<ConfigMap>::new(server.client()).channel(&triggers).run(reconcile);
        let signals = async {
            started.notified().await;
            send_signal(signal);
            // The controller waits for the running reconcile.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            finish.notify_one();
        };
        let (ended, ()) = tokio::join!(running, signals);
        ended.unwrap();
    }

    let triggers = Triggers::new();
    triggers.send("default/stuck".parse().unwrap(), Cause::Requeue);
    let starts = Arc::clone(&started);
    let stuck = move |request: Request<ConfigMap>, ctx: Context| {
        let starts = Arc::clone(&starts);
        async move {
            if request.name() == "stuck" {
                starts.notify_one();
                while !ctx.is_stopping() {
                    tokio::task::yield_now().await;
                }
                starts.notify_one();
                std::future::pending::<()>().await;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let running = Controller::<ConfigMap>::new(server.client()).channel(&triggers).run(stuck);
    let signals = async {
        started.notified().await;
        send_signal("-TERM");
        started.notified().await;
        send_signal("-INT");
    };
    let (ended, ()) = tokio::join!(running, signals);
    assert!(ended.unwrap_err().to_string().contains("second SIG"));
}

/// A runnable that reports its start and its stop request, and never ends if it is stuck.
struct ReportingRunnable {
    events: mpsc::UnboundedSender<&'static str>,
    is_stuck: bool,
}

impl Runnable for ReportingRunnable {
    fn name(&self) -> &'static str {
        "reporting"
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            let _ = self.events.send("runs");
            stop.cancelled().await;
            let _ = self.events.send("stops");
            if self.is_stuck {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }
}

async fn run(is_stuck: bool, signals: &[&str]) -> Result<(), ManagerError> {
    let server = ApiServer::in_process();
    let (events, mut reports) = mpsc::unbounded_channel();
    let mut manager = Manager::builder(server.client()).build();
    manager.add(ReportingRunnable { events, is_stuck }).expect("the name is unique");
    let sending = async {
        for name in signals {
            // Each signal is sent after the previous one has taken effect.
            reports.recv().await.expect("the runnable lives");
            send_signal(name);
        }
    };
    tokio::join!(manager.run(), sending).0
}

#[tokio::test]
async fn a_manager_stops_in_order_after_one_signal_and_immediately_after_a_second() {
    let (_log, _subscribed) = subscribe(Level::WARN);
    let _sequential = SIGNALS.lock().await;
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
