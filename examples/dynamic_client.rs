//! Reads any resource by its kubectl name. The kind need not be known at compile time.
//!
//! ```sh
//! cargo run -p watchkeeper-examples --bin dynamic_client -- pods -n shop
//! cargo run -p watchkeeper-examples --bin dynamic_client -- ns
//! ```
//!
//! The label at the end is a dry run, so no object is changed.

use std::io::{self, Write};

use clap::Parser;
use serde_json::{Map, Value, json};
use watchkeeper::{client::discovery::RestMapper, prelude::*};
use watchkeeper_examples::{Cluster, Outcome};

#[derive(Debug, Parser)]
struct Arguments {
    /// The plural, singular or short name of the resource, or `plural.group`.
    #[arg(default_value = "pods")]
    resource: String,
    /// The namespace to list. Defaults to all namespaces.
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: Cluster,
}

#[tokio::main]
async fn main() -> Outcome {
    let Arguments { resource, namespace, cluster } = Arguments::parse();
    let connection = cluster.connect().await?;
    let client = connection.client();
    let mut out = io::stdout();

    // Discovery resolves the name to a group, version and plural, and knows whether it is namespaced.
    let mapping = RestMapper::new(client.discovery()).find_resource(&resource).await?;
    writeln!(out, "{resource} is {mapping}")?;

    let everywhere = client.dynamic(&mapping.resource);
    let chosen = match namespace.filter(|_| mapping.is_namespaced()) {
        Some(namespace) => everywhere.namespace(&namespace),
        None => everywhere.clone(),
    };
    let objects = chosen.list_all(&ListParams::default()).await?;
    for object in &objects.items {
        let place = object.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let fields = object.data.get("spec").and_then(Value::as_object).map_or(0, Map::len);
        writeln!(out, "{place}{}: {fields} fields in its spec", object.name_any())?;
    }

    // Writing an object needs its namespace.
    if let Some(first) = objects.items.first() {
        let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        let labelled = everywhere.namespace_of(first).patch(&first.name_any(), &dry_run, &label).await?;
        writeln!(out, "{} would have {} labels", labelled.name_any(), labelled.labels().len())?;
    }
    writeln!(out, "next: discovery, for how the name was resolved")?;
    Ok(())
}
