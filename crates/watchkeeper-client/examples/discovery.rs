//! What the server serves: what `kubectl api-versions` and `kubectl api-resources` show, and what a name means.
//!
//! ```sh
//! cargo run -p watchkeeper-client --example discovery
//! cargo run -p watchkeeper-client --example discovery -- deploy Event widgets.example.com
//! ```
//!
//! The server is the one your kubeconfig names. Read next: the documentation of `watchkeeper_client::discovery`.

use std::{
    env,
    error::Error,
    io::{self, Write},
};

use watchkeeper_client::{
    Client,
    discovery::{DiscoveryClient, RestMapper},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let names: Vec<String> = env::args().skip(1).collect();
    run(DiscoveryClient::new(&client), &names, &mut io::stdout()).await
}

async fn run(
    discovery: DiscoveryClient,
    names: &[String],
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    writeln!(out, "Kubernetes {}", discovery.server_version().await?.git_version)?;

    // Asked for once; everything below is answered from memory.
    let served = discovery.server_resources().await?;
    if names.is_empty() {
        writeln!(out, "{}", served.api_versions().join(" "))?;
        for row in served.api_resources() {
            let short_names = row.resource.short_names.join(",");
            let scope = if row.resource.is_namespaced() { "namespaced" } else { "cluster" };
            let (name, kind) = (&row.resource.name, &row.resource.kind);
            writeln!(out, "{name:40} {short_names:12} {:36} {scope:10} {kind}", row.api_version())?;
        }
    }

    // An aggregated API server that is down takes its own resources with it and nothing else.
    for failure in &served.failures {
        writeln!(out, "not known: {failure}")?;
    }

    let mapper = RestMapper::new(discovery);
    for name in names {
        // A kind is written with a capital, a resource is not.
        let is_kind = name.starts_with(char::is_uppercase);
        let found = if is_kind { mapper.find_kind(name).await } else { mapper.find_resource(name).await };
        match found {
            Ok(mapping) => writeln!(out, "{name}: {mapping}")?,
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/discovery.rs"]
mod tests;
