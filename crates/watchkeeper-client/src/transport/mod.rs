//! The HTTP stack of a client: TLS, rotating credentials, limits and warnings.
//!
//! [`ClientConfig::into_client`](crate::config::ClientConfig::into_client) assembles the stack. From the
//! socket up:
//!
//! | layer | function |
//! |---|---|
//! | TCP | keepalive, a limit on unacknowledged data, an optional proxy |
//! | TLS | server verification on every path, client certificates, both replaceable at run time |
//! | pool | HTTP/1.1 or, if enabled, HTTP/2; bounded response heads; a connect timeout |
//! | exchange | server address, `User-Agent`, impersonation, credential, one retry after a 401, warnings |
//!
//! Redirects are not followed, and requests are not retried: that is left to callers that know the effect of
//! a request.

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

pub(crate) use credentials::{Credentials, ExecPlugin, ExecRunner, FileSource, InlineOrFile, Rotating};
pub(crate) use headers::{DefaultHeaders, default_user_agent};
pub(crate) use pool::{Http2KeepAlive, Pool, PoolSettings};
pub(crate) use proxy::Proxy;
pub(crate) use service::TransportService;
pub(crate) use tls::{ServerName, TlsMaterial, TlsSettings, server_name};
