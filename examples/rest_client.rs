//! Lists pods with a request put together by hand: what every other client is made of.
//!
//! `cargo run -p watchkeeper-examples --bin rest_client -- --namespace shop`

use std::io::{self, Write};

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{client::rest::Retry, kube_core::ObjectList, prelude::*};
use watchkeeper_examples::{Cluster, Outcome};

#[derive(Debug, Parser)]
struct Arguments {
    /// The namespace whose pods are listed.
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

    // GET /api/v1/namespaces/{namespace}/pods?limit=500, read as a list of pods. Each part is checked and encoded by
    // itself, so a name can never reach another resource; the answer has a limit and the request a deadline.
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
