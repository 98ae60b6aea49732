//! The sample controller: a Foo wants a Deployment, and tells how far that has come.
//!
//! The same controller runs in `watchkeeper demo` and in the lab `sample_controller`.

mod deployment;
mod foo;
mod reconcile;

use std::time::Duration;

use watchkeeper::{
    client::Error,
    controller::{Controller, events::Recorder, rbac::Verb},
    k8s_openapi::{
        api::apps::v1::Deployment,
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube_core::CustomResourceExt as _,
    prelude::*,
};

pub use self::{
    deployment::{available, replicas, wanted},
    foo::{Foo, FooSpec, FooStatus},
    reconcile::{READY, ResourceExists, reconcile},
};

/// The name of the controller, in events, metrics and logs.
pub const NAME: &str = "sample-controller";

/// The controller, without its reconciler: what it watches, what it does to the API, and where its events go.
pub fn controller(factory: &SharedInformerFactory, recorder: Recorder) -> Controller<Foo> {
    Controller::<Foo>::on(factory)
        .named(NAME)
        .with(recorder)
        .owns::<Deployment>()
        .workers(2)
        .timeout(Duration::from_secs(30))
        .uses::<Deployment>(&[Verb::Create, Verb::Patch])
        .uses_status::<Foo>(&[Verb::Patch])
}

/// The definition of Foo.
pub fn definition() -> CustomResourceDefinition {
    Foo::crd()
}

/// Waits until the server serves Foos, for at most `within`.
///
/// # Errors
/// If the definition is not established in time, or if the server rejects the request for it.
pub async fn await_served(client: &Client, within: Duration) -> Result<(), Error> {
    let definitions = client.resource::<CustomResourceDefinition>();
    definitions.await_condition(Foo::crd_name(), wait::condition_true("Established"), within).await.map(drop)
}

/// Installs the definition of Foo, unless it is there. Returns whether it did; [`await_served`] waits until it can be used.
///
/// # Errors
/// If the server refuses.
pub async fn install(client: &Client) -> Result<bool, Error> {
    let definitions = client.resource::<CustomResourceDefinition>();
    match definitions.create(&PostParams::default(), &definition()).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}
