//! HTTP: from a request to a verb, and from its answer to a response.

mod body;
mod discovery;
mod endpoint;
mod health;
mod listen;
mod metrics;
mod negotiate;
mod path;
mod respond;
mod service;
mod tls;
mod yaml;

pub use body::ResponseBody;
pub use endpoint::Endpoint;

pub(crate) use listen::Listener;
pub(crate) use service::Api;
pub(crate) use tls::Identity;
