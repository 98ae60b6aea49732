//! The pods of the suite as their writers send them: a replica set controller creates them, and a kubelet
//! reports their status. On the server they become the pods of the other suites, of about 9 KB.

use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use super::client::Client;
use crate::suite::RunFailure;
use crate::suites::cluster_pods;

/// The path of all pods.
pub(super) const PATH: &str = "/api/v1/namespaces/default/pods";

/// The path for creating pods, with the field manager of the replica set controller.
pub(super) const CREATE: &str = "/api/v1/namespaces/default/pods?fieldManager=kube-controller-manager";

/// The shape of the pods that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Pods as tests and small controllers write them: one container with a port, resources and two
    /// variables, four labels, an owner. About 800 bytes; 1.9 KB on the server, with defaults and managers.
    Plain,
    /// Pods as in a large cluster: about 5 KB sent, 9 KB on the server.
    Cluster,
}

/// Pods of an existing replica set, so that garbage collection keeps them.
#[derive(Debug, Clone)]
pub(super) struct Pods {
    owner_uid: String,
}

impl Pods {
    /// Creates the owner.
    pub(super) async fn owned(server: &ApiServer) -> Result<Self, RunFailure> {
        let labels = json!({"app": "svc"});
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "svc"},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "svc", "image": "registry.example.com/apps/svc:1.8.1"}]},
                },
            },
        });
        let path = "/apis/apps/v1/namespaces/default/replicasets";
        let owner = Client::of(server).value(Method::POST, path, owner.to_string()).await?;
        let uid = owner.pointer("/metadata/uid").and_then(Value::as_str).ok_or("an owner without a uid")?;
        Ok(Self { owner_uid: uid.to_owned() })
    }

    /// Returns the name of a pod.
    pub(super) fn name(index: u64) -> String {
        format!("svc-{index:06}")
    }

    /// Returns a pod as it is created, and its later status.
    pub(super) fn pod(&self, index: u64) -> Result<(Value, Value), RunFailure> {
        let mut text = String::from(r#"{"apiVersion":"v1","kind":"Pod","#);
        cluster_pods::push_pod(&mut text, index);
        let mut pod: Value = serde_json::from_str(&text)?;
        let metadata = pod["metadata"].as_object_mut().ok_or("a pod without metadata")?;
        for set_by_server in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(set_by_server);
        }
        metadata.insert("name".into(), Self::name(index).into());
        metadata.insert("namespace".into(), "default".into());
        metadata.insert("generateName".into(), "svc-".into());
        let owner = &mut metadata["ownerReferences"][0];
        owner["name"] = "svc".into();
        owner["uid"] = self.owner_uid.as_str().into();
        let status = pod["status"].take();
        if let Some(members) = pod.as_object_mut() {
            members.remove("status");
        }
        Ok((pod, status))
    }

    /// Returns the bodies that create the first `count` pods.
    pub(super) fn creates(&self, shape: Shape, count: u64) -> Result<Vec<String>, RunFailure> {
        let body = |index| match shape {
            Shape::Plain => Ok(self.plain(index).to_string()),
            Shape::Cluster => Ok(self.pod(index)?.0.to_string()),
        };
        (0..count).map(body).collect()
    }

    fn plain(&self, index: u64) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": Self::name(index), "namespace": "default", "generateName": "svc-",
                "labels": {"app": "svc", "pod-template-hash": "6d4cf56db6", "team": format!("team-{}", index % 7), "tier": "web"},
                "annotations": {"checksum/config": format!("{index:08x}")},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "svc", "uid": self.owner_uid,
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"containers": [{
                "name": "svc", "image": "registry.example.com/apps/svc:1.8.1",
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu-1"}],
                "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
            }]},
        })
    }

    /// Stores a pod as a cluster does: created, and with the status from its kubelet. Returns the size of the
    /// pod as read.
    pub(super) async fn store(&self, client: &mut Client, index: u64) -> Result<usize, RunFailure> {
        let (pod, status) = self.pod(index)?;
        let mut pod: Value = client.value(Method::POST, CREATE, pod.to_string()).await?;
        pod["status"] = status;
        let path = format!("{PATH}/{}/status?fieldManager=kubelet", Self::name(index));
        Ok(client.done(Method::PUT, &path, pod.to_string()).await?.len())
    }
}
