//! Small caches: an informer of three fields of each pod, and an informer of the metadata of nodes.
//!
//! A narrow type is a view of a kind. The informer decodes and keeps only its fields, and skips the rest of each object. If
//! metadata is enough, no type is needed, and the server does not even send the rest.
//!
//! `cargo run -p watchkeeper-examples --bin narrow_types`

use std::io::{self, Write};

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{
    Narrow,
    client::dynamic::GroupVersionResource,
    kube_core::{ObjectMeta, Selector},
    prelude::*,
};
use watchkeeper_examples::{Connection, Outcome};

/// The fields of a Pod that this lab reads.
#[derive(Narrow, Clone, Debug)]
#[narrow(Pod)]
struct PodView {
    // Contains what caches and controllers need: name, uid, version, labels, owners and finalizers, but no annotations.
    metadata: ObjectMeta,
    #[narrow("spec.nodeName")]
    node: Option<String>,
    #[narrow("status.phase")]
    phase: Option<String>,
    // One value for each container.
    #[narrow("spec.containers[].image")]
    images: Vec<String>,
}

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let client = connection.client();
    let mut out = io::stdout();

    let factory = SharedInformerFactory::new(client.clone());
    let pods = factory.informer::<PodView>();
    let by_node = pods.add_index("node", |pod: &PodView| pod.node.clone())?;
    let nodes = factory.metadata_of(&GroupVersionResource::new("", "v1", "nodes"), Scope::all());
    factory.start();
    factory.wait_for_sync().await?;

    let mut views = pods.lister().list(&Selector::default());
    views.sort_by_key(|pod| (pod.namespace(), pod.name_any()));
    for pod in &views {
        let (phase, node) = (pod.phase.as_deref(), pod.node.as_deref());
        writeln!(
            out,
            "{} is {} on {} with {}",
            place(pod),
            phase.unwrap_or("Pending"),
            node.unwrap_or("no node"),
            pod.images.join(", ")
        )?;
    }
    for node in by_node.values() {
        writeln!(out, "on {node}: {} pods, from the index", by_node.count(&node))?;
    }
    for node in nodes.lister().list(&Selector::default()) {
        writeln!(out, "node {}, from metadata only", node.name_any())?;
    }

    // A view is for reading. Writes are patches, or updates of the whole object.
    if let Some(view) = views.first() {
        let pods = client.resource::<Pod>().namespace(&view.namespace().unwrap_or_default());
        let whole = pods.get(&view.name_any()).await?;
        let size = |json: serde_json::Result<Vec<u8>>| json.map(|json| json.len());
        let (whole, view) = (size(serde_json::to_vec(&whole))?, size(serde_json::to_vec(&**view))?);
        writeln!(out, "bytes of JSON: {whole} of the whole pod, {view} of the view")?;
    }
    factory.shutdown().await;
    writeln!(out, "next: informer_workqueue, which adds workers")?;
    Ok(())
}

fn place(pod: &PodView) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}
