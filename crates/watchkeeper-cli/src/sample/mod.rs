//! The sample controller: a Foo wants a Deployment, and tells how far that has come.
//!
//! The same controller runs in `watchkeeper demo` and in the lab `sample_controller`.

mod deployment;
mod foo;
mod reconcile;

use std::time::Duration;

use watchkeeper::{
    client::Error,
    controller::{Controller, access::Verb, events::Recorder},
    informer::status::SyncError,
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

use crate::seen::Changes;

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

/// Waits until the server serves Foos, for so long at most. False if it does not by then.
///
/// # Errors
/// If the server refuses to show its definitions.
pub async fn served(client: &Client, within: Duration) -> Result<bool, SyncError> {
    let factory = SharedInformerFactory::new(client.clone());
    let name = Foo::crd_name();
    let scope = Scope::all().fields(format!("metadata.name={name}"));
    let definitions = factory.informer_in::<CustomResourceDefinition>(scope);
    let changes = Changes::default();
    changes.count(&definitions).map_err(|_| SyncError::Stopped)?;
    factory.start();
    definitions.wait_for_sync(Some(within)).await?;
    let reader = definitions.reader();
    let is_served = || reader.get(name).filter(|definition| is_established(definition)).map(drop);
    let served = changes.until(within, is_served).await;
    factory.shutdown().await;
    Ok(served.is_some())
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}

/// Installs the definition of Foo, unless it is there. Says whether it did; [`served`] waits until it can be used.
///
/// # Errors
/// If the server refuses.
pub async fn install(client: &Client) -> Result<bool, Error> {
    let definitions = client.clientset().cluster_resource::<CustomResourceDefinition>();
    match definitions.create(&PostParams::default(), &definition()).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}
