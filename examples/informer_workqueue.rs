//! An informer and a work queue: the handler enqueues keys, and a worker reconciles each key with the current state.
//!
//! `cargo run -p watchkeeper-examples --bin informer_workqueue`
//!
//! Creates a pod in the namespace `default`, changes it three times and deletes it.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use watchkeeper::{
    informer::{CacheReader, handler::EventHandler},
    prelude::*,
    workqueue::Item,
};
use watchkeeper_examples::{Connection, Outcome};

const POD: &str = "workqueue-lab";
const PATIENCE: Duration = Duration::from_secs(30);

type Queue = WorkQueue<Arc<str>>;

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let client = connection.client();
    let queue: Queue = WorkQueue::new("pods");
    let factory = SharedInformerFactory::new(client.clone());
    let pods = factory.informer::<Pod>();
    pods.add_handler(enqueue_keys(&queue))?;
    factory.start();
    factory.wait_for_sync().await?;

    let mine = client.resource::<Pod>().namespace("default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": POD}, "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }))?;
    mine.create(&PostParams::default(), &pod).await?;
    for round in 1..=3 {
        let label = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        mine.patch(POD, &PatchParams::default(), &label).await?;
    }
    // One worker. With several, each key is still processed by one worker at a time.
    let reconciles = tokio::time::timeout(PATIENCE, work(&queue, &pods.reader(), |exists| exists)).await?;
    writeln!(
        io::stdout(),
        "four writes, {} reconciles of {POD}: adds of a queued key are merged",
        reconciles?
    )?;

    mine.delete(POD, &DeleteParams::default().grace_period(0)).await?;
    tokio::time::timeout(PATIENCE, work(&queue, &pods.reader(), |exists| !exists)).await??;
    factory.shutdown().await;
    writeln!(io::stdout(), "next: pod_printer, which retries failures")?;
    Ok(())
}

/// Returns a handler that enqueues the key of each changed pod, with the cause.
fn enqueue_keys(queue: &Queue) -> impl EventHandler<Pod> + use<> {
    let queue = queue.clone();
    move |event: &Event<Pod>| {
        let Ok(key) = event.object().key() else { return };
        let cause = match event {
            Event::Added { is_initial: true, .. } => Cause::InitialList,
            Event::Synced(_) => Cause::Resync,
            _ => Cause::Event("Pod".into()),
        };
        queue.add_with(key.into(), AddOptions::new().cause(cause));
    }
}

/// Processes keys until the pod of the lab is in the wanted state and the queue is empty. Returns the number of its reconciles.
///
/// A controller has a few such workers, which run until it stops.
async fn work(queue: &Queue, pods: &CacheReader<Pod>, is_wanted: fn(bool) -> bool) -> Result<u32, io::Error> {
    let (mut reconciles, mut is_done) = (0, false);
    while !is_done || !queue.is_empty() {
        let Some(item) = queue.get().await else { break };
        let exists = reconcile(&item, pods)?;
        if item.key().ends_with(POD) {
            reconciles += 1;
            is_done = is_wanted(exists);
        }
        item.forget();
    }
    Ok(reconciles)
}

/// Prints the current state of a pod, whichever events led to it. Returns whether the pod exists.
fn reconcile(item: &Item<'_, Arc<str>>, pods: &CacheReader<Pod>) -> io::Result<bool> {
    let (key, causes) = (item.key(), item.causes());
    let pod = pods.get(key);
    match &pod {
        Some(pod) => writeln!(io::stdout(), "pod {key} has {} labels ({causes})", pod.labels().len())?,
        None => writeln!(io::stdout(), "pod {key} no longer exists ({causes})")?,
    }
    Ok(pod.is_some())
}
