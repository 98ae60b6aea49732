//! What the server serves: what `kubectl api-versions` and `kubectl api-resources` print, and what a name means.
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
    /// Names to explain, of resources or (with a capital) of kinds, instead of printing everything.
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

    // Asked for once; everything below is answered from memory.
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
    // An aggregated API server that is down takes its own resources with it and nothing else.
    for failure in &served.failures {
        writeln!(out, "not known: {failure}")?;
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
