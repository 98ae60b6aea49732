//! The Kubernetes API client: one [`Client`], typed and dynamic [resources](rest::ResourceClient), one [`Error`].
//!
//! ```no_run
//! use std::time::Duration;
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_core::params::ListParams;
//! use watchkeeper_client::{Client, wait};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::try_default().await?;
//! let pods = client.resource::<Pod>().namespace("default");
//! let web = pods.get_opt("web").await?;
//! let labelled = pods.list(&ListParams::default().labels("app=web")).await?;
//! pods.await_condition("web", wait::condition_true("Ready"), Duration::from_secs(60)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | kubeconfig and in-cluster configuration, with safe defaults |
//! | [`transport`] | the HTTP stack under a client: TLS, credentials that rotate, limits, warnings |
//! | [`rest`] | requests as values, the [`rest::RestClient`] that sends them, typed resource clients |
//! | [`wait`] | waits for a condition of one object, with a deadline |
//! | [`clientset`] | accessors of every built-in resource, by client-go's names |
//! | [`dynamic`] | names of resources known only at run time |
//! | [`discovery`] | the resources of the server, and the mapping between kinds and resources |
//! | [`list_watch`] | list and watch as streams of objects: the [`list_watch::ListerWatcher`] trait and its sources |
//! | [`decode`] | decoding of bytes to objects: splitting, probing, parsing |
//! | [`narrow`] | views of a kind that contain only the fields a program reads |
//! | [`classify`] | the table from failures of lists and watches to recoveries |
//! | [`mod@error`] | the error of all requests, and its parts |
//! | [`limits`] | memory limits of a response |
//!
//! # Coming from kube-rs or client-go
//!
//! | kube-rs | client-go | here |
//! |---|---|---|
//! | `Api::<Pod>::namespaced(client, "a")` | `clientset.CoreV1().Pods("a")` | `client.resource::<Pod>().namespace("a")` |
//! | `Api::<Pod>::all(client)`, `Api::<Node>::all(client)` | `Pods("")`, `Nodes()` | `client.resource::<Pod>()`, `client.resource::<Node>()` |
//! | `Api::default_namespaced(client)` | | `client.resource::<Pod>().default_namespace()` |
//! | `Api::<DynamicObject>::all_with(client, &resource)` | `dynamic.Resource(gvr)` | [`Client::dynamic`], [`Client::resource_with`] |
//! | `api.replace(name, &params, &object)` | `Update` | [`ResourceClient::update`](rest::ResourceClient::update) |
//! | `await_condition(api, name, conditions::is_deleted(uid))` | `watchtools.UntilWithSync` | [`await_condition`](rest::ResourceClient::await_condition) with [`wait::deleted_uid`], and a deadline |
//! | `conditions::is_crd_established()` | | [`wait::condition_true("Established")`](wait::condition_true) |
//! | `kube::Error` | `apierrors.IsNotFound(err)` | [`Error`], [`Error::is_not_found`] |
//! | | `retry.RetryOnConflict` | [`rest::retry_on_conflict`] |
//!
//! A `kube::Client` and a [`Client`] convert into each other, and so do an `Api<K>` and a
//! [`ResourceClient<K>`](rest::ResourceClient).

pub mod classify;
pub mod clientset;
pub mod config;
pub mod decode;
pub mod discovery;
pub mod dynamic;
pub mod error;
pub mod limits;
pub mod list_watch;
pub mod narrow;
pub mod rest;
pub mod transport;
pub mod wait;

mod bounded;
mod client;

pub use client::{Client, CredentialCounts};
pub use error::Error;
pub use kube_client;
pub use kube_core;
