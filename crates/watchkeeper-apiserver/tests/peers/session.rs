//! A client of another project, run against a listening server.

use std::{net::SocketAddr, path::Path, process::Command};

use http_body_util::BodyExt;
use tower::ServiceExt;
use watchkeeper_apiserver::ApiServer;

/// The outcome of running a client.
pub(crate) struct Session {
    /// The lines that the client printed.
    pub(crate) lines: Vec<String>,
    /// The metrics of the server after the client ended.
    #[allow(dead_code, reason = "not every test program that includes this module reads them")]
    pub(crate) metrics: String,
}

impl Session {
    /// Runs a client against a server that accepts one token and listens over TLS or plain HTTP.
    pub(crate) async fn run(is_tls: bool, client: impl FnOnce(&Path) -> Command + Send + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let server =
            ApiServer::builder().tokens("secret,admin,1,system:masters").expect("a token").rbac(true).build();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let endpoint = if is_tls { server.listen_tls(address).await } else { server.listen(address).await };
        let endpoint = endpoint.expect("a free port");
        std::fs::write(&kubeconfig, endpoint.kubeconfig(Some("secret"))).expect("the folder can be written");
        let run = move || client(&kubeconfig).output().expect("the client runs");
        let output = tokio::task::spawn_blocking(run).await.expect("the client ends");
        let request = http::Request::get("/metrics").header("authorization", "Bearer secret");
        let request = request.body(String::new()).expect("a request");
        let response = server.service().oneshot(request).await.expect("no fault is injected");
        let metrics = response.into_body().collect().await.expect("a body").to_bytes();
        server.shutdown().await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}\n{out}{err}", output.status);
        Self {
            lines: out.lines().map(str::to_owned).collect(),
            metrics: String::from_utf8_lossy(&metrics).into_owned(),
        }
    }
}
