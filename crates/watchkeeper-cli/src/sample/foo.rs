//! The sample's resource: `foos.samplecontroller.example.com`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watchkeeper::{CustomResource, k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition};

/// The desired Deployment of a Foo.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "samplecontroller.example.com",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Deployment", "type": "string", "jsonPath": ".spec.deploymentName"}"#,
    printcolumn = r#"{"name": "Wanted", "type": "integer", "jsonPath": ".spec.replicas"}"#,
    printcolumn = r#"{"name": "Available", "type": "integer", "jsonPath": ".status.availableReplicas"}"#,
    crates(kube_core = "watchkeeper::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    pub deployment_name: String,
    /// The number of replicas of the Deployment.
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
}

/// The observed state of a Foo.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// The number of available replicas.
    #[serde(default)]
    pub available_replicas: i32,
    /// The generation of the Foo that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The conditions. `Ready` is true if the Foo owns the Deployment and all replicas are available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
