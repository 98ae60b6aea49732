//! The Kubernetes controller machinery: what client-go and controller-runtime are to Go.
//!
//! One dependency for people who write controllers and operators. They keep `kube`'s client, the types of `k8s-openapi`
//! and their `#[derive(CustomResource)]`. This crate adds the controller machinery on top of those, and an API server to test
//! with.
//!
//! | module | what it is | the crate |
//! |---|---|---|
//! | [`client`] | configuration, REST, clientset, dynamic and discovery clients, list and watch as bounded streams | `watchkeeper-client` |
//! | [`informer`] | one watch and one cache for everybody, indexes, handlers | `watchkeeper-informer` |
//! | [`workqueue`] | keys to look at again: de-duplicated, delayed, rate limited, with priorities and causes | `watchkeeper-workqueue` |
//! | [`controller`] | the reconcile loop, leader election, what a manager runs | `watchkeeper-controller` |
//! | `apiserver` | an API server in your process (feature `apiserver`) | `watchkeeper-apiserver` |
//! | [`prelude`] | the names most programs use | |
//!
//! # What it looks like
//!
//! An informer of config maps, on a server that is in the same process:
//!
//! ```
//! use watchkeeper::{apiserver::ApiServer, k8s_openapi::api::core::v1::ConfigMap, prelude::*};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = ApiServer::in_process(); // in a program: Client::try_default().await?
//! let client = Client::from(cluster.client());
//!
//! let factory = SharedInformerFactory::new(client.clone());
//! let maps = factory.informer::<ConfigMap>();
//! factory.start();
//! factory.wait_for_sync().await?; // fails with the reason if an informer cannot sync
//!
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("settings".to_owned());
//! let made = client.resource().namespace("default").create(&PostParams::default(), &map).await?;
//!
//! let version = ResourceVersion::of(&made).ok_or("what a server stores has a version")?;
//! maps.wait_until(&version).await?; // the cache has seen the write
//! assert!(maps.lister().namespace("default").get("settings").is_ok());
//! # factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `latest` | the newest Kubernetes types: for programs, which choose a version; libraries leave the choice to them |
//! | `derive` | `CustomResource` and the other derives of kube, and schemas for built-in types |
//! | `apiserver` | the module `apiserver`; for tests, usually in `[dev-dependencies]` |
//! | `clap` | the flags of a controller program, [`controller::options`] |
//!
//! None is on unless asked for.
//!
//! # The client
//!
//! [`Client`](client::Client) is the one client: for typed and dynamic resources, in a [`Context`](controller::Context), and in
//! every function that reads or writes objects. All of its verbs return the same [`Error`](client::Error).
//!
//! ```
//! use std::time::Duration;
//! use watchkeeper::{k8s_openapi::api::core::v1::{Node, Pod}, prelude::*};
//!
//! # async fn example(client: Client) -> Result<(), watchkeeper::client::Error> {
//! let pods = client.resource::<Pod>().namespace("default");
//! let web = pods.get_opt("web").await?;
//! let nodes = client.resource::<Node>().list(&ListParams::default()).await?;
//! pods.await_condition("web", wait::condition_true("Ready"), Duration::from_secs(60)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! `kube::Client` converts into it and back with `From`, with limits and deadlines. Functions that take a typed resource
//! accept `kube::Api<K>` too:
//!
//! ```
//! use watchkeeper::{
//!     controller::objects::write::create_or_update, k8s_openapi::api::core::v1::ConfigMap, prelude::*,
//! };
//!
//! # async fn example(client: kube::Client, settings: ConfigMap) -> Result<(), ReconcileError> {
//! let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
//! create_or_update(&maps, settings, |settings| {
//!     settings.data.get_or_insert_default().insert("mode".to_owned(), "fast".to_owned());
//!     Ok::<_, ReconcileError>(())
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Custom resources
//!
//! kube's derive works as it is for crates that depend on `kube` with its feature `derive`, and on `k8s-openapi`, `schemars`,
//! `serde` and `serde_json`:
//!
//! ```
//! use kube::CustomResource;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use watchkeeper::prelude::*;
//!
//! #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
//! #[kube(group = "example.com", version = "v1", kind = "Foo", namespaced)]
//! struct FooSpec {
//!     replicas: i32,
//! }
//!
//! fn foos(client: &Client) -> ResourceClient<Foo> {
//!     client.resource().namespace("default")
//! }
//! # fn main() {
//! # use watchkeeper::kube_core::CustomResourceExt;
//! # assert_eq!(Foo::crd_name(), "foos.example.com");
//! # }
//! ```
//!
//! Without `kube` among the dependencies, the feature `derive` of this crate exports the same derive, which then has to be given
//! the path of `kube_core`:
//!
//! ```
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! use watchkeeper::CustomResource;
//!
//! #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
//! #[kube(group = "example.com", version = "v1", kind = "Bar", namespaced, crates(kube_core = "watchkeeper::kube_core"))]
//! struct BarSpec {
//!     replicas: i32,
//! }
//! # fn main() {}
//! ```

pub use k8s_openapi;
pub use kube_client;
pub use kube_core;

#[cfg(feature = "derive")]
pub use kube_derive::{CustomResource, KubeSchema};

#[cfg(feature = "apiserver")]
pub use watchkeeper_apiserver as apiserver;
pub use watchkeeper_client as client;
pub use watchkeeper_controller as controller;
pub use watchkeeper_informer as informer;
pub use watchkeeper_workqueue as workqueue;

/// The names most programs use: `use watchkeeper::prelude::*`.
pub mod prelude {
    pub use kube_core::{
        Resource, ResourceExt,
        params::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    };
    pub use watchkeeper_client::{Client, rest::ResourceClient, wait};
    pub use watchkeeper_controller::{Action, Context, Controller, ReconcileError, Reconciler, Request};
    pub use watchkeeper_informer::{
        ObjectKey, ResourceVersion, SharedIndexInformer, SharedInformerFactory, event::Event, factory::Scope,
    };
    pub use watchkeeper_workqueue::{AddOptions, Cause, WorkQueue};
}
