//! A simulation of the Deployment controller, which an API server alone does not run.

use serde_json::{Value, json};
use watchkeeper::{
    k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus},
    prelude::*,
};

use super::observer::Observer;
use crate::sample;

/// Sets the status of each Deployment to that of a finished rollout. Returns only if a request fails.
pub(super) async fn simulate(
    observer: &Observer,
    deployments: &ResourceClient<Deployment>,
) -> watchkeeper::client::Error {
    let mut changed = observer.subscribe();
    loop {
        changed.borrow_and_update();
        for deployment in observer.deployments.reader().list() {
            let Some(status) = finished_status(&deployment) else { continue };
            let patch = Patch::Merge(json!({"status": status}));
            match deployments.patch_status(&deployment.name_any(), &PatchParams::default(), &patch).await {
                // The Deployment was deleted in the meantime.
                Err(error) if error.is_not_found() => {}
                Err(error) => return error,
                Ok(_) => {}
            }
        }
        // The sender is in the observer, so the wait cannot fail.
        let _ = changed.changed().await;
    }
}

/// Returns the status of a finished rollout, or `None` if the Deployment has it.
fn finished_status(deployment: &Deployment) -> Option<Value> {
    let replicas = sample::replicas(deployment);
    let generation = deployment.metadata.generation;
    let is_current = |status: &DeploymentStatus| {
        status.observed_generation == generation && status.available_replicas.unwrap_or(0) == replicas
    };
    if deployment.status.as_ref().is_some_and(is_current) {
        return None;
    }
    Some(json!({
        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
        "availableReplicas": replicas,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_gets_the_status_of_its_replicas_once() {
        let mut deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": 2},
            "spec": {"replicas": 3, "selector": {}, "template": {}},
        }))
        .unwrap();
        let status = finished_status(&deployment).unwrap();
        assert_eq!((&status["availableReplicas"], &status["observedGeneration"]), (&json!(3), &json!(2)));
        deployment.status = Some(serde_json::from_value(status).unwrap());
        assert_eq!(finished_status(&deployment), None);
        deployment.metadata.generation = Some(3);
        assert!(finished_status(&deployment).is_some());
    }
}
