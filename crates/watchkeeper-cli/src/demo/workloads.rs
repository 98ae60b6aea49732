//! Plays the part of the cluster's own Deployment controller, which an API server alone does not have.

use serde_json::{Value, json};
use watchkeeper::{
    k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus},
    prelude::*,
};

use super::eyes::Eyes;
use crate::sample;

/// Says of every Deployment that all its replicas run, as soon as they are asked for. Does not end.
pub(super) async fn play(
    eyes: &Eyes,
    deployments: &ResourceClient<Deployment>,
) -> watchkeeper::client::Error {
    let mut changed = eyes.subscribe();
    loop {
        changed.borrow_and_update();
        for deployment in eyes.deployments.reader().list() {
            let Some(status) = wanted_status(&deployment) else { continue };
            let patch = Patch::Merge(json!({"status": status}));
            match deployments.patch_status(&deployment.name_any(), &PatchParams::default(), &patch).await {
                // It was deleted meanwhile.
                Err(error) if error.is_not_found() => {}
                Err(error) => return error,
                Ok(_) => {}
            }
        }
        // The sender is in the eyes.
        let _ = changed.changed().await;
    }
}

/// The status that a Deployment would have by now, unless it has it.
fn wanted_status(deployment: &Deployment) -> Option<Value> {
    let replicas = sample::replicas(deployment);
    let generation = deployment.metadata.generation;
    let is_right = |status: &DeploymentStatus| {
        status.observed_generation == generation && status.available_replicas.unwrap_or(0) == replicas
    };
    if deployment.status.as_ref().is_some_and(is_right) {
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
        let status = wanted_status(&deployment).unwrap();
        assert_eq!((&status["availableReplicas"], &status["observedGeneration"]), (&json!(3), &json!(2)));
        deployment.status = Some(serde_json::from_value(status).unwrap());
        assert_eq!(wanted_status(&deployment), None);
        deployment.metadata.generation = Some(3);
        assert!(wanted_status(&deployment).is_some());
    }
}
