//! Everything that talks to a Kubernetes API server, in one crate, so that nothing else knows how.
//!
//! | module | what it is |
//! |---|---|
//! | [`config`] | kubeconfig and in-cluster configuration, with safe defaults |
//! | [`transport`] | the HTTP stack under a client: TLS, credentials that rotate, limits, warnings |
//! | [`rest`] | requests as values, the [`rest::RestClient`] that sends them, typed resource clients |
//! | [`clientset`] | every built-in group and version, generated |
//! | [`dynamic`] | any resource by group, version and resource name |
//! | [`discovery`] | what the server serves, and the mapping between kinds and resources |
//! | [`list_watch`] | list and watch as streams of objects, and the [`list_watch::ListerWatcher`] seam |
//! | [`decode`] | bytes to objects: splitting, probing, cutting, parsing |
//! | [`classify`] | one table from errors to what to do next |
//! | [`mod@error`] | what can go wrong between a request and its result |
//! | [`limits`] | how much a server may make us hold |

pub mod classify;
pub mod clientset;
pub mod config;
pub mod decode;
pub mod discovery;
pub mod dynamic;
pub mod error;
pub mod limits;
pub mod list_watch;
pub mod rest;
pub mod transport;

mod client;

pub use client::{Client, CredentialCounts};
pub use error::Error;
pub use kube_client;
pub use kube_core;
