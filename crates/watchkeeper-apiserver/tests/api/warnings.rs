//! Warnings, sent with successes and errors.

use http::Response;
use serde_json::{Value, json};
use watchkeeper_apiserver::ResponseBody;

use crate::support::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn warnings(response: &Response<ResponseBody>) -> Vec<String> {
    let warnings = response.headers().get_all("warning");
    warnings.iter().map(|warning| warning.to_str().unwrap().replace("299 - ", "")).collect()
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_reported_even_when_the_request_fails() {
    let cluster = Cluster::new();
    let expected = vec![r#""unknown field \"unknown\"""#.to_owned()];
    let invalid = json!({"metadata": {"name": "Not_A_Name"}, "unknown": 1});
    let response = cluster.send("POST", MAPS, &invalid).await;
    assert_eq!((response.status().as_u16(), warnings(&response)), (422, expected.clone()));

    let map = json!({"metadata": {"name": "a"}, "unknown": 1});
    assert_eq!(warnings(&cluster.send("POST", MAPS, &map).await), expected);
    let response = cluster.send("POST", MAPS, &map).await;
    assert_eq!((response.status().as_u16(), warnings(&response)), (409, expected.clone()));
    let stale = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "unknown": 1});
    let response = cluster.send("PUT", &format!("{MAPS}/a"), &stale).await;
    assert_eq!((response.status().as_u16(), warnings(&response)), (409, expected.clone()));
    let patch = json!({"metadata": {"resourceVersion": "1"}, "unknown": 1});
    let response =
        cluster.send_as("PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", &patch).await;
    assert_eq!((response.status().as_u16(), warnings(&response)), (409, expected));
}

#[tokio::test(start_paused = true)]
async fn error_responses_of_a_deprecated_kind_carry_the_warning() {
    let cluster = Cluster::new();
    let response = cluster.send("GET", "/api/v1/namespaces/default/endpoints/absent", &Value::Null).await;
    assert_eq!(response.status(), 404);
    assert!(warnings(&response)[0].contains("deprecated"));
}

#[tokio::test(start_paused = true)]
async fn affinity_terms_without_selector_and_overlapping_ports_cause_warnings() {
    let cluster = Cluster::new();
    let term = json!({"topologyKey": "zone"});
    let ports = json!([{"containerPort": 80}, {"containerPort": 80, "hostPort": 80}]);
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "containers": [{"name": "c", "image": "i", "ports": ports}],
    }});
    let response = cluster.send("POST", "/api/v1/namespaces/default/pods", &pod).await;
    assert_eq!(
        warnings(&response),
        [
            "\"spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]\"",
            "\"spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod\"",
        ]
    );
    let service =
        json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "externalName": "example.com"}});
    let response = cluster.send("POST", "/api/v1/namespaces/default/services", &service).await;
    assert_eq!(
        warnings(&response),
        [r#""spec.externalName is ignored when spec.type is not \"ExternalName\"""#]
    );
}
