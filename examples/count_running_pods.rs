//! Counts the running pods of all namespaces. The server evaluates the field selector, and the client reads the list page by page.
//!
//! `cargo run -p watchkeeper-examples --bin count_running_pods`

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::prelude::*;
use watchkeeper_examples::{Connection, Outcome};

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let mut out = io::stdout();

    let client = connection.client();
    let running = ListParams::default().fields("status.phase=Running");
    // All pages show the same resourceVersion, however long it takes to read them.
    let pods = client.resource::<Pod>().list_all(&running).await?;

    let mut by_namespace: BTreeMap<String, usize> = BTreeMap::new();
    for pod in &pods {
        *by_namespace.entry(pod.namespace().unwrap_or_default()).or_default() += 1;
    }
    for (namespace, count) in &by_namespace {
        writeln!(out, "{namespace:<24} {count}")?;
    }
    writeln!(out, "{} pods are running in {} namespaces", pods.items.len(), by_namespace.len())?;
    writeln!(out, "next: pods_and_nodes_report, which joins two kinds")?;
    Ok(())
}
