//! Serves the Kubernetes API on loopback, for kubectl and every other client.
//!
//! `cargo run --release -p watchkeeper-apiserver --example serve -- --port 8001 --kubeconfig-out kubeconfig`

use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{Parser, ValueEnum};
use watchkeeper_apiserver::ApiServer;

#[derive(Debug, Parser)]
struct Arguments {
    /// Port to listen on; 0 selects a free one.
    #[arg(long, default_value_t = 8001)]
    port: u16,
    /// File to write a kubeconfig for kubectl to.
    #[arg(long)]
    kubeconfig_out: Option<PathBuf>,
    /// Serves over TLS with a generated certificate.
    #[arg(long)]
    tls: bool,
    /// File of bearer tokens: lines of token,user,uid,"group1,group2".
    #[arg(long)]
    token_auth_file: Option<PathBuf>,
    /// Authorization of requests: allow all, or RBAC by roles and bindings. RBAC needs --token-auth-file.
    #[arg(long, value_enum, default_value_t = AuthorizationMode::AlwaysAllow)]
    authorization_mode: AuthorizationMode,
    /// Serves /-/control, where tests compact the history. With --token-auth-file a request needs a token, and with RBAC
    /// permission to post to this path.
    #[arg(long)]
    control: bool,
    /// Accepts requests for this host name, besides loopback names and the address listened on. Only a server without
    /// --token-auth-file checks the host, so that no web page can use it. Can be repeated.
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// Controllers to run: garbage collection, namespaces and definitions, or none.
    #[arg(long, value_enum, default_value_t = Controllers::All)]
    controllers: Controllers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthorizationMode {
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    #[value(name = "RBAC")]
    Rbac,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Controllers {
    All,
    None,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().init();
    let runtime = tokio::runtime::Runtime::new()?;
    let ended = runtime.block_on(serve(&Arguments::parse()));
    // Does not wait for requests that are still computing.
    runtime.shutdown_background();
    ended
}

async fn serve(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.authorization_mode == AuthorizationMode::Rbac && arguments.token_auth_file.is_none() {
        return Err(
            "--authorization-mode RBAC needs --token-auth-file: without tokens every request is anonymous and has no permissions"
                .into(),
        );
    }
    let mut builder = ApiServer::builder()
        .control(arguments.control)
        .allowed_hosts(arguments.allowed_host.iter().cloned())
        .controllers(arguments.controllers == Controllers::All)
        .rbac(arguments.authorization_mode == AuthorizationMode::Rbac);
    let mut token = None;
    if let Some(file) = &arguments.token_auth_file {
        let csv = std::fs::read_to_string(file)?;
        token = csv.lines().find_map(|line| line.split(',').next()).map(str::to_owned);
        builder = builder.tokens(&csv)?;
    }
    let server = builder.build();
    let address = SocketAddr::from(([127, 0, 0, 1], arguments.port));
    let endpoint =
        if arguments.tls { server.listen_tls(address).await? } else { server.listen(address).await? };
    if let Some(file) = &arguments.kubeconfig_out {
        // Replaces a file that exists, because the mode of a new temporary file is 0600.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut private = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        private.write_all(endpoint.kubeconfig(token.as_deref()).as_bytes())?;
        private.persist(file)?;
    }
    tracing::info!(url = endpoint.url(), "serving until interrupted");
    asked_to_stop().await?;
    tokio::select! {
        () = server.shutdown() => Ok(()),
        // A second signal stops the program without waiting for clients.
        asked = asked_to_stop() => asked,
    }
}

/// Waits for Ctrl-C or, on Unix, SIGTERM.
async fn asked_to_stop() -> Result<(), Failure> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}
