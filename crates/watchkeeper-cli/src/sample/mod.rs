//! The sample controller: creates a Deployment for each Foo, and reports its availability in the status of the Foo.
//!
//! `watchkeeper demo` and the lab `sample_controller` run this controller.

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

/// Returns the controller without its reconciler: the watched types, the declared access, and the recorder of events.
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

/// Returns the custom resource definition of Foo.
pub fn definition() -> CustomResourceDefinition {
    Foo::crd()
}

/// Waits until the server serves Foos, for at most `within`.
///
/// # Errors
/// Returns an error if the definition is not established in time, or if the server rejects a request.
pub async fn await_served(client: &Client, within: Duration) -> Result<(), Error> {
    let definitions = client.resource::<CustomResourceDefinition>();
    definitions.await_condition(Foo::crd_name(), wait::condition_true("Established"), within).await.map(drop)
}

/// Installs the definition of Foo if it does not exist. Returns whether it was created.
///
/// [`await_served`] waits until Foos can be created.
///
/// # Errors
/// Returns an error if the server rejects the request.
pub async fn install(client: &Client) -> Result<bool, Error> {
    let definitions = client.resource::<CustomResourceDefinition>();
    match definitions.create(&PostParams::default(), &definition()).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}
