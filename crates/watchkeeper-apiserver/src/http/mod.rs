//! The HTTP layer: routing of requests to verbs, and encoding of results.

mod access;
mod body;
mod connection;
mod credentials;
mod deadline;
mod discovery;
mod endpoint;
mod health;
mod heavy;
mod limits;
mod listen;
mod metrics;
mod negotiate;
mod path;
mod request_body;
mod respond;
mod service;
mod tls;
mod verb;
mod warning;
mod websocket;
mod yaml;

pub use body::ResponseBody;
pub use endpoint::Endpoint;
pub use limits::ConnectionLimits;
pub use verb::Verb;

pub(crate) use access::AllowedHosts;
pub(crate) use listen::{ListenOptions, Listener};
pub(crate) use path::{ResourcePath, segments};
pub(crate) use service::{Api, Protection};
pub(crate) use tls::TlsIdentity;
pub(crate) use verb::selected_name;

/// Returns the response of an error in JSON.
pub(crate) fn status_response(error: &crate::status::ApiError) -> http::Response<ResponseBody> {
    respond::error(error, negotiate::Media::Json)
}
