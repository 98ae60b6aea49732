//! Reports the pods of each node: two lists, joined by name.
//!
//! `cargo run -p watchkeeper-examples --bin pods_and_nodes_report`

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use k8s_openapi::api::core::v1::{Node, Pod};
use watchkeeper::prelude::*;
use watchkeeper_examples::{Connection, Outcome};

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let mut out = io::stdout();

    let client = connection.client();
    let everything = ListParams::default();
    // Nodes have no namespace; the pods are those of all namespaces. Both lists are requested concurrently.
    let (nodes_client, pods_client) = (client.resource::<Node>(), client.resource::<Pod>());
    let (nodes, pods) =
        tokio::try_join!(nodes_client.list_all(&everything), pods_client.list_all(&everything))?;

    let mut on_node: BTreeMap<String, Vec<&Pod>> = BTreeMap::new();
    let mut nowhere = Vec::new();
    for pod in &pods {
        match pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) {
            Some(node) => on_node.entry(node).or_default().push(pod),
            None => nowhere.push(pod),
        }
    }
    for node in &nodes {
        let readiness = if is_ready(node) { "ready" } else { "not ready" };
        writeln!(out, "node {}: {readiness}, {}", node.name_any(), capacity(node))?;
        for pod in on_node.get(&node.name_any()).into_iter().flatten() {
            print(pod, &mut out)?;
        }
    }
    if !nowhere.is_empty() {
        writeln!(out, "on no node")?;
        for pod in nowhere {
            print(pod, &mut out)?;
        }
    }
    writeln!(out, "{} pods, {} nodes", pods.items.len(), nodes.items.len())?;
    writeln!(out, "next: dynamic_client, for kinds without a type")?;
    Ok(())
}

fn print(pod: &Pod, out: &mut impl Write) -> io::Result<()> {
    let status = pod.status.clone().unwrap_or_default();
    let restarts: i32 = status.container_statuses.iter().flatten().map(|status| status.restart_count).sum();
    let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    writeln!(out, "  {name:<24} {:<10} {restarts} restarts", status.phase.as_deref().unwrap_or("Unknown"))
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn capacity(node: &Node) -> String {
    let capacity = node.status.as_ref().and_then(|status| status.capacity.clone()).unwrap_or_default();
    let part = |name: &str| capacity.get(name).map_or("?", |quantity| quantity.0.as_str());
    format!("{} cpu, {} memory", part("cpu"), part("memory"))
}
