//! The HTTP stack under a client: TLS, credentials that rotate, limits, warnings.
//!
//! [`ClientConfig::into_client`](crate::config::ClientConfig::into_client) puts it together. From the socket up:
//!
//! | layer | what it adds |
//! |---|---|
//! | TCP | keepalive, a bound on unacknowledged bytes, an optional proxy |
//! | TLS | server verification on every path, client certificates, both replaced while running |
//! | pool | HTTP/1.1 or, if asked for, HTTP/2; bounded response heads; a deadline for connecting |
//! | exchange | server address, `User-Agent`, impersonation, credential, one more try after a 401, warnings |
//!
//! It follows no redirects and has no retries of its own: those belong to whoever knows what a request does.

mod clock;
mod connect;
mod credentials;
mod error;
mod headers;
mod pool;
mod proxy;
mod service;
mod tls;
mod warning;

pub use credentials::{Credential, CredentialError, CredentialSource, ExecError, ExecPolicy};
pub use error::TransportError;
pub use headers::{HeaderError, Impersonation};
pub use proxy::ProxyError;
pub use warning::{CollectWarnings, IgnoreWarnings, LogWarnings, Warning, WarningHandler};

pub(crate) use credentials::{Credentials, ExecPlugin, ExecRunner, FileSource, Input, Rotating};
pub(crate) use headers::{DefaultHeaders, default_user_agent};
pub(crate) use pool::{Http2KeepAlive, Pool, PoolSettings};
pub(crate) use proxy::Proxy;
pub(crate) use service::ApiService;
pub(crate) use tls::{ServerName, TlsMaterial, TlsSettings, server_name};
