//! Where a server listens, and what clients need to know to reach it.

use std::net::SocketAddr;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;

use super::yaml;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    address: SocketAddr,
    /// The certificate of the authority, as PEM, if it listens with TLS.
    authority: Option<String>,
}

impl Endpoint {
    pub(crate) fn new(address: SocketAddr, authority: Option<String>) -> Self {
        Self { address, authority }
    }

    /// The address, with the port that was chosen for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as clients write it.
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The certificate clients trust the server by, as PEM; none without TLS.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// A kubeconfig for kubectl and every other client; `token` is the bearer token of a server that asks for one. Without
    /// one it has a token that says nothing: kubectl asks people for a password when it is given no credentials.
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
