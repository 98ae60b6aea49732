//! The sample controller: creates and scales a Deployment for each Foo, and reports the available replicas in its status.
//!
//! `cargo run -p watchkeeper-examples --bin sample_controller`
//!
//! Read `crates/watchkeeper-cli/src/sample/reconcile.rs`; `watchkeeper demo` runs the same controller. On a cluster this installs the definition of Foo and runs until Ctrl-C; the definition stays. It then serves probes on port
//! 8081 and metrics on 127.0.0.1:8080, and has the flags of a controller program: `--help`. Without a cluster it creates a
//! Foo, scales it, deletes it and ends.

use std::{
    io::{self, Write},
    time::Duration,
};

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use watchkeeper::prelude::*;
use watchkeeper_cli::sample::{self, Foo, FooSpec};
use watchkeeper_examples::{Connection, Failure, Outcome};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Outcome {
    // The manager contains what controllers share (client, caches, events, metrics), and starts and stops them in order.
    let (connection, mut manager) = Connection::with_manager(sample::NAME).await?;
    let client = connection.client();
    sample::install(client).await?;
    sample::await_served(client, PATIENCE).await?;

    let factory = manager.factory().clone();
    let controller = sample::controller(&factory, manager.recorder(sample::NAME));
    manager.add(controller.reconcile_with(sample::reconcile))?;
    let (foos, deployments) = (factory.informer::<Foo>(), factory.informer::<Deployment>());
    let mut deletions = print_changes(&foos, &deployments)?;

    if connection.server().is_none() {
        writeln!(io::stdout(), "running until Ctrl-C")?;
        return Ok(manager.run().await?);
    }
    let stop = CancellationToken::new();
    let scenario = async {
        let done = run_scenario(client, &mut deletions).await;
        stop.cancel();
        done
    };
    let (ended, done) = tokio::join!(manager.run_until(stop.clone()), scenario);
    done?;
    ended?;
    writeln!(io::stdout(), "next: ingress_manager, a controller for a built-in kind")?;
    Ok(())
}

/// Prints the events of the controller's own informers, which the factory shares. Returns the deleted Deployments.
fn print_changes(
    foos: &SharedIndexInformer<Foo>,
    deployments: &SharedIndexInformer<Deployment>,
) -> Result<mpsc::UnboundedReceiver<String>, Failure> {
    foos.add_handler(|event: &Event<Foo>| {
        // A Foo that cannot be decoded is reported as quarantined by the informer.
        let Ok(foo) = event.object().get() else { return };
        let available = foo.status.as_ref().map_or(0, |status| status.available_replicas);
        let state = format!("Foo {} wants {}, has {available}", foo.name_any(), foo.spec.replicas);
        print(event, &state);
    })?;
    let (deleted, deletions) = mpsc::unbounded_channel();
    deployments.add_handler(move |event: &Event<Deployment>| {
        let name = event.object().metadata().name();
        if let Ok(deployment) = event.object().get() {
            print(event, &format!("Deployment {name} of {}", sample::replicas(&deployment)));
        }
        if matches!(event, Event::Deleted(_)) {
            // An error means that the lab has ended.
            let _ = deleted.send(name.to_owned());
        }
    })?;
    Ok(deletions)
}

fn print<K>(event: &Event<K>, state: &str) {
    let what = match event {
        Event::Added { .. } => "added",
        Event::Updated { .. } => "updated",
        Event::Synced(_) => "unchanged",
        Event::Deleted(_) => "deleted",
    };
    // Standard output may be closed.
    let _ = writeln!(io::stdout(), "{what}: {state}");
}

/// Changes a Foo, and waits for the reaction of the controller.
async fn run_scenario(client: &Client, deletions: &mut mpsc::UnboundedReceiver<String>) -> Outcome {
    let foos = client.resource::<Foo>().namespace("default");
    let deployments = client.resource::<Deployment>().namespace("default");
    let of = |replicas| {
        let is_of = move |it: Option<&Deployment>| it.is_some_and(|it| sample::replicas(it) == replicas);
        wait::described(format!("a Deployment of {replicas} replicas"), is_of)
    };

    let foo = Foo::new("example-foo", FooSpec { deployment_name: "example-foo".to_owned(), replicas: 1 });
    foos.create(&PostParams::default(), &foo).await?;
    deployments.await_condition("example-foo", of(1), PATIENCE).await?;

    let scale = Patch::Merge(json!({"spec": {"replicas": 2}}));
    foos.patch("example-foo", &PatchParams::default(), &scale).await?;
    deployments.await_condition("example-foo", of(2), PATIENCE).await?;

    // The embedded server starts no pods. The lab sets the status that the Deployment controller would set.
    let started =
        Patch::Merge(json!({"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}));
    deployments.patch_status("example-foo", &PatchParams::default(), &started).await?;
    foos.await_condition("example-foo", wait::condition_true(sample::READY), PATIENCE).await?;

    foos.delete("example-foo", &DeleteParams::background()).await?;
    deployments.await_condition("example-foo", wait::deleted(), PATIENCE).await?;
    // The informer observes the deletion a moment later, and its handler prints it.
    tokio::time::timeout(PATIENCE, deletions.recv()).await?.ok_or("the informer was stopped")?;
    Ok(())
}
