//! The classic: an informer, an index and a work queue that print pods. The server is a script, so there is
//! no cluster.
//!
//! `cargo run -p watchkeeper-informer --example informer_workqueue`

use std::{error::Error, sync::Arc};

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube_core::ObjectMeta;
use watchkeeper_client::list_watch::{ScriptedSource, WatchScript};
use watchkeeper_informer::{
    CacheReader, ObjectKey, ResourceVersion, event::Event, factory::FactoryBuilder, handler::EventHandler,
};
use watchkeeper_workqueue::{AddOptions, Cause, Item, WorkQueue};

type Queue = WorkQueue<Arc<str>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let source = ScriptedSource::new();
    let first = WatchScript::new().added(pod("web-0", "node-1", 3)).added(pod("web-1", "node-2", 4));
    let server = source.open_watch(first.initial_events_end("10"));

    // With a cluster: SharedInformerFactory::new(Client::try_default().await?)
    let factory = FactoryBuilder::without_client().source::<Pod>(source).build();
    let pods = factory.informer::<Pod>();
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
    let queue: Queue = WorkQueue::new("pods");
    let registration = pods.add_handler(enqueue_keys(&queue))?;

    factory.start();
    factory.wait_for_sync().await?; // fails with the reason if an informer cannot sync
    registration.synced().await?; // every pod of the initial list has been queued
    say(&format!("synced: {} pods, {} of them on node-1", pods.reader().len(), by_node.count("node-1")));
    work(&queue, &pods.reader()).await;

    server.send(WatchScript::new().added(pod("web-2", "node-1", 11)));
    server.send(WatchScript::new().modified(pod("web-0", "node-2", 12)));
    server.send(WatchScript::new().deleted(pod("web-1", "node-2", 13)));
    let version = ResourceVersion::new("13").ok_or("a version is not empty")?;
    pods.wait_until(&version).await?; // the cache has everything up to there
    say(&format!("at version {version}: {:?} on node-1", by_node.keys("node-1")));
    while queue.len() < 3 {
        tokio::task::yield_now().await;
    }
    work(&queue, &pods.reader()).await;

    factory.shutdown().await;
    say("shut down: no watch, no handler and no task is left");
    say("next: the crate's documentation, `cargo doc -p watchkeeper-informer --open`");
    Ok(())
}

/// A handler that queues the key of whatever changed, and why.
fn enqueue_keys(queue: &Queue) -> impl EventHandler<Pod> + use<> {
    let queue = queue.clone();
    move |event: &Event<Pod>| {
        let Ok(key) = ObjectKey::of(&**event.object()) else { return };
        let cause = match event {
            Event::Added { is_initial: true, .. } => Cause::InitialList,
            Event::Synced(_) => Cause::Resync,
            _ => Cause::Event("Pod".into()),
        };
        queue.add_with(key.into(), AddOptions::new().cause(cause));
    }
}

/// Processes the queue until it is empty. The workers of a controller do this until they are stopped.
async fn work(queue: &Queue, pods: &CacheReader<Pod>) {
    while !queue.is_empty() {
        if let Some(item) = queue.get().await {
            reconcile(&item, pods);
            item.forget();
        }
    }
}

/// Acts on the current state of the pod, not on the event.
fn reconcile(item: &Item<'_, Arc<str>>, pods: &CacheReader<Pod>) {
    let (key, why) = (item.key(), item.causes());
    match pods.get(key) {
        Some(pod) => {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("no node");
            say(&format!("pod {key} is on {node} ({why})"));
        }
        None => say(&format!("pod {key} does not exist any more ({why})")),
    }
}

fn pod(name: &str, node: &str, version: u64) -> Pod {
    Pod {
        metadata: ObjectMeta {
            namespace: Some("shop".to_owned()),
            name: Some(name.to_owned()),
            uid: Some(format!("uid-of-{name}")),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec { node_name: Some(node.to_owned()), ..PodSpec::default() }),
        ..Pod::default()
    }
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn say(line: &str) {
    println!("{line}");
}
