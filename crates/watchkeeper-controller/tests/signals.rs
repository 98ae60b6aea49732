//! A program that consists of one controller. This is a separate program, because a signal is sent to the
//! whole process.
#![cfg(unix)]

use std::{
    process::{Command, id},
    sync::Arc,
};

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::Notify;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_controller::{Action, Context, Controller, ReconcileError, Request, Triggers};

fn ask(signal: &str) {
    let asked = Command::new("kill").args([signal, &id().to_string()]).status();
    assert!(asked.is_ok_and(|status| status.success()), "kill {signal}");
}

/// Sequential, because each signal reaches the whole process.
#[tokio::test]
async fn a_program_ends_when_it_is_asked_and_at_once_when_it_is_asked_twice() {
    let server = ApiServer::in_process();
    let begun = Arc::new(Notify::new());
    for signal in ["-TERM", "-INT"] {
        let (triggers, begins, finish) = (Triggers::new(), Arc::clone(&begun), Arc::new(Notify::new()));
        let finishes = Arc::clone(&finish);
        let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
            let (begins, finishes) = (Arc::clone(&begins), Arc::clone(&finishes));
            async move {
                if request.name() == "slow" {
                    begins.notify_one();
                    finishes.notified().await;
                    assert!(ctx.is_stopping());
                }
                Ok::<_, ReconcileError>(Action::done())
            }
        };
        triggers.send("default/slow".parse().unwrap(), watchkeeper_controller::Cause::Requeue);
        let running = Controller::<ConfigMap>::new(server.client()).channel(&triggers).run(reconcile);
        let asking = async {
            begun.notified().await;
            ask(signal);
            // The controller waits for the running reconcile.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            finish.notify_one();
        };
        let (ended, ()) = tokio::join!(running, asking);
        ended.unwrap();
    }

    let triggers = Triggers::new();
    triggers.send("default/stuck".parse().unwrap(), watchkeeper_controller::Cause::Requeue);
    let begins = Arc::clone(&begun);
    let stuck = move |request: Request<ConfigMap>, ctx: Context| {
        let begins = Arc::clone(&begins);
        async move {
            if request.name() == "stuck" {
                begins.notify_one();
                while !ctx.is_stopping() {
                    tokio::task::yield_now().await;
                }
                begins.notify_one();
                std::future::pending::<()>().await;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let running = Controller::<ConfigMap>::new(server.client()).channel(&triggers).run(stuck);
    let asking = async {
        begun.notified().await;
        ask("-TERM");
        begun.notified().await;
        ask("-INT");
    };
    let (ended, ()) = tokio::join!(running, asking);
    assert!(ended.unwrap_err().to_string().contains("second SIG"));
}
