//! Lists the objects of any resource, by the name you would give kubectl, and labels one of them.
//!
//! ```sh
//! cargo run -p watchkeeper-client --example dynamic_client -- deployments.apps kube-system
//! cargo run -p watchkeeper-client --example dynamic_client -- ns
//! ```
//!
//! The server is the one your kubeconfig names. Nothing is changed: the label is a dry run.
//! Read next: `discovery.rs`, for how the name was understood.

use std::{
    env,
    error::Error,
    io::{self, Write},
};

use serde_json::json;
use watchkeeper_client::{
    Client,
    discovery::{DiscoveryClient, RestMapper},
    dynamic::DynamicClient,
    kube_core::{
        ResourceExt,
        params::{ListParams, Patch, PatchParams},
    },
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let mut arguments = env::args().skip(1);
    let resource = arguments.next().unwrap_or_else(|| "pods".to_owned());
    run(&client, &resource, arguments.next().as_deref(), &mut io::stdout()).await
}

async fn run(
    client: &Client,
    name: &str,
    namespace: Option<&str>,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    // The server knows which group, version and plural the name means, and whether it is namespaced.
    let mapping = RestMapper::new(DiscoveryClient::new(client)).find_resource(name).await?;
    writeln!(out, "{name} is {mapping}")?;

    let everywhere = DynamicClient::new(client).resource(&mapping.resource);
    let chosen = match namespace {
        Some(namespace) => everywhere.namespace(namespace),
        None => everywhere.clone(),
    };
    let objects = chosen.list_all(&ListParams::default()).await?;
    for object in &objects.items {
        let place = object.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        writeln!(out, "{place}{}: {} fields in its spec", object.name_any(), fields(&object.data["spec"]))?;
    }

    // Writing needs the namespace of the object itself.
    if let Some(first) = objects.items.first() {
        let its_place = match first.namespace() {
            Some(namespace) => everywhere.namespace(&namespace),
            None => everywhere,
        };
        let label = Patch::Merge(json!({ "metadata": { "labels": { "seen": "yes" } } }));
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let labelled = its_place.patch(&first.name_any(), &dry_run, &label).await?;
        writeln!(out, "{} would have {} labels", labelled.name_any(), labelled.labels().len())?;
    }
    Ok(())
}

fn fields(value: &serde_json::Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

#[cfg(test)]
#[path = "../tests/examples/dynamic_client.rs"]
mod tests;
