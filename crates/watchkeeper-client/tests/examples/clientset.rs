use serde_json::json;
use watchkeeper_test_support::{Reply, ScriptedServer};

use super::*;

#[tokio::test]
async fn it_counts_running_pods_and_tells_which_nodes_are_ready() {
    let pod = |namespace: &str, phase: &str| json!({ "metadata": { "namespace": namespace }, "status": { "phase": phase } });
    let node = |name: &str, ready: &str| json!({ "metadata": { "name": name }, "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
    let pods = json!({ "items": [pod("a", "Running"), pod("b", "Pending"), pod("a", "Running"), pod("a", "Failed")] });
    let nodes = json!({ "items": [node("n1", "True"), node("n2", "Unknown")] });
    let missing = json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
        "details": { "name": "extension-apiserver-authentication", "kind": "configmaps" } });
    let server = ScriptedServer::script([
        Reply::json(200, pods.to_string()),
        Reply::json(200, nodes.to_string()),
        Reply::json(404, missing.to_string()),
    ])
    .await;

    let mut out = Vec::new();
    run(&Clientset::new(Client::from(server.client())), &mut out).await.unwrap();

    let expected = "a: 2 running\nb: 0 running\nnode n1: ready\nnode n2: not ready\n\
                    aggregated API servers: not configured\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
