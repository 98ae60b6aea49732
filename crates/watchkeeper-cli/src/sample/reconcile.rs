//! What the sample controller does for one Foo.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use watchkeeper::{
    client::Error,
    controller::{
        Action, Context, ReconcileError, Request,
        events::{EventType, Recorder},
        objects::{
            conditions::{self, NewCondition},
            owner,
        },
    },
    k8s_openapi::api::apps::v1::Deployment,
    prelude::*,
};

use super::{Foo, available, replicas, wanted};

/// The condition that says whether a Foo has what it wants.
pub const READY: &str = "Ready";

/// The Deployment a Foo wants is somebody else's.
#[derive(Debug, thiserror::Error)]
#[error("Deployment {name} exists and is not this Foo's; delete it, or name another")]
#[non_exhaustive]
pub struct ResourceExists {
    /// The Deployment.
    pub name: String,
}

/// Brings the Deployment of a Foo to where the Foo wants it, and tells the Foo how far it has come.
///
/// # Errors
/// If the Deployment of that name is somebody else's, or the server refuses.
pub async fn reconcile(request: Request<Foo>, context: Context) -> Result<Action, ReconcileError> {
    // Gone: what it owned is collected by the cluster, so there is nothing left to do.
    let Some(foo) = request.object else { return Ok(Action::done()) };
    let namespace = foo.namespace().unwrap_or_default();
    let name = &foo.spec.deployment_name;
    let client = context.client();
    let deployments = client.resource::<Deployment>().namespace(&namespace);
    let tell = |kind, reason: &str, note: String| {
        if let Some(recorder) = context.get::<Recorder>() {
            recorder.event(&*foo, kind, reason, "Reconcile", note);
        }
    };

    let cached = context.lister::<Deployment>()?.namespace(&*namespace).get(name).ok();
    let deployment = match cached {
        None => Arc::new(deployments.create(&PostParams::default(), &wanted(&foo)).await?),
        Some(deployment) if !owner::is_controlled_by(&*deployment, &*foo) => {
            let error = ResourceExists { name: name.clone() };
            tell(EventType::Warning, "ErrResourceExists", error.to_string());
            let not_ready = NewCondition::new(READY, false, "ErrResourceExists").message(error.to_string());
            write_status(&client, &foo, 0, not_ready).await?;
            return Err(error.into());
        }
        Some(deployment) if replicas(&deployment) != foo.spec.replicas => {
            let scaled = Patch::Merge(json!({"spec": {"replicas": foo.spec.replicas}}));
            Arc::new(deployments.patch(name, &PatchParams::default(), &scaled).await?)
        }
        Some(deployment) => deployment,
    };

    let available = available(&deployment);
    let is_ready = available == foo.spec.replicas;
    let reason = if is_ready { "Available" } else { "Waiting" };
    let ready = NewCondition::new(READY, is_ready, reason)
        .message(format!("{available} of {} replicas are available", foo.spec.replicas));
    if write_status(&client, &foo, available, ready).await? && is_ready {
        tell(EventType::Normal, "Synced", "Foo synced successfully".to_owned());
    }
    Ok(Action::done())
}

/// Tells a Foo how far it has come, if it does not say so already: a write that changes nothing would wake this very
/// reconciler again.
async fn write_status(
    client: &Client,
    foo: &Foo,
    available: i32,
    ready: NewCondition,
) -> Result<bool, Error> {
    let mut status = foo.status.clone().unwrap_or_default();
    status.available_replicas = available;
    status.observed_generation = foo.metadata.generation;
    conditions::set(
        &mut status.conditions,
        &ready.observed_generation(foo.metadata.generation),
        Timestamp::now(),
    );
    if foo.status.as_ref() == Some(&status) {
        return Ok(false);
    }
    let foos = client.resource::<Foo>().namespace_of(foo);
    let patch = Patch::Merge(json!({"status": status}));
    foos.patch_status(&foo.name_any(), &PatchParams::default(), &patch).await?;
    Ok(true)
}
