use serde_json::json;
use watchkeeper_test_support::{Received, Reply, ScriptedServer};

use super::*;

fn answer(request: &Received) -> Reply {
    let widget = json!({ "metadata": { "name": "w1", "namespace": "shop", "labels": { "seen": "yes" } },
        "spec": { "size": 3, "colour": "red" } });
    let groups = json!([{ "metadata": { "name": "example.com" }, "versions": [{ "version": "v1", "resources": [
        { "resource": "widgets", "responseKind": { "kind": "Widget" }, "scope": "Namespaced", "shortNames": ["wd"] },
    ] }] }]);
    let aggregated = |items| json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items });
    let document = match (request.method(), request.target()) {
        (_, "/api") => aggregated(json!([])),
        (_, "/apis") => aggregated(groups),
        ("GET", "/apis/example.com/v1/widgets?limit=500") => {
            json!({ "kind": "WidgetList", "items": [widget] })
        }
        ("PATCH", "/apis/example.com/v1/namespaces/shop/widgets/w1?dryRun=All") => widget,
        _ => return Reply::text(404, "404 page not found"),
    };
    Reply::json(200, document.to_string())
}

#[tokio::test]
async fn it_lists_a_resource_by_its_short_name_and_tries_a_label() {
    let server = ScriptedServer::handler(answer).await;
    let mut out = Vec::new();
    run(&Client::from(server.client()), "wd", None, &mut out).await.unwrap();
    let expected =
        "wd is example.com/v1/widgets (Widget)\nshop/w1: 2 fields in its spec\nw1 would have 1 labels\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
