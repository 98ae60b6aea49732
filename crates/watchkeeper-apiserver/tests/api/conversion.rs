//! Values that do not match their types, by the path of conversion, and names that are generated late.

use serde_json::json;

use crate::support::{Cluster, apply, read, small_deployment};

#[tokio::test(start_paused = true)]
async fn a_strategic_merge_keeps_the_lower_bits_of_an_integer() {
    let cluster = Cluster::new();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    cluster.ok("POST", deployments, small_deployment("d")).await;
    let path = format!("{deployments}/d");
    let patch = json!({"spec": {"replicas": 99_999_999_999_i64}});
    let strategic = "application/strategic-merge-patch+json";
    let (code, reply) = read(cluster.send_as("PATCH", &path, strategic, &patch).await).await;
    assert_eq!((code, &reply["spec"]["replicas"]), (200, &json!(1_215_752_191)), "{reply}");
    let (code, reply) = cluster.patch(&path, patch).await;
    assert_eq!(code, 422, "text is read strictly: {reply}");
}

#[tokio::test(start_paused = true)]
async fn an_applied_value_that_cannot_be_decoded_is_an_internal_error() {
    let cluster = Cluster::new();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "not base64!"}});
    let (code, reply) = apply(&cluster, "/api/v1/namespaces/default/secrets/a", &secret).await;
    assert_eq!((code, reply.get("reason")), (500, None), "{reply}");
    let (code, _) = cluster.call("POST", "/api/v1/namespaces/default/secrets", secret).await;
    assert_eq!(code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_a_generated_name_has_the_metadata_name_label() {
    let cluster = Cluster::new();
    let created = cluster.ok("POST", "/api/v1/namespaces", json!({"metadata": {"generateName": "x-"}})).await;
    assert_eq!(
        created["metadata"]["labels"]["kubernetes.io/metadata.name"], created["metadata"]["name"],
        "{created}"
    );
}

#[tokio::test(start_paused = true)]
async fn errors_of_events_name_their_storage_group() {
    let cluster = Cluster::new();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
    });
    let (code, reply) = cluster.call("POST", "/apis/events.k8s.io/v1/namespaces/default/events", event).await;
    assert_eq!((code, reply["details"].get("group")), (422, None), "{reply}");
    assert_eq!(reply["details"]["kind"], "Event");
}
