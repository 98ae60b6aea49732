//! Kubeconfig and in-cluster configuration, with safe defaults.
//!
//! [`Loader`] finds a configuration, [`Kubeconfig`] is the content of the files, and [`ClientConfig`] is the
//! configuration of one client.
//!
//! The types of the files and their merge are kube's. The following differs from `kube_client::Config`,
//! either because client-go behaves this way or because it is safer:
//!
//! - files of a `KUBECONFIG` list that do not exist are skipped;
//! - empty values count as absent: an empty `current-context` does not hide the one of the next file, an
//!   empty path is not the directory of the file, an empty bundle is not an empty trust store;
//! - a context that refers to a missing user is an error instead of an anonymous client;
//! - a broken kubeconfig is an error even in a pod, instead of a fallback to the service account;
//! - the same name twice in a section, a wrong `kind` or `apiVersion`, a password together with a token, and
//!   a certificate authority together with `insecure-skip-tls-verify` are errors;
//! - `tokenFile` takes precedence over `token` while it can be read;
//! - `NO_PROXY` is compared with the API server, and loopback is never proxied;
//! - size, depth and aliases are limited, and errors do not quote the file;
//! - exec plugins run with a time limit, without a terminal, and only if an
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
