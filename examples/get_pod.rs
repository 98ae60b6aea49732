//! Gets one pod with a typed client, and distinguishes a missing pod from a failed request.
//!
//! `cargo run -p watchkeeper-examples --bin get_pod -- test`

use std::io::{self, Write};

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use watchkeeper::prelude::*;
use watchkeeper_examples::{Cluster, Outcome};

#[derive(Debug, Parser)]
struct Arguments {
    /// The name of the pod.
    #[arg(default_value = "test")]
    name: String,
    /// The namespace of the pod.
    #[arg(long, short, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    cluster: Cluster,
}

#[tokio::main]
async fn main() -> Outcome {
    let Arguments { name, namespace, cluster } = Arguments::parse();
    let connection = cluster.connect().await?;
    let mut out = io::stdout();

    // The type determines group, version and resource. No request is sent until a verb is called.
    let pods = connection.client().resource::<Pod>().namespace(&namespace);

    // None only if the server reports that this pod does not exist. Every other failure is an error.
    match pods.get_opt(&name).await? {
        Some(pod) => {
            let spec = pod.spec.clone().unwrap_or_default();
            let status = pod.status.clone().unwrap_or_default();
            writeln!(out, "pod {} in namespace {namespace}", pod.name_any())?;
            writeln!(out, "  phase  {}", status.phase.as_deref().unwrap_or("Unknown"))?;
            writeln!(out, "  node   {}", spec.node_name.as_deref().unwrap_or("none yet"))?;
            writeln!(out, "  IP     {}", status.pod_ip.as_deref().unwrap_or("none yet"))?;
            for container in &spec.containers {
                let image = container.image.as_deref().unwrap_or("no image");
                writeln!(out, "  runs   {} ({image})", container.name)?;
            }
        }
        None => writeln!(out, "pod {name} in namespace {namespace} does not exist")?,
    }
    writeln!(out, "next: count_running_pods, which reads many")?;
    Ok(())
}
