//! The pods of the suite as their writers send them: the controller of a replica set creates them, a kubelet tells their
//! status. What comes of it on the server are the pods of the other suites, of about 9 KB.

use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use super::client::Client;
use crate::suite::RunFailure;
use crate::suites::cluster_pods;

/// Where all pods are.
pub(super) const PATH: &str = "/api/v1/namespaces/default/pods";

/// Creates, as the controller of a replica set names itself.
pub(super) const CREATE: &str = "/api/v1/namespaces/default/pods?fieldManager=kube-controller-manager";

/// Which pods are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// As tests and small controllers write them: one container with a port, resources and two variables, four labels, an
    /// owner. About 800 bytes; 1.9 KB on the server, with defaults and managers.
    Plain,
    /// As a large cluster has them: about 5 KB sent, 9 KB on the server.
    Cluster,
}

/// Pods of a replica set that exists, so that garbage collection lets them be.
#[derive(Debug, Clone)]
pub(super) struct Pods {
    owner_uid: String,
}

impl Pods {
    /// Makes the owner.
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

    /// The name of a pod.
    pub(super) fn name(index: u64) -> String {
        format!("svc-{index:06}")
    }

    /// A pod as it is created, and the status it gets later.
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

    /// Bodies that create the first `count` pods.
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

    /// Stores a pod as a cluster has it: created, and with the status its kubelet told. Answers its bytes as they are read.
    pub(super) async fn store(&self, client: &mut Client, index: u64) -> Result<usize, RunFailure> {
        let (pod, status) = self.pod(index)?;
        let mut pod: Value = client.value(Method::POST, CREATE, pod.to_string()).await?;
        pod["status"] = status;
        let path = format!("{PATH}/{}/status?fieldManager=kubelet", Self::name(index));
        Ok(client.done(Method::PUT, &path, pod.to_string()).await?.len())
    }
}
