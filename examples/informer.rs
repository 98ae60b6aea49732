//! An informer: one watch, a cache, an index, and handlers that are told of every change.
//!
//! `cargo run -p watchkeeper-examples --bin informer`
//!
//! Makes a pod in the namespace `default`, labels it and deletes it, and prints what the handler hears.

use std::{
    io::{self, Write},
    sync::mpsc,
};

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use watchkeeper::prelude::*;
use watchkeeper_examples::{Connection, Outcome};

const POD: &str = "informer-lab";

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let client = connection.client();
    let mut out = io::stdout();

    // Every request for pods returns the same informer. The factory owns it: a handler stays without a handle to the informer.
    let factory = SharedInformerFactory::new(client.clone());
    let pods = factory.informer::<Pod>();
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
    let (heard, lines) = mpsc::channel();
    let registration = pods.add_handler(move |event: &Event<Pod>| {
        // By the time a handler hears of a state, the cache has it. A handler should be quick: here it passes on a line.
        let line = match event {
            Event::Added { is_initial: true, object } => format!("was there: {}", place(object)),
            Event::Added { object, .. } => format!("added: {}", place(object)),
            Event::Updated { old, new } => {
                format!(
                    "updated: {}, {} labels before, {} now",
                    place(new),
                    old.labels().len(),
                    new.labels().len()
                )
            }
            Event::Synced(object) => format!("unchanged: {}", place(object)),
            Event::Deleted(deleted) => format!("deleted: {}", place(&deleted.object)),
        };
        // Whoever wanted to hear of it may have gone.
        let _ = heard.send(line);
    })?;
    factory.start();
    factory.wait_for_sync().await?; // fails with the reason if an informer cannot sync
    registration.synced().await?; // the handler has returned from the whole initial list
    let initial: Vec<String> = lines.try_iter().collect();
    writeln!(out, "{}", initial.join("\n"))?;
    for node in by_node.values() {
        writeln!(out, "on {node}: {} pods, from the index", by_node.count(&node))?;
    }

    let client_pods = client.resource::<Pod>().namespace("default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": POD}, "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }))?;
    let made = client_pods.create(&PostParams::default(), &pod).await?;
    // The cache follows the server a moment behind; who has just written can wait for it.
    let version = ResourceVersion::of(&made).ok_or("what a server stores has a version")?;
    let cached = pods.wait_for(format!("default/{POD}"), &version).await?;
    writeln!(out, "the cache has the pod that was just made: {}", cached.is_some())?;
    let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    client_pods.patch(POD, &PatchParams::default(), &label).await?;
    client_pods.delete(POD, &DeleteParams::default().grace_period(0)).await?;

    let end = format!("deleted: default/{POD}");
    while let Ok(line) = tokio::task::block_in_place(|| lines.recv()) {
        writeln!(out, "{line}")?;
        if line == end {
            break;
        }
    }
    factory.shutdown().await; // no watch, no handler and no task is left
    writeln!(out, "next: informer_workqueue, which works instead of printing")?;
    Ok(())
}

fn place(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}
