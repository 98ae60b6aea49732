//! A Kubernetes API server to embed: real semantics, no cluster, nothing to install.
//!
//! A controller that is tested against it is tested against resourceVersions, conflicts, watches that expire, finalizers,
//! server-side apply and garbage collection as an API server has them; without etcd, without containers, in milliseconds.
//!
//! # What it promises
//!
//! - **One sequence of versions.** Every write gets the next resourceVersion, is in the history of its resource before it is
//!   answered, and is seen by every read that starts later. A write that changes nothing has no version and no event.
//! - **A watch sends every event of its scope, once, in order,** or ends with an error that says so: a reader that falls
//!   behind the history is told, never left with a gap. From any version within the history it can be resumed.
//! - **A list is of one moment,** over all its pages, or the token says that the moment has passed. It is written as it is
//!   read: what it holds beyond the store is a piece of text.
//! - **Every answer is one a client knows.** Whatever is sent, what comes back is an object, a list, a watch or a `Status` with
//!   code, reason, details and causes. Nothing that is sent can end the server.
//! - **Time is the caller's.** With tokio's paused time, timeouts, bookmarks, history and garbage collection all run on it;
//!   with a seed, names and uids are the same in every run.
//! - **Nothing outlives it.** The last handle that is dropped ends every watch, and [`ApiServer::shutdown`] waits for that.
//!
//! # What it looks like
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
//! // Whoever has not seen the latest version is refused.
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
//! [`ApiServer::listen`] and [`ApiServer::listen_tls`] serve the same objects to kubectl and to other languages, with a kubeconfig
//! from [`Endpoint::kubeconfig`]; the example `serve` is that as a program. [`ApiServer::service`] is the server as a tower
//! service, for clients that put something between themselves and it. [`ApiServerBuilder`] has the options: tokens, RBAC,
//! controllers, how far history reaches back, the clock, the seed.
//!
//! # How true it is
//!
//! It is compared, step by step, with recorded answers of a real API server of Kubernetes 1.37, and driven by kubectl,
//! client-go, the Python client, kube-rs and this project's own informers in its tests. `FIDELITY.md` beside this crate has the result, every
//! known difference with its reason, and what is stored and has no effect because the component that would act on it
//! is not here: no pod is scheduled or run.
//!
//! # How fast it is
//!
//! On two cores that have nothing else to do more than ten thousand small pods are created or updated in a second, with ten
//! watchers told of each, in a program whose allocator is jemalloc; the `apiserver` suite of the project's benchmarks measures
//! it. Most of a write is reading, checking and writing JSON in hundreds of small blocks, so where that matters the allocator is
//! the first thing to try.

mod apply;
mod auth;
mod clock;
#[cfg(test)]
mod complexity;
mod controllers;
mod convert;
mod crd;
mod decode;
mod discovery;
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
pub use clock::{Clock, Sleep, TokioClock};
pub use http::{ConnectionLimits, Endpoint, ResponseBody};
pub use server::{ApiServer, ApiServerBuilder, ApiService};
