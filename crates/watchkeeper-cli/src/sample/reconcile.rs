//! The reconciler of the sample controller.

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

/// The type of the condition that reports whether all replicas of a Foo are available.
pub const READY: &str = "Ready";

/// The error for a Deployment that exists and has another owner.
#[derive(Debug, thiserror::Error)]
#[error("Deployment {name} exists and is not owned by this Foo; delete it or change spec.deploymentName")]
#[non_exhaustive]
pub struct ResourceExists {
    /// The name of the Deployment.
    pub name: String,
}

/// Creates or scales the Deployment of a Foo, and updates the status of the Foo.
///
/// # Errors
/// Returns [`ResourceExists`] if the Deployment has another owner, or the error of a rejected request.
pub async fn reconcile(request: Request<Foo>, context: Context) -> Result<Action, ReconcileError> {
    // The Foo was deleted. The cluster garbage collects its Deployment.
    let Some(foo) = request.object else { return Ok(Action::done()) };
    let namespace = foo.namespace().unwrap_or_default();
    let name = &foo.spec.deployment_name;
    let client = context.client();
    let deployments = client.resource::<Deployment>().namespace(&namespace);
    let record = |kind, reason: &str, note: String| {
        if let Some(recorder) = context.get::<Recorder>() {
            recorder.event(&*foo, kind, reason, "Reconcile", note);
        }
    };

    let cached = context.lister::<Deployment>()?.namespace(&*namespace).get_opt(name)?;
    let deployment = match cached {
        None => Arc::new(deployments.create(&PostParams::default(), &wanted(&foo)).await?),
        Some(deployment) if !owner::is_controlled_by(&*deployment, &*foo) => {
            let error = ResourceExists { name: name.clone() };
            record(EventType::Warning, "ErrResourceExists", error.to_string());
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
        record(EventType::Normal, "Synced", "Foo synced successfully".to_owned());
    }
    Ok(Action::done())
}

/// Updates the status of a Foo if it changes. Returns whether it was written.
///
/// The condition keeps its transition time, so that an unchanged status causes no write and no further reconcile.
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
