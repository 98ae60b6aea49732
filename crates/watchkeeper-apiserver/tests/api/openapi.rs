//! OpenAPI documents.

use http::Request;
use http_body_util::BodyExt;
use serde_json::json;

use crate::support::{Cluster, DEFINITIONS, foo_definition, get_as, read, served_version};

#[tokio::test(start_paused = true)]
async fn openapi_version_two_is_served_in_the_media_types_clients_ask_for() {
    let cluster = Cluster::new();
    for accept in ["", "*/*", "application/json", "application/json;q=0.5,text/html"] {
        let (code, document) = read(get_as(&cluster, "/openapi/v2", accept).await).await;
        assert_eq!((code, &document["swagger"]), (200, &json!("2.0")), "{accept}");
    }
    let deprecated = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let current = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    for accept in [deprecated, current] {
        let response = get_as(&cluster, "/openapi/v2", accept).await;
        assert_eq!(response.headers()["content-type"], current);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.starts_with(b"\x0a\x032.0"), "{:?}", &bytes[..8]);
    }
    assert_eq!(get_as(&cluster, "/openapi/v2", "text/html").await.status(), 406);
}

#[tokio::test(start_paused = true)]
async fn documents_with_a_matching_etag_are_not_sent_again() {
    let cluster = Cluster::new();
    for path in ["/openapi/v2", "/openapi/v3/apis/apps/v1"] {
        let etag = get_as(&cluster, path, "*/*").await.headers()["etag"].clone();
        let again = || Request::get(path).header("if-none-match", etag.clone()).body(String::new()).unwrap();
        assert_eq!(cluster.send_raw(again()).await.status(), 304, "{path}");
    }
    let etag = get_as(&cluster, "/openapi/v2", "*/*").await.headers()["etag"].clone();
    let version = served_version("v1", true, &json!({"type": "object"}));
    cluster.ok("POST", DEFINITIONS, foo_definition(&json!([version]))).await;
    let again = Request::get("/openapi/v2").header("if-none-match", etag).body(String::new()).unwrap();
    let (code, document) = read(cluster.send_raw(again).await).await;
    assert_eq!(code, 200);
    assert!(document["definitions"].get("com.example.v1.Foo").is_some());
}

#[tokio::test(start_paused = true)]
async fn the_beta_of_aggregated_discovery_is_not_served() {
    let cluster = Cluster::new();
    let form = |version: &str| {
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
    };
    let (code, document) = read(get_as(&cluster, "/apis", &form("v2")).await).await;
    assert_eq!((code, &document["kind"]), (200, &json!("APIGroupDiscoveryList")));
    assert_eq!(get_as(&cluster, "/apis", &form("v2beta1")).await.status(), 406);
    let fallback = format!("{},application/json", form("v2beta1"));
    let (code, document) = read(get_as(&cluster, "/apis", &fallback).await).await;
    assert_eq!((code, &document["kind"]), (200, &json!("APIGroupList")));
}
