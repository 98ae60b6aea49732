//! The address of a listening server, and the kubeconfig of its clients.

use std::net::SocketAddr;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;

use super::yaml;

/// The address of a listening server, with the CA certificate and the kubeconfig that clients need to connect.
///
/// [`ApiServer::listen`](crate::ApiServer::listen) and [`ApiServer::listen_tls`](crate::ApiServer::listen_tls) return
/// endpoints. An endpoint is a value: dropping it does not stop the server.
///
/// # Examples
///
/// ```
/// use watchkeeper_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = ApiServer::in_process();
/// let endpoint = server.listen_tls(([127, 0, 0, 1], 0).into()).await?;
///
/// assert_eq!(endpoint.url(), format!("https://{}", endpoint.address()));
/// assert!(endpoint.authority().is_some_and(|pem| pem.starts_with("-----BEGIN CERTIFICATE-----")));
/// server.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    address: SocketAddr,
    /// The certificate of the authority, in PEM; none without TLS.
    authority: Option<String>,
}

impl Endpoint {
    pub(crate) fn new(address: SocketAddr, authority: Option<String>) -> Self {
        Self { address, authority }
    }

    /// Returns the address. Port 0 is replaced by the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the server, such as `http://127.0.0.1:6443`.
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the CA certificate (PEM) that clients must trust, or `None` without TLS.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Returns a kubeconfig as YAML, for kubectl and other clients. `token` is the bearer token of a user of
    /// [`ApiServerBuilder::tokens`](crate::ApiServerBuilder::tokens).
    ///
    /// Pass `None` for a server without tokens. The kubeconfig then contains a placeholder token, because kubectl prompts
    /// for a password if it has no credentials.
    pub fn kubeconfig(&self, token: Option<&str>) -> String {
        let name = "watchkeeper";
        let mut cluster = json!({"server": self.url()});
        if let Some(authority) = &self.authority {
            cluster["certificate-authority-data"] = BASE64_STANDARD.encode(authority).into();
        }
        let user = json!({"token": token.unwrap_or("any")});
        yaml::write(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
            "current-context": name,
        }))
    }
}
