//! Kubeconfig and in-cluster configuration, with safe defaults.
//!
//! [`Loader`] finds a configuration, [`Kubeconfig`] is what the files say, [`ClientConfig`] is what a client is
//! made from.
//!
//! The types of the files are kube's, and so is the merge of two of them. What differs from
//! `kube_client::Config`, because client-go does it so or because it is safer:
//!
//! - files of a `KUBECONFIG` list that do not exist are skipped;
//! - empty values count as absent: an empty `current-context` does not hide the next file's, an empty path is
//!   not the directory of the file, an empty bundle is not a trust store without authorities;
//! - a context that names a missing user is an error, not an anonymous client;
//! - a broken kubeconfig is an error even in a pod, not a reason to use the service account;
//! - the same name twice in a section, a wrong `kind` or `apiVersion`, a password beside a token, and a
//!   certificate authority beside `insecure-skip-tls-verify` are errors;
//! - `tokenFile` goes before `token` for as long as it can be read;
//! - `NO_PROXY` is compared with the API server, and loopback is never proxied;
//! - size, depth and aliases are bounded, and errors quote nothing of the file;
//! - exec plugins run within a time limit, without a terminal, and only if an
//!   [`ExecPolicy`](crate::transport::ExecPolicy) allows them (the default does).

mod build;
mod client_config;
mod environment;
mod error;
mod in_cluster;
mod kubeconfig;
mod loader;
mod proxy;
mod select;
pub(crate) mod yaml;

pub use client_config::ClientConfig;
pub use environment::Environment;
pub use error::ConfigError;
pub use kubeconfig::{ContextInfo, Kubeconfig};
pub use loader::Loader;

use proxy::proxy_from_environment;
