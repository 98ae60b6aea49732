//! Discovery: the output of `kubectl api-versions` and `kubectl api-resources`, and the resolution of a resource name.
//!
//! ```sh
//! cargo run -p watchkeeper-examples --bin discovery
//! cargo run -p watchkeeper-examples --bin discovery -- deploy Event leases.coordination.k8s.io
//! ```

use std::io::{self, Write};

use clap::Parser;
use watchkeeper::client::discovery::RestMapper;
use watchkeeper_examples::{Cluster, Outcome};

#[derive(Debug, Parser)]
struct Arguments {
    /// Names of resources, or of kinds if they start with a capital letter. Without names, all resources are printed.
    names: Vec<String>,
    #[command(flatten)]
    cluster: Cluster,
}

#[tokio::main]
async fn main() -> Outcome {
    let Arguments { names, cluster } = Arguments::parse();
    let connection = cluster.connect().await?;
    let discovery = connection.client().discovery();
    let mut out = io::stdout();
    writeln!(out, "Kubernetes {}", discovery.server_version().await?.git_version)?;

    // The only request; everything below uses its result.
    let served = discovery.server_resources().await?;
    if names.is_empty() {
        writeln!(out, "\napi-versions")?;
        for version in served.api_versions() {
            writeln!(out, "  {version}")?;
        }
        writeln!(out, "\napi-resources")?;
        for row in served.api_resources() {
            let scope = if row.resource.is_namespaced() { "namespaced" } else { "cluster" };
            let (name, short) = (&row.resource.name, row.resource.short_names.join(","));
            writeln!(
                out,
                "  {name:<36} {short:<10} {:<34} {scope:<10} {}",
                row.api_version(),
                row.resource.kind
            )?;
        }
    }
    // If an aggregated API server is down, only its own resources are missing.
    for failure in &served.failures {
        writeln!(out, "unavailable: {failure}")?;
    }

    let mapper = RestMapper::new(discovery);
    for name in &names {
        let is_kind = name.starts_with(char::is_uppercase);
        let found = if is_kind { mapper.find_kind(name).await } else { mapper.find_resource(name).await };
        match found {
            Ok(mapping) => writeln!(out, "{name}: {mapping}")?,
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    writeln!(out, "next: list_watch_on_the_wire")?;
    Ok(())
}
