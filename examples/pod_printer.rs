//! Retries with backoff: a key that fails is retried five times with increasing delays, then dropped and reported.
//!
//! `cargo run -p watchkeeper-examples --bin pod_printer`
//!
//! Creates a pod in the namespace `default` whose annotation makes printing fail, and deletes it.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::sync::oneshot;
use watchkeeper::{informer::CacheReader, prelude::*, workqueue::Item};
use watchkeeper_examples::{Connection, Outcome};

const POD: &str = "pod-printer-lab";
const UNPRINTABLE: &str = "pod-printer/unprintable";
const RETRIES: u32 = 5;

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let client = connection.client();
    let pods_client = client.resource::<Pod>().namespace("default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": POD, "annotations": {UNPRINTABLE: "the ink is dry"}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }))?;
    pods_client.create(&PostParams::default(), &pod).await?;

    let queue: WorkQueue<Arc<str>> = WorkQueue::new("pods");
    let factory = SharedInformerFactory::new(client.clone());
    let pods = factory.informer::<Pod>();
    let to = queue.clone();
    pods.add_handler(move |event: &Event<Pod>| {
        if let Ok(key) = event.object().key() {
            to.add_with(key.into(), AddOptions::new().cause(Cause::Event("Pod".into())));
        }
    })?;
    factory.start();
    factory.wait_for_sync().await?;

    let (give_up, given_up) = oneshot::channel();
    let worker = work(&queue, pods.reader(), give_up);
    let ending = async {
        tokio::time::timeout(Duration::from_mins(1), given_up).await??;
        pods_client.delete(POD, &DeleteParams::default().grace_period(0)).await?;
        queue.shutdown(); // the worker ends when the queue is empty
        Outcome::Ok(())
    };
    tokio::try_join!(async { Ok(worker.await?) }, ending)?;
    factory.shutdown().await;
    writeln!(io::stdout(), "next: sample_controller, where a controller does all this")?;
    Ok(())
}

async fn work(
    queue: &WorkQueue<Arc<str>>,
    pods: CacheReader<Pod>,
    give_up: oneshot::Sender<()>,
) -> io::Result<()> {
    let mut give_up = Some(give_up);
    while let Some(item) = queue.get().await {
        let result = print(item.key(), &pods);
        if handle_error(item, result)?
            && let Some(give_up) = give_up.take()
        {
            // An error means that the lab is ending.
            let _ = give_up.send(());
        }
    }
    Ok(())
}

fn print(key: &str, pods: &CacheReader<Pod>) -> Result<(), String> {
    let Some(pod) = pods.get(key) else { return Ok(()) };
    if pod.metadata.deletion_timestamp.is_some() {
        return Ok(()); // being deleted
    }
    if let Some(why) = pod.annotations().get(UNPRINTABLE) {
        return Err(why.clone());
    }
    writeln!(io::stdout(), "pod {key}").map_err(|error| error.to_string())
}

/// Finishes a key: forgets its failures after a success, or retries it up to the limit. Returns whether it was dropped.
fn handle_error(item: Item<'_, Arc<str>>, result: Result<(), String>) -> io::Result<bool> {
    let (key, failures) = (item.key().clone(), item.failures());
    match result {
        Ok(()) => item.forget(), // earlier failures do not count for the next change
        Err(why) if failures < RETRIES => {
            writeln!(io::stdout(), "pod {key}: {why}; retry {} of {RETRIES}", failures + 1)?;
            item.retry();
        }
        Err(why) => {
            writeln!(io::stdout(), "pod {key}: {why}; given up after {RETRIES} retries")?;
            item.forget();
            return Ok(true);
        }
    }
    Ok(false)
}
