//! An embeddable Kubernetes API server: real API semantics without a cluster or an installation.
//!
//! Tests of a controller run against real resourceVersions, conflicts, watch expiry, finalizers, server-side apply and
//! garbage collection. The server needs no etcd and no containers, and starts in milliseconds.
//!
//! # Guarantees
//!
//! - **One sequence of versions.** Every write gets the next resourceVersion. The write is in the history of its resource
//!   before the response is sent, and every read that starts later sees it. A write that changes nothing gets no version and
//!   sends no event.
//! - **A watch delivers every event of its scope exactly once and in order,** or ends with an error. A client that falls
//!   behind the history receives a 410 and never misses an event silently. A watch can resume from any version within the
//!   history.
//! - **A list is a snapshot of one version** across all its pages, or the continue token expires with a 410. The body is
//!   encoded in chunks while the client reads it.
//! - **Every response is one that clients understand:** an object, a list, a watch, or a `Status` with code, reason, details
//!   and causes. No request can crash the server.
//! - **Time is injected.** Timeouts, bookmarks, history and garbage collection follow tokio's time, including paused time.
//!   With a seed, names and uids are the same in every run.
//! - **No task outlives the server.** Dropping the last handle ends every watch. [`ApiServer::shutdown`] waits for the end
//!   of all connections and tasks.
//!
//! # Example
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::{Api, api::{DeleteParams, ListParams, PostParams}};
//! use watchkeeper_apiserver::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::in_process();
//! let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
//!
//! let map = serde_json::from_str(r#"{"metadata": {"generateName": "settings-"}, "data": {"color": "blue"}}"#)?;
//! let mut created = maps.create(&PostParams::default(), &map).await?;
//! let name = created.metadata.name.clone().unwrap_or_default();
//! assert!(created.metadata.uid.is_some() && name.starts_with("settings-"));
//!
//! // An update with an outdated resourceVersion is rejected with a conflict.
//! created.metadata.resource_version = Some("1".to_owned());
//! let refused = maps.replace(&name, &PostParams::default(), &created).await.unwrap_err();
//! assert!(matches!(refused, kube_client::Error::Api(status) if status.is_conflict()));
//!
//! maps.delete(&name, &DeleteParams::default()).await?;
//! assert!(maps.list(&ListParams::default()).await?.items.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Access
//!
//! | method | serves |
//! |---|---|
//! | [`ApiServer::client`] | a `kube` client in this process, without a socket |
//! | [`ApiServer::service`] | a tower service, for clients with their own middleware |
//! | [`ApiServer::listen`], [`ApiServer::listen_tls`] | HTTP or HTTPS, for kubectl and clients in other languages; [`Endpoint::kubeconfig`] returns their kubeconfig |
//!
//! [`ApiServerBuilder`] has the options: tokens, RBAC, controllers, the history window, the clock and the seed. The command
//! `watchkeeper serve` runs a listening server as a program.
//!
//! # Faults
//!
//! [`ApiServer::faults`] rejects, loses and delays requests and cuts watches, so that a test contains the failures that a
//! controller must survive. See [`faults`].
//!
//! # Fidelity
//!
//! The tests compare the server, request by request, with recorded responses of a Kubernetes 1.37 API server. They also
//! drive it with kubectl, client-go, the Python client, kube-rs and this project's informers. `FIDELITY.md` in this crate
//! lists the results and every known difference with its reason. It also lists the fields that are stored without effect
//! because no component acts on them: pods are neither scheduled nor run.
//!
//! # Performance
//!
//! On two otherwise idle cores, the server creates or updates more than ten thousand small pods per second with ten
//! watchers, in a program that uses jemalloc. The `apiserver` suite of the project's benchmarks measures this. A write
//! spends most of its time on parsing, checking and writing JSON in hundreds of small allocations, so the allocator matters
//! most.

mod apply;
mod auth;
#[cfg(test)]
mod complexity;
mod controllers;
mod convert;
mod crd;
mod decode;
mod discovery;
pub mod faults;
mod field;
mod http;
mod kinds;
mod openapi;
mod patch;
mod protobuf;
mod rest;
mod schema;
mod selector;
mod server;
mod status;
mod storage;
mod strategy;
mod table;
mod watch;

pub use auth::tokens::TokenFileError;
pub use http::{ConnectionLimits, Endpoint, ResponseBody};
pub use server::{ApiServer, ApiServerBuilder, ApiService};
pub use table::JsonPath;
pub use watchkeeper_time::{Clock, Sleep, TokioClock};
