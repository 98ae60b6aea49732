//! The sample controller: a Foo wants a Deployment of a name and size, gets it, and says how many replicas are there.
//!
//! `cargo run -p watchkeeper-examples --bin sample_controller`
//!
//! The controller itself is shared with `watchkeeper demo`: `crates/watchkeeper-cli/src/sample/reconcile.rs` is what to
//! read. On a cluster this installs the definition of Foo and runs until Ctrl-C; the definition stays. It then serves probes on port
//! 8081 and metrics on 127.0.0.1:8080, and has the flags of a controller program: `--help`. Without a cluster it makes a Foo, changes
//! it, deletes it and ends.

use std::{
    io::{self, Write},
    time::Duration,
};

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use watchkeeper::prelude::*;
use watchkeeper_cli::{
    sample::{self, Foo, FooSpec},
    seen::Changes,
};
use watchkeeper_examples::{Connection, Outcome};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Outcome {
    // The manager has what controllers share: a client, caches, events, metrics; and starts and ends them in order.
    let (connection, mut manager) = Connection::with_manager(sample::NAME).await?;
    let client = connection.client();
    sample::install(client).await?;
    if !sample::served(client, PATIENCE).await? {
        return Err("the server does not serve Foos, though their definition is installed".into());
    }

    let factory = manager.factory().clone();
    let controller = sample::controller(&factory, manager.recorder(sample::NAME));
    manager.add(controller.reconcile_with(sample::reconcile))?;
    let (foos, deployments) = (factory.informer::<Foo>(), factory.informer::<Deployment>());
    print_changes(&foos, &deployments)?;

    if connection.server().is_none() {
        writeln!(io::stdout(), "running until Ctrl-C")?;
        return Ok(manager.run().await?);
    }
    let stop = CancellationToken::new();
    let story = async {
        let told = tell(client, &foos, &deployments).await;
        stop.cancel();
        told
    };
    let (ended, told) = tokio::join!(manager.run_until(stop.clone()), story);
    told?;
    ended?;
    writeln!(io::stdout(), "next: ingress_manager, a controller of a built-in kind")?;
    Ok(())
}

/// Prints what the controller's own informers hear: it shares them with whoever asks the factory.
fn print_changes(foos: &SharedIndexInformer<Foo>, deployments: &SharedIndexInformer<Deployment>) -> Outcome {
    foos.add_handler(|event: &Event<Foo>| {
        let foo = event.object();
        let available = foo.status.as_ref().map_or(0, |status| status.available_replicas);
        let state = format!("Foo {} wants {}, has {available}", foo.name_any(), foo.spec.replicas);
        print(event, &state);
    })?;
    deployments.add_handler(|event: &Event<Deployment>| {
        let state =
            format!("Deployment {} of {}", event.object().name_any(), sample::replicas(event.object()));
        print(event, &state);
    })?;
    Ok(())
}

fn print<K>(event: &Event<K>, state: &str) {
    let what = match event {
        Event::Added { .. } => "added",
        Event::Updated { .. } => "updated",
        Event::Synced(_) => "unchanged",
        Event::Deleted(_) => "deleted",
    };
    // Whoever reads this may have gone.
    let _ = writeln!(io::stdout(), "{what}: {state}");
}

/// What people do to a Foo, and what comes of it.
async fn tell(
    client: &Client,
    foos: &SharedIndexInformer<Foo>,
    deployments: &SharedIndexInformer<Deployment>,
) -> Outcome {
    let changes = Changes::default();
    changes.count(foos)?;
    changes.count(deployments)?;
    let (cached_foos, cached) = (foos.reader(), deployments.reader());
    let clientset = client.clientset();
    let foo_client = clientset.resource::<Foo>("default");
    let deployment_client = clientset.apps_v1().deployments("default");

    let foo = Foo::new("example-foo", FooSpec { deployment_name: "example-foo".to_owned(), replicas: 1 });
    foo_client.create(&PostParams::default(), &foo).await?;
    let is_of = |replicas| cached.get("default/example-foo").filter(|it| sample::replicas(it) == replicas);
    changes.until(PATIENCE, || is_of(1)).await.ok_or("no Deployment of 1 replica")?;

    let scale = Patch::Merge(json!({"spec": {"replicas": 2}}));
    foo_client.patch("example-foo", &PatchParams::default(), &scale).await?;
    changes.until(PATIENCE, || is_of(2)).await.ok_or("no Deployment of 2 replicas")?;

    // An API server alone starts no pods. Say that they were started, as the cluster would.
    let started =
        Patch::Merge(json!({"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}));
    deployment_client.patch_status("example-foo", &PatchParams::default(), &started).await?;
    let has_two = || {
        let foo = cached_foos.get("default/example-foo")?;
        foo.status.as_ref().filter(|status| status.available_replicas == 2).map(drop)
    };
    changes.until(PATIENCE, has_two).await.ok_or("the Foo does not say that it has 2")?;

    foo_client.delete("example-foo", &DeleteParams::background()).await?;
    let is_gone = || cached.get("default/example-foo").is_none().then_some(());
    changes.until(PATIENCE, is_gone).await.ok_or("the Deployment was not collected with its Foo")?;
    Ok(())
}
