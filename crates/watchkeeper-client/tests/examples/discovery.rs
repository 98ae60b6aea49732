use serde_json::json;
use watchkeeper_test_support::{Received, Reply, ScriptedServer};

use super::*;

fn answer(request: &Received) -> Reply {
    let aggregated = |items| json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items });
    let document = match request.target() {
        "/version" => json!({ "major": "1", "minor": "37", "gitVersion": "v1.37.0" }),
        "/api" => {
            aggregated(json!([{ "metadata": { "name": "" }, "versions": [{ "version": "v1", "resources": [
            { "resource": "pods", "responseKind": { "kind": "Pod" }, "scope": "Namespaced", "shortNames": ["po"], "verbs": ["get"] },
        ] }] }]))
        }
        "/apis" => aggregated(json!([
            { "metadata": { "name": "metrics.k8s.io" }, "versions": [{ "version": "v1beta1", "freshness": "Stale" }] },
        ])),
        _ => return Reply::text(404, "404 page not found"),
    };
    Reply::json(200, document.to_string())
}

async fn printed(names: &[&str]) -> String {
    let server = ScriptedServer::handler(answer).await;
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut out = Vec::new();
    run(DiscoveryClient::new(Client::from(server.client())), &names, &mut out).await.unwrap();
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn it_shows_what_is_served_and_what_is_not_known() {
    let shown = printed(&[]).await;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[..2], ["Kubernetes v1.37.0", "v1"]);
    assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["pods", "po", "v1", "namespaced", "Pod"]);
    assert!(lines[3].starts_with("not known: metrics.k8s.io/v1beta1: "), "{shown}");
    assert_eq!(lines.len(), 4);
}

#[tokio::test]
async fn it_tells_what_names_mean() {
    let shown = printed(&["po", "Pod", "widgets"]).await;
    assert!(
        shown.contains("\npo: v1/pods (Pod)\nPod: v1/pods (Pod)\nthe server serves no \"widgets\""),
        "{shown}"
    );
}
