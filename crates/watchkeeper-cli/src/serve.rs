//! `watchkeeper serve`: the API server for kubectl and every other client.

use std::{io::Write as _, net::SocketAddr, path::PathBuf, time::Duration};

use clap::ValueEnum;
use watchkeeper::apiserver::{ApiServer, Endpoint};

use crate::{exit::Failure, files, stop::StopWithDeadline};

/// The grace period of open connections after a stop request.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// The time after the grace period at which the process ends in any case.
const LAST_RESORT: Duration = Duration::from_secs(2);

/// The arguments of `serve`.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArguments {
    /// The port on 127.0.0.1; 0 selects a free one.
    #[arg(long, default_value_t = 8001)]
    port: u16,
    /// Writes the kubeconfig to this file instead of printing it.
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Serves over TLS with a generated certificate.
    #[arg(long)]
    tls: bool,
    /// The file of bearer tokens, with lines of token,user,uid,"group1,group2". The kubeconfig contains the
    /// first.
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// The authorization mode: all requests are allowed, or roles and bindings decide. RBAC needs
    /// --token-auth-file.
    #[arg(long, value_enum, default_value_t = AuthorizationMode::AlwaysAllow)]
    authorization_mode: AuthorizationMode,
    /// Serves /-/control, with which tests compact the history. With --token-auth-file a request needs a
    /// token, and with RBAC permission to post to this path.
    #[arg(long)]
    control: bool,
    /// Accepts requests for this host name, in addition to loopback names and the listen address. Only a
    /// server without --token-auth-file checks the host, so that no web page can use it. Can be repeated.
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// The controllers to run: garbage collection, namespaces and definitions, or none.
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

/// Serves until a stop request. The process ends within seven seconds of that, or at the second request.
///
/// # Errors
/// Returns a [`Failure`] if the port is in use, if a file cannot be read or written, or if RBAC is selected
/// without tokens.
pub async fn serve(arguments: &ServeArguments) -> Result<(), Failure> {
    if arguments.authorization_mode == AuthorizationMode::Rbac && arguments.token_auth_file.is_none() {
        return Err(Failure::Other(
            "--authorization-mode RBAC needs --token-auth-file: without tokens every client is anonymous and may do \
             nothing; write lines of token,user,uid,\"group1,group2\", one of them in the group system:masters"
                .to_owned(),
        ));
    }
    let mut builder = ApiServer::builder()
        .control(arguments.control)
        .allowed_hosts(arguments.allowed_host.iter().cloned())
        .controllers(arguments.controllers == Controllers::All)
        .rbac(arguments.authorization_mode == AuthorizationMode::Rbac);
    let mut token = None;
    if let Some(path) = &arguments.token_auth_file {
        let csv =
            std::fs::read_to_string(path).map_err(|source| Failure::File { path: path.clone(), source })?;
        token = csv.lines().find_map(|line| line.split(',').next()).map(str::to_owned);
        builder =
            builder.tokens(&csv).map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
    }
    let server = builder.shutdown_grace(SHUTDOWN_GRACE).build();
    let address = SocketAddr::from(([127, 0, 0, 1], arguments.port));
    let endpoint =
        if arguments.tls { server.listen_tls(address).await } else { server.listen(address).await };
    let endpoint = endpoint.map_err(|error| {
        Failure::Other(format!("cannot listen on {address}: {error}; choose another port with --port"))
    })?;
    // Before the announcement, because a reader of it may stop the program immediately.
    let stop = StopWithDeadline::listen(SHUTDOWN_GRACE + LAST_RESORT)
        .map_err(|error| Failure::Other(format!("cannot receive signals: {error}")))?;
    announce(&endpoint, arguments.kubeconfig_out.as_ref(), token.as_deref())?;
    stop.requested().await;
    server.shutdown().await;
    Ok(())
}

fn announce(endpoint: &Endpoint, file: Option<&PathBuf>, token: Option<&str>) -> Result<(), Failure> {
    let kubeconfig = endpoint.kubeconfig(token);
    let mut out = anstream::stdout();
    if let Some(path) = file {
        files::write_private(path, &kubeconfig)?;
        writeln!(out, "serving on {} until Ctrl-C", endpoint.url())?;
        writeln!(out, "try: kubectl --kubeconfig {} get namespaces", path.display())?;
    } else {
        writeln!(out, "# serving on {} until Ctrl-C; a kubeconfig for it:", endpoint.url())?;
        write!(out, "{kubeconfig}")?;
    }
    out.flush()?;
    Ok(())
}
