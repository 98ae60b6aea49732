//! Serves the Kubernetes API on loopback, for kubectl and every other client.
//!
//! `cargo run --release -p watchkeeper-apiserver --example serve -- --port 8001 --kubeconfig-out kubeconfig`

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, ValueEnum};
use watchkeeper_apiserver::ApiServer;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthorizationMode {
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    #[value(name = "RBAC")]
    Rbac,
}

#[derive(Debug, Parser)]
struct Arguments {
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 8001)]
    port: u16,
    /// Writes a kubeconfig for kubectl here.
    #[arg(long)]
    kubeconfig_out: Option<PathBuf>,
    /// Bearer tokens: lines of token,user,uid,"group1,group2".
    #[arg(long)]
    token_auth_file: Option<PathBuf>,
    /// Who may do what: everybody everything, or what roles and bindings say.
    #[arg(long, value_enum, default_value_t = AuthorizationMode::AlwaysAllow)]
    authorization_mode: AuthorizationMode,
    /// Which controllers run: all of them, or none.
    #[arg(long, default_value = "all", value_parser = ["all", "none"])]
    controllers: String,
    /// Serves over TLS with a certificate made for it.
    #[arg(long)]
    tls: bool,
    /// Serves /-/control.
    #[arg(long)]
    control: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let arguments = Arguments::parse();
    let mut builder = ApiServer::builder()
        .control(arguments.control)
        .controllers(arguments.controllers != "none")
        .rbac(arguments.authorization_mode == AuthorizationMode::Rbac);
    if let Some(file) = &arguments.token_auth_file {
        builder = builder.tokens(&std::fs::read_to_string(file)?)?;
    }
    let server = builder.build();
    let address = server.listen(SocketAddr::from(([127, 0, 0, 1], arguments.port))).await?;
    tracing::info!(%address, "serving");
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
