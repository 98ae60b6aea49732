//! Lists pods with the REST client, on which all other clients are built.
//!
//! `cargo run -p watchkeeper-examples --bin rest_client -- --namespace shop`

use std::io::{self, Write};

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{client::rest::Retry, kube_core::ObjectList, prelude::*};
use watchkeeper_examples::{Cluster, Outcome};

#[derive(Debug, Parser)]
struct Arguments {
    /// The namespace of the pods to list.
    #[arg(long, short, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    cluster: Cluster,
}

#[tokio::main]
async fn main() -> Outcome {
    let arguments = Arguments::parse();
    let connection = arguments.cluster.connect().await?;
    let mut out = io::stdout();

    // GET /api/v1/namespaces/{namespace}/pods?limit=500, decoded as a list of pods. Each path segment is
    // validated and encoded, so a name cannot reach another resource. The response has a size limit, the request a deadline.
    let pods: ObjectList<Pod> = connection
        .client()
        .rest()
        .get()
        .api("v1")
        .namespace(&arguments.namespace)
        .resource("pods")
        .params(&ListParams::default().limit(500))
        .retry(Retry::reads())
        .send()
        .await?;
    for pod in &pods {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
        writeln!(out, "{:<24} {phase}", pod.name_any())?;
    }
    let version = pods.metadata.resource_version.unwrap_or_default();
    writeln!(out, "{} pods in namespace {}, at version {version}", pods.items.len(), arguments.namespace)?;
    writeln!(out, "next: get_pod, which derives the path from the type")?;
    Ok(())
}
