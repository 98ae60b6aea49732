//! An informer: one watch, a cache, an index, and a handler that is called with every change.
//!
//! `cargo run -p watchkeeper-examples --bin informer`
//!
//! Creates a pod in the namespace `default`, labels it and deletes it. The handler prints each event.

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

    // Each call for pods returns the same informer. The factory owns it, so handlers remain registered without a handle to it.
    let factory = SharedInformerFactory::new(client.clone());
    let pods = factory.informer::<Pod>();
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
    let (sender, lines) = mpsc::channel();
    let registration = pods.add_handler(move |event: &Event<Pod>| {
        // The cache contains the object before the handler is called. Handlers should be fast; this one sends a line.
        // It reads metadata only, so no object is decoded for it, even if the cache keeps objects packed.
        let line = match event {
            Event::Added { is_initial: true, object } => format!("initial: {}", place(object)),
            Event::Added { object, .. } => format!("added: {}", place(object)),
            Event::Updated { old, new } => {
                format!(
                    "updated: {}, {} labels before, {} now",
                    place(new),
                    old.metadata().labels().count(),
                    new.metadata().labels().count()
                )
            }
            Event::Synced(object) => format!("unchanged: {}", place(object)),
            Event::Deleted(deleted) => format!("deleted: {}", place(&deleted.object)),
        };
        // An error means that the lab has ended.
        let _ = sender.send(line);
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
    // The cache lags behind the server. A client can wait until the cache contains its own write.
    let version = ResourceVersion::of(&made).ok_or("a stored object has a resourceVersion")?;
    let cached = pods.wait_for(format!("default/{POD}"), &version).await?;
    writeln!(out, "the cache contains the new pod: {}", cached.is_some())?;
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
    factory.shutdown().await; // ends all watches, handlers and tasks
    writeln!(out, "next: narrow_types, for smaller caches")?;
    Ok(())
}

fn place(pod: &Cached<Pod>) -> String {
    format!("{}/{}", pod.metadata().namespace().unwrap_or_default(), pod.metadata().name())
}
