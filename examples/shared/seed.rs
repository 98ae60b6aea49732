//! The objects of the embedded server of a lab.

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use serde_json::{Value, json};
use watchkeeper::{client::Error, prelude::*};

use crate::Failure;

/// The namespace, name, node and phase of each pod.
const PODS: [(&str, &str, Option<&str>, &str); 5] = [
    ("default", "test", Some("node-1"), "Running"),
    ("mail", "smtp-0", Some("node-1"), "Running"),
    ("shop", "web-0", Some("node-1"), "Running"),
    ("shop", "web-1", Some("node-2"), "Running"),
    ("shop", "worker-0", None, "Pending"),
];

/// Creates namespaces, nodes and pods.
pub(crate) async fn fill(client: &Client) -> Result<(), Failure> {
    for name in ["mail", "shop"] {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        client.resource().create(&PostParams::default(), &namespace).await?;
    }
    for (name, is_ready) in [("node-1", true), ("node-2", false)] {
        node(client, name, is_ready).await?;
    }
    for (namespace, name, node, phase) in PODS {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": name.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit())}},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "nginx"}]},
        }))?;
        let pods = client.resource::<Pod>().namespace(namespace);
        pods.create(&PostParams::default(), &pod).await?;
        let mut status = json!({"phase": phase});
        if phase == "Running" {
            status["podIP"] = "10.0.0.7".into();
            status["containerStatuses"] = json!([{
                "name": "main", "image": "nginx", "imageID": "", "ready": true, "restartCount": name.len() % 3,
            }]);
        }
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    }
    Ok(())
}

async fn node(client: &Client, name: &str, is_ready: bool) -> Result<(), Error> {
    let status = if is_ready { "True" } else { "False" };
    let nodes = client.resource::<Node>();
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    nodes.create(&PostParams::default(), &node).await?;
    let patch: Value = json!({"status": {
        "capacity": {"cpu": "4", "memory": "8Gi"},
        "conditions": [{"type": "Ready", "status": status, "reason": "Seeded", "message": ""}],
        "nodeInfo": {"kubeletVersion": "v1.37.0", "architecture": "amd64", "operatingSystem": "linux", "osImage": "",
            "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "systemUUID": ""},
    }});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
