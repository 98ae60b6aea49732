//! The objects that a server publishes about itself.

use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use crate::support::{Cluster, version};

const SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
const RANGE: &str = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";

/// Waits until the object at `path` has another uid than `uid`.
async fn restored(cluster: &Cluster, path: &str, uid: &Value) -> Value {
    loop {
        let (code, found) = cluster.get(path).await;
        if code == 200 && found["metadata"]["uid"] != *uid {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_kubernetes_service_exists_from_the_first_request() {
    let cluster = Cluster::new();
    let (_, service) = cluster.get(SERVICE).await;
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1", "{service}");
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    assert_eq!(service["spec"]["ports"][0]["name"], "https");
    assert_eq!(service["metadata"]["labels"], json!({"component": "apiserver", "provider": "kubernetes"}));
    let (_, endpoints) = cluster.get(ENDPOINTS).await;
    let (_, slice) = cluster.get(SLICE).await;
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], slice["endpoints"][0]["addresses"][0]);
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "kubernetes");
    let (_, range) = cluster.get(RANGE).await;
    assert_eq!(range["spec"]["cidrs"], json!(["10.96.0.0/12"]));
    assert_eq!(range["status"]["conditions"][0]["status"], "True", "{range}");
}

#[tokio::test(start_paused = true)]
async fn the_kubernetes_service_and_its_endpoints_are_recreated() {
    let cluster = Cluster::new();
    for path in [SERVICE, ENDPOINTS, SLICE, RANGE] {
        let (_, first) = cluster.get(path).await;
        cluster.ok("DELETE", path, Value::Null).await;
        restored(&cluster, path, &first["metadata"]["uid"]).await;
    }
    cluster.patch(ENDPOINTS, json!({"subsets": null})).await;
    loop {
        let (_, endpoints) = cluster.get(ENDPOINTS).await;
        if endpoints["subsets"][0]["ports"][0]["name"] == "https" {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_endpoints_have_the_port_the_server_listens_on() {
    let server = ApiServer::builder().seed(7).controllers(false).build();
    let cluster = Cluster { server };
    let endpoint = cluster.server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let port = endpoint.address().port();
    let (_, endpoints) = cluster.get(ENDPOINTS).await;
    assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], port);
    let (_, slice) = cluster.get(SLICE).await;
    assert_eq!(slice["ports"][0]["port"], port);
    cluster.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_ip_has_an_ip_address_object() {
    let cluster = Cluster::new();
    let services = "/api/v1/namespaces/default/services";
    let created = cluster
        .ok("POST", services, json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}))
        .await;
    let address = created["spec"]["clusterIP"].as_str().unwrap();
    let path = format!("/apis/networking.k8s.io/v1/ipaddresses/{address}");
    let (_, found) = cluster.get(&path).await;
    let parent = json!({"resource": "services", "namespace": "default", "name": "a"});
    assert_eq!(found["spec"]["parentRef"], parent, "{found}");
    assert_eq!(found["metadata"]["labels"]["ipaddress.kubernetes.io/managed-by"], "ipallocator.k8s.io");
    let deleted = cluster.ok("DELETE", &format!("{services}/a"), Value::Null).await;
    assert!(version(&deleted) > version(&created));
    assert_eq!(cluster.get(&path).await.0, 404);
}
