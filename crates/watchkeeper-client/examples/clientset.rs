//! How many pods run in each namespace, and how the nodes are, with typed clients.
//!
//! ```sh
//! cargo run -p watchkeeper-client --example clientset
//! ```
//!
//! The server is the one your kubeconfig names. Read next: `dynamic_client.rs`, for resources without a type.

use std::{
    collections::BTreeMap,
    error::Error,
    io::{self, Write},
};

use k8s_openapi::api::core::v1::{Node, Pod};
use watchkeeper_client::{
    Client,
    clientset::Clientset,
    kube_core::{ResourceExt, params::ListParams},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    run(&Clientset::new(&client), &mut io::stdout()).await
}

async fn run(clientset: &Clientset, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // Group and version, then the resource; an accessor costs nothing, its verbs are the requests.
    let pods = clientset.core_v1().pods_in_all_namespaces().list_all(&ListParams::default()).await?;
    let mut running: BTreeMap<String, usize> = BTreeMap::new();
    for pod in &pods.items {
        *running.entry(pod.namespace().unwrap_or_default()).or_default() += usize::from(is_running(pod));
    }
    for (namespace, count) in running {
        writeln!(out, "{namespace}: {count} running")?;
    }

    // Nodes are in no namespace, so their accessor does not ask for one.
    for node in clientset.core_v1().nodes().list_all(&ListParams::default()).await? {
        writeln!(out, "node {}: {}", node.name_any(), if is_ready(&node) { "ready" } else { "not ready" })?;
    }

    // An object that may not exist; a server that cannot be asked is still an error.
    match clientset.core_v1().config_maps("kube-system").get_opt("extension-apiserver-authentication").await?
    {
        Some(map) => {
            writeln!(out, "aggregated API servers: {} settings", map.data.unwrap_or_default().len())?;
        }
        None => writeln!(out, "aggregated API servers: not configured")?,
    }
    Ok(())
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
#[path = "../tests/examples/clientset.rs"]
mod tests;
