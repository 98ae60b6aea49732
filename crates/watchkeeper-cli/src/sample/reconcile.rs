//! What the sample controller does for one Foo.

use std::sync::Arc;

use serde_json::json;
use watchkeeper::{
    controller::{
        Action, Context, ReconcileError, Request,
        events::{EventType, Recorder},
    },
    k8s_openapi::api::apps::v1::Deployment,
    prelude::*,
};

use super::{Foo, FooStatus, available, is_controlled_by, replicas, wanted};

/// The Deployment a Foo wants is somebody else's.
#[derive(Debug, thiserror::Error)]
#[error(
    "Deployment {name} exists and is not controlled by this Foo; delete it, or give the Foo another name for its own"
)]
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
    let client = Client::from(context.client());
    let deployments = client.clientset().apps_v1().deployments(&namespace);

    let tell = |kind, reason: &str, note: String| {
        if let Some(recorder) = context.get::<Recorder>() {
            recorder.event(&*foo, kind, reason, "Reconcile", note);
        }
    };

    let cached = context.lister::<Deployment>()?.namespace(&*namespace).get(name).ok();
    let deployment = match cached {
        None => Arc::new(deployments.create(&PostParams::default(), &wanted(&foo)).await?),
        Some(deployment) if !is_controlled_by(&deployment, &foo) => {
            let error = ResourceExists { name: name.clone() };
            tell(EventType::Warning, "ErrResourceExists", error.to_string());
            return Err(error.into());
        }
        Some(deployment) if replicas(&deployment) != foo.spec.replicas => {
            let scaled = Patch::Merge(json!({"spec": {"replicas": foo.spec.replicas}}));
            Arc::new(deployments.patch(name, &PatchParams::default(), &scaled).await?)
        }
        Some(deployment) => deployment,
    };

    let status = FooStatus {
        available_replicas: available(&deployment),
        observed_generation: foo.metadata.generation,
        conditions: Vec::new(),
    };
    // A write that changes nothing would wake this very reconciler again.
    if foo.status.as_ref() != Some(&status) {
        let foos = client.clientset().resource::<Foo>(&namespace);
        let patch = Patch::Merge(json!({"status": status}));
        foos.patch_status(&foo.name_any(), &PatchParams::default(), &patch).await?;
        tell(EventType::Normal, "Synced", "Foo synced successfully".to_owned());
    }
    Ok(Action::done())
}
