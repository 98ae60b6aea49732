//! The script that every client runs, and the conditions that must hold afterwards.

use std::{collections::BTreeMap, future::Future, net::SocketAddr, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use watchkeeper_tests::{Cluster, ServiceWire, SocketWire, Wire};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The names and versions of objects, which must be equal in a cache and on the server.
pub(crate) type Objects = BTreeMap<String, String>;

/// The state of the server at a version.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) version: String,
    pub(crate) objects: Objects,
}

/// A client with a cache.
pub(crate) trait Subject {
    /// Waits until the cache equals `state`.
    fn becomes(&mut self, state: &State) -> impl Future<Output = ()>;

    /// Creates an object.
    fn create(&mut self, name: &str) -> impl Future<Output = ()>;

    /// Sets `data.k` of an object.
    fn update(&mut self, name: &str, value: &str) -> impl Future<Output = ()>;

    /// Deletes an object.
    fn delete(&mut self, name: &str) -> impl Future<Output = ()>;

    /// Returns the number of relists since the first list.
    fn relists(&self) -> u64;
}

pub(crate) fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "namespace": "default"}})).unwrap()
}

pub(crate) fn objects_of(objects: impl IntoIterator<Item = Arc<ConfigMap>>) -> Objects {
    let entry = |map: Arc<ConfigMap>| {
        (map.metadata.name.clone().unwrap(), map.metadata.resource_version.clone().unwrap())
    };
    objects.into_iter().map(entry).collect()
}

/// Returns the state from the server itself.
async fn truth(cluster: &Cluster) -> State {
    let list: Value = serde_json::from_slice(&cluster.send("GET", MAPS, "").await).unwrap();
    let text = |item: &Value, member: &str| item["metadata"][member].as_str().unwrap().to_owned();
    let items = list["items"].as_array().unwrap();
    let objects = items.iter().map(|item| (text(item, "name"), text(item, "resourceVersion"))).collect();
    State { version: text(&list, "resourceVersion"), objects }
}

async fn behind_its_back(cluster: &Cluster, created: &str, changed: &str, deleted: &str) {
    cluster.send("POST", MAPS, &json!({"metadata": {"name": created}}).to_string()).await;
    cluster.send("PATCH", &format!("{MAPS}/{changed}"), r#"{"data":{"k":"behind"}}"#).await;
    cluster.send("DELETE", &format!("{MAPS}/{deleted}"), "").await;
}

/// Returns a server with some objects.
pub(crate) async fn cluster() -> Cluster {
    let cluster = Cluster::new();
    for number in 0..20 {
        cluster
            .send("POST", MAPS, &json!({"metadata": {"name": format!("m-{number:02}")}}).to_string())
            .await;
    }
    cluster
}

pub(crate) async fn listening(cluster: &Cluster) -> SocketWire {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let endpoint = cluster.server().listen(any_port).await.unwrap();
    SocketWire::to(endpoint.address()).await.unwrap()
}

pub(crate) fn in_process(cluster: &Cluster) -> ServiceWire {
    ServiceWire::to(cluster.server())
}

/// Lists, watches, writes, and continues after each kind of interruption.
pub(crate) async fn run(cluster: &Cluster, wire: &impl Wire, mut client: impl Subject) {
    client.becomes(&truth(cluster).await).await;
    assert_eq!(truth(cluster).await.objects.len(), 20);

    client.create("written").await;
    client.update("m-00", "1").await;
    client.delete("m-01").await;
    let state = truth(cluster).await;
    assert!(state.objects.contains_key("written") && !state.objects.contains_key("m-01"));
    client.becomes(&state).await;

    // The watch resumes: the history contains all missed events.
    let outage = wire.cut();
    behind_its_back(cluster, "resumed", "m-02", "m-03").await;
    drop(outage);
    client.becomes(&truth(cluster).await).await;
    assert_eq!(client.relists(), 0, "a watch that broke was not resumed");

    // The watch cannot resume: the history is compacted, including the deletion events.
    let outage = wire.cut();
    behind_its_back(cluster, "relisted", "m-04", "m-05").await;
    cluster.compact().await;
    drop(outage);
    client.becomes(&truth(cluster).await).await;
    // A client that first lists at its last version is rejected too, and then lists at any version.
    assert!(client.relists() > 0, "history that is gone was not noticed");

    client.create("last").await;
    client.becomes(&truth(cluster).await).await;
}
