//! Malformed requests: each gets a response, and none makes the server panic.

use proptest::prelude::*;
use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use crate::response_check;

const METHODS: &[&str] =
    &["GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "FOO"];

const WORDS: &[&str] = &[
    "api",
    "apis",
    "v1",
    "v2",
    "apps",
    "batch",
    "policy",
    "autoscaling",
    "events.k8s.io",
    "example.com",
    "namespaces",
    "default",
    "none",
    "pods",
    "configmaps",
    "services",
    "deployments",
    "events",
    "nodes",
    "leases",
    "foos",
    "a",
    "b",
    "status",
    "scale",
    "binding",
    "eviction",
    "token",
    "log",
    "proxy",
    "watch",
    "finalize",
    "%2e%2e",
    "%00",
    "-",
    "bindings",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    "openapi",
    "v3",
    "version",
    "healthz",
];

/// Paths that exist more often than those of random words.
const PLACES: &[&str] = &[
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/services",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/example.com/v1/namespaces/default/foos",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/batch/v1/namespaces/default/jobs",
];

const QUERIES: &[&str] = &[
    "resourceVersion=1",
    "resourceVersion=x",
    "limit=1",
    "limit=-1",
    "continue=bogus",
    "watch=1&timeoutSeconds=1",
    "watch=true&timeoutSeconds=-1",
    "labelSelector=a%20in%20(b",
    "labelSelector=a",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=%5C",
    "dryRun=All",
    "dryRun=x",
    "fieldManager=m",
    "force=true",
    "fieldValidation=Strict",
    "gracePeriodSeconds=-5",
    "gracePeriodSeconds=99999999999999999",
    "propagationPolicy=Foreground",
    "pretty=1",
    "allowWatchBookmarks=1",
    "sendInitialEvents=1&resourceVersionMatch=NotOlderThan",
    "%ff=%ff",
    "&&=",
];

const TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
];

const ACCEPTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "*/*",
    "x",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
];

const MEMBERS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "generateName",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "deletionTimestamp",
    "spec",
    "status",
    "data",
    "replicas",
    "selector",
    "matchLabels",
    "template",
    "containers",
    "image",
    "ports",
    "port",
    "clusterIP",
    "type",
    "conditions",
    "nodeName",
    "target",
    "op",
    "path",
    "value",
    "$patch",
    "$setElementOrder/ports",
    "group",
    "names",
    "versions",
    "schema",
    "openAPIV3Schema",
    "properties",
    "x-kubernetes-validations",
    "scope",
    "plural",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(WORDS).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["v1", "apps/v1", "Pod", "ConfigMap", "Deployment", "replace", "delete", "add"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let member = prop::sample::select(MEMBERS).prop_map(str::to_owned);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(member, inner, 0..7)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[derive(Debug, Clone)]
struct MalformedRequest {
    method: &'static str,
    uri: String,
    content_type: &'static str,
    accept: &'static str,
    body: String,
}

fn nonsense() -> impl Strategy<Value = MalformedRequest> {
    let segment = prop_oneof![
        3 => (prop::sample::select(PLACES), prop::collection::vec(prop::sample::select(WORDS), 0..3))
            .prop_map(|(segment, words)| [vec![segment], words].concat().join("/")),
        1 => prop::collection::vec(prop::sample::select(WORDS), 0..7).prop_map(|words| format!("/{}", words.join("/"))),
    ];
    let query = prop::collection::vec(prop::sample::select(QUERIES), 0..3).prop_map(|parts| parts.join("&"));
    let body = prop_oneof![
        6 => (value(), prop::sample::select(vec!["a", "b"])).prop_map(|(mut value, name)| {
            // With a name, more bodies pass the first checks.
            if let Some(members) = value.as_object_mut() {
                members.entry("metadata").or_insert_with(|| json!({"name": name}));
            }
            value.to_string()
        }),
        1 => any::<String>(),
    ];
    let (types, accepts) = (prop::sample::select(TYPES), prop::sample::select(ACCEPTS));
    (prop::sample::select(METHODS), segment, query, types, accepts, body).prop_map(
        |(method, segment, query, content_type, accept, body)| MalformedRequest {
            method,
            uri: format!("{segment}?{query}"),
            content_type,
            accept,
            body,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn malformed_requests_are_answered_with_a_status_and_never_a_panic(requests in prop::collection::vec(nonsense(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = ApiServer::builder().seed(1).control(true).build();
            for request in requests {
                let built = http::Request::builder()
                    .method(request.method)
                    .uri(&request.uri)
                    .header("content-type", request.content_type)
                    .header("accept", request.accept)
                    .body(request.body.into_bytes());
                let Ok(built) = built else { continue };
                response_check::check(&server, built).await;
            }
            server.shutdown().await;
        });
    }
}
