//! The forms of objects: metadata only, tables, protobuf.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::support::{Cluster, DEFINITIONS, foo_definition, get_as, read, served_version};

const METADATA: &str = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const FOOS: &str = "/apis/example.com/v1/namespaces/default/foos";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn cluster() -> Cluster {
    let cluster = Cluster::new();
    let version = served_version("v1", true, &json!({"type": "object"}));
    cluster.ok("POST", DEFINITIONS, foo_definition(&json!([version]))).await;
    let foo = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a", "labels": {"x": "findme"}}});
    cluster.ok("POST", FOOS, foo).await;
    let map = json!({"metadata": {"name": "a", "labels": {"x": "findme"}}, "data": {"k": "hidden"}});
    cluster.ok("POST", MAPS, map).await;
    cluster
}

async fn bytes(cluster: &Cluster, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let response = get_as(cluster, path, accept).await;
    let (code, content_type) = (response.status().as_u16(), response.headers()["content-type"].clone());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, content_type.to_str().unwrap().to_owned(), bytes.to_vec())
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(start_paused = true)]
async fn metadata_is_sent_as_protobuf_for_every_kind() {
    let cluster = cluster().await;
    for collection in [FOOS, MAPS] {
        let (code, content_type, one) =
            bytes(&cluster, &format!("{collection}/a"), &format!("{PROTOBUF};{METADATA}")).await;
        assert_eq!((code, content_type.as_str()), (200, PROTOBUF));
        assert!(
            one.starts_with(b"k8s\0") && has(&one, "meta.k8s.io/v1") && has(&one, "PartialObjectMetadata")
        );
        assert!(has(&one, "findme") && !has(&one, "hidden"));
        let (code, _, list) = bytes(&cluster, collection, &format!("{PROTOBUF};{METADATA_LIST}")).await;
        assert_eq!(code, 200);
        assert!(has(&list, "PartialObjectMetadataList") && has(&list, "findme"));
        let mut watch =
            get_as(&cluster, &format!("{collection}?watch=true"), &format!("{PROTOBUF};{METADATA}"))
                .await
                .into_body();
        let mut received = Vec::new();
        while !has(&received, "findme") {
            received.extend(watch.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        assert!(has(&received, "PartialObjectMetadata") && !has(&received, "hidden"));
    }
}

#[tokio::test(start_paused = true)]
async fn whole_custom_resources_are_not_sent_as_protobuf() {
    let cluster = cluster().await;
    let path = format!("{FOOS}/a");
    assert_eq!(bytes(&cluster, &path, PROTOBUF).await.0, 406);
    let (code, content_type, _) = bytes(&cluster, &path, &format!("{PROTOBUF},application/json")).await;
    assert_eq!((code, content_type.as_str()), (200, "application/json"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_of_metadata_has_null_items() {
    let cluster = cluster().await;
    let path = "/api/v1/namespaces/default/secrets";
    for query in ["", "?pretty=true"] {
        let accept = format!("application/json;{METADATA_LIST}");
        let (_, list) = read(get_as(&cluster, &format!("{path}{query}"), &accept).await).await;
        assert_eq!(list.get("items"), Some(&Value::Null), "{list}");
    }
    let (_, list) = cluster.get(path).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_review_has_no_table() {
    let cluster = Cluster::new();
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header("content-type", "application/json")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(review.to_string())
        .unwrap();
    let (code, reply) = read(cluster.send_raw(request).await).await;
    assert_eq!((code, &reply["reason"]), (406, &json!("NotAcceptable")), "{reply}");
}
