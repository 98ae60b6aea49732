//! Kubernetes controllers with the guarantees of client-go and controller-runtime.
//!
//! This crate re-exports the crates of Watchkeeper, so that controllers and operators need one dependency. Its users keep
//! `kube::Client`, the types of `k8s-openapi` and `#[derive(CustomResource)]`.
//!
//! | module | content | crate |
//! |---|---|---|
//! | [`client`] | configuration, REST, clientset, dynamic and discovery clients, list and watch as bounded streams | `watchkeeper-client` |
//! | [`informer`] | shared informers: one watch and one cache per type, indexes, listers, handlers | `watchkeeper-informer` |
//! | [`workqueue`] | a queue of keys: de-duplication, delays, rate limits, priorities, causes | `watchkeeper-workqueue` |
//! | [`controller`] | the reconcile loop, manager, leader election, events, finalizers, RBAC | `watchkeeper-controller` |
//! | `apiserver` | an API server in the same process, with fault injection (feature `apiserver`) | `watchkeeper-apiserver` |
//! | [`prelude`] | the most frequently used names | |
//!
//! # Example
//!
//! An informer of config maps, on an API server in the same process:
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
//! let created = client.resource().namespace("default").create(&PostParams::default(), &map).await?;
//!
//! let version = ResourceVersion::of(&created).ok_or("a stored object has a resourceVersion")?;
//! maps.wait_until(&version).await?; // until the cache contains the write
//! assert!(maps.lister().namespace("default").get("settings").is_ok());
//! # factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | content |
//! |---|---|
//! | `latest` | the types of the newest Kubernetes version; for programs, because libraries should not choose a version |
//! | `derive` | `CustomResource` and the other derives of kube, and schemas for built-in types |
//! | `apiserver` | the module `apiserver`; for tests, usually in `[dev-dependencies]` |
//! | `clap` | the command line flags of a controller program, [`controller::options`] |
//!
//! No feature is enabled by default.
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
//! # Narrow types
//!
//! A controller that reads three fields of a Pod can cache these three fields. [`Narrow`] derives a view of a kind: a type of
//! its own for clients, listers and informers, which decode and keep nothing else. [`client::narrow`] describes paths, types and
//! limitations.
//!
//! ```
//! use watchkeeper::{Narrow, k8s_openapi::api::core::v1::Pod, kube_core::ObjectMeta, prelude::*};
//!
//! /// The fields of a Pod that the controller reads.
//! #[derive(Narrow, Clone, Debug)]
//! #[narrow(Pod)]
//! struct PodView {
//!     metadata: ObjectMeta, // name, namespace, uid, resourceVersion, labels, owners, finalizers, …
//!     #[narrow("spec.nodeName")]
//!     node: Option<String>,
//!     #[narrow("status.phase")]
//!     phase: Option<String>,
//!     #[narrow("spec.containers[].image")]
//!     images: Vec<String>,
//! }
//!
//! # fn example(factory: &SharedInformerFactory) {
//! let pods = factory.informer::<PodView>();
//! # }
//! ```
//!
//! A controller that reads only metadata needs no type:
//! [`metadata_of`](informer::SharedInformerFactory::metadata_of) returns an informer for which the server sends only metadata.
//!
//! # Custom resources
//!
//! kube's derive works unchanged in crates that depend on `kube` with its feature `derive`, and on `k8s-openapi`, `schemars`,
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
//! Without a dependency on `kube`, the feature `derive` of this crate exports the same derive. It needs the path of
//! `kube_core`:
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
pub use kube_core;
pub use watchkeeper_client::{kube_client, narrow::Narrow};

#[cfg(feature = "derive")]
pub use kube_derive::{CustomResource, KubeSchema};

#[cfg(feature = "apiserver")]
pub use watchkeeper_apiserver as apiserver;
pub use watchkeeper_client as client;
pub use watchkeeper_controller as controller;
pub use watchkeeper_informer as informer;
pub use watchkeeper_workqueue as workqueue;

/// The most frequently used names, for `use watchkeeper::prelude::*`.
pub mod prelude {
    pub use kube_core::{
        Resource, ResourceExt,
        params::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    };
    pub use watchkeeper_client::{Client, rest::ResourceClient, wait};
    pub use watchkeeper_controller::{Action, Context, Controller, ReconcileError, Reconciler, Request};
    pub use watchkeeper_informer::{
        Cached, ObjectKey, ResourceVersion, SharedIndexInformer, SharedInformerFactory, event::Event,
        factory::Scope,
    };
    pub use watchkeeper_workqueue::{AddOptions, Cause, WorkQueue};
}
