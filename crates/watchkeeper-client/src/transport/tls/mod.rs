//! TLS certificates, keys and the connector that uses them.

#[cfg(not(feature = "rustls-tls"))]
mod absent;
#[cfg(feature = "rustls-tls")]
mod connector;
#[cfg(feature = "rustls-tls")]
mod identity;
#[cfg(feature = "rustls-tls")]
mod roots;

#[cfg(not(feature = "rustls-tls"))]
pub(crate) use absent::{ClientIdentity, Roots, ServerName, server_name, wrap};
#[cfg(feature = "rustls-tls")]
pub(crate) use connector::{server_name, wrap};
#[cfg(feature = "rustls-tls")]
pub(crate) use identity::ClientIdentity;
#[cfg(feature = "rustls-tls")]
pub(crate) use roots::Roots;
#[cfg(feature = "rustls-tls")]
pub(crate) type ServerName = rustls::pki_types::ServerName<'static>;

/// Settings of server verification, other than the certificates.
#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    /// The name to verify in the server's certificate, if it is not the host of the URL.
    pub(crate) server_name: Option<ServerName>,
    /// Whether any certificate is accepted.
    pub(crate) accept_invalid_certs: bool,
}

/// The certificates of one connector. A change of either requires a new connector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TlsMaterial {
    pub(crate) identity: Option<ClientIdentity>,
    pub(crate) roots: Option<Roots>,
}
