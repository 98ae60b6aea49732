//! Complete requests: the wire format of each verb with each kind of parameters.

use serde_json::json;
use watchkeeper_client::{
    kube_core::params::{
        DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions, VersionMatch,
        WatchParams,
    },
    rest::{AbsolutePath, ApiRequest, InvalidRequest, ResourcePath},
};

/// The headers of requests without a body, and of those with one.
const READ: &str = "accept-encoding: identity; accept: application/json";
const WRITE: &str = "accept-encoding: identity; accept: application/json; content-type: application/json";

type Built = Result<ApiRequest, InvalidRequest>;

/// Formats a request as text: its line, its headers sorted by name, its body.
fn wire(request: Built) -> String {
    let request = request.and_then(ApiRequest::into_http).expect("a request that can be sent");
    let mut headers: Vec<String> = request
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
        .collect();
    headers.sort();
    let body = String::from_utf8(request.body().clone()).expect("text");
    let parts = [format!("{} {}", request.method(), request.uri()), headers.join("; "), body];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}

fn pods() -> ResourcePath {
    let pods = ResourcePath::new("", "v1", "pods").and_then(|pods| pods.in_namespace("web"));
    pods.expect("a valid path")
}

fn pod() -> ResourcePath {
    pods().named("front").expect("a valid path")
}

fn nodes() -> ResourcePath {
    ResourcePath::new("", "v1", "nodes").expect("a valid path")
}

#[test]
fn every_read_is_the_request_the_api_documents() {
    let all_pods = || ResourcePath::new("", "v1", "pods").unwrap();
    let list = ListParams::default;
    let table: Vec<(Built, String)> = vec![
        (
            ApiRequest::get(pod(), &GetParams::default()),
            format!("GET /api/v1/namespaces/web/pods/front | {READ}"),
        ),
        (
            ApiRequest::get(pod(), &GetParams::at("7")),
            format!("GET /api/v1/namespaces/web/pods/front?resourceVersion=7 | {READ}"),
        ),
        (
            ApiRequest::get(pod(), &GetParams::at("")),
            format!("GET /api/v1/namespaces/web/pods/front | {READ}"),
        ),
        (
            ApiRequest::get(nodes().named("n").unwrap(), &GetParams::any()),
            format!("GET /api/v1/nodes/n?resourceVersion=0 | {READ}"),
        ),
        (ApiRequest::list(all_pods(), &list()), format!("GET /api/v1/pods | {READ}")),
        (
            ApiRequest::list(
                pods(),
                &list().labels("app=a,tier in (b, c)").fields("spec.nodeName=n").limit(500),
            ),
            format!(
                "GET /api/v1/namespaces/web/pods?labelSelector=app%3Da%2Ctier+in+%28b%2C+c%29\
                 &fieldSelector=spec.nodeName%3Dn&limit=500 | {READ}"
            ),
        ),
        (
            ApiRequest::list(all_pods(), &list().at("0").limit(500)),
            format!("GET /api/v1/pods?limit=500&resourceVersion=0 | {READ}"),
        ),
        (
            ApiRequest::list(all_pods(), &list().at("42").matching(VersionMatch::Exact)),
            format!("GET /api/v1/pods?resourceVersion=42&resourceVersionMatch=Exact | {READ}"),
        ),
        (
            ApiRequest::list(all_pods(), &list().match_any()),
            format!("GET /api/v1/pods?resourceVersion=0&resourceVersionMatch=NotOlderThan | {READ}"),
        ),
        (
            ApiRequest::list(all_pods(), &list().at("42").limit(2).continue_token("a/b+c=")),
            format!("GET /api/v1/pods?limit=2&continue=a%2Fb%2Bc%3D | {READ}"),
        ),
        (
            ApiRequest::list(all_pods(), &list()).map(ApiRequest::metadata_only),
            "GET /api/v1/pods | accept-encoding: identity; \
             accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
                .into(),
        ),
        (
            ApiRequest::get(pod(), &GetParams::default()).map(ApiRequest::metadata_only),
            "GET /api/v1/namespaces/web/pods/front | accept-encoding: identity; \
             accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
                .into(),
        ),
    ];
    for (built, expected) in table {
        assert_eq!(wire(built), expected);
    }
}

#[test]
fn every_watch_and_every_other_path_is_the_request_the_api_documents() {
    let table: Vec<(Built, String)> = vec![
        (
            ApiRequest::watch(nodes(), &WatchParams::default(), "42"),
            format!(
                "GET /api/v1/nodes?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=42 | {READ}"
            ),
        ),
        (
            ApiRequest::watch(
                pods(),
                &WatchParams::default().timeout(30).labels("a=b").disable_bookmarks(),
                "",
            ),
            format!(
                "GET /api/v1/namespaces/web/pods?watch=true&timeoutSeconds=30&labelSelector=a%3Db | {READ}"
            ),
        ),
        (
            ApiRequest::watch(pods(), &WatchParams::streaming_lists(), ""),
            format!(
                "GET /api/v1/namespaces/web/pods?watch=true&timeoutSeconds=290&allowWatchBookmarks=true\
                 &sendInitialEvents=true&resourceVersionMatch=NotOlderThan | {READ}"
            ),
        ),
        (Ok(ApiRequest::raw(AbsolutePath::new("/version").unwrap())), format!("GET /version | {READ}")),
        (
            ApiRequest::raw(AbsolutePath::new("/openapi/v3/api/v1").unwrap())
                .with_query("hash", "a b&c")
                .with_header("Accept-Encoding", "gzip"),
            "GET /openapi/v3/api/v1?hash=a+b%26c | accept-encoding: gzip; accept: application/json".into(),
        ),
    ];
    for (built, expected) in table {
        assert_eq!(wire(built), expected);
    }
}

#[test]
fn every_write_is_the_request_the_api_documents() {
    let post = PostParams::default;
    let table: Vec<(Built, String)> = vec![
        (
            ApiRequest::create(pods(), &post(), &json!({"kind": "Pod"})),
            format!("POST /api/v1/namespaces/web/pods | {WRITE} | {{\"kind\":\"Pod\"}}"),
        ),
        (
            ApiRequest::create(pods(), &PostParams { dry_run: true, field_manager: Some("me too".into()) }, &json!({})),
            format!("POST /api/v1/namespaces/web/pods?dryRun=All&fieldManager=me+too | {WRITE} | {{}}"),
        ),
        (
            ApiRequest::create(pod().subresource("eviction").unwrap(), &post(), &json!({})),
            format!("POST /api/v1/namespaces/web/pods/front/eviction | {WRITE} | {{}}"),
        ),
        (
            ApiRequest::update(pod(), &post(), &json!({"kind": "Pod"})),
            format!("PUT /api/v1/namespaces/web/pods/front | {WRITE} | {{\"kind\":\"Pod\"}}"),
        ),
        (
            ApiRequest::update(pod().subresource("status").unwrap(), &post(), &json!({})),
            format!("PUT /api/v1/namespaces/web/pods/front/status | {WRITE} | {{}}"),
        ),
        (
            ApiRequest::patch(pod(), &PatchParams::default(), &Patch::Merge(json!({"a": null}))),
            "PATCH /api/v1/namespaces/web/pods/front | accept-encoding: identity; accept: application/json; \
             content-type: application/merge-patch+json | {\"a\":null}"
                .into(),
        ),
        (
            ApiRequest::patch(pod(), &PatchParams::default().dry_run(), &Patch::Strategic(json!({}))),
            "PATCH /api/v1/namespaces/web/pods/front?dryRun=All | accept-encoding: identity; accept: application/json; \
             content-type: application/strategic-merge-patch+json | {}"
                .into(),
        ),
        (
            ApiRequest::patch(pod(), &PatchParams::default(), &Patch::<()>::Json(json_patch::Patch(vec![]))),
            "PATCH /api/v1/namespaces/web/pods/front | accept-encoding: identity; accept: application/json; \
             content-type: application/json-patch+json | []"
                .into(),
        ),
        (
            ApiRequest::patch(pod(), &PatchParams::apply("me").force().validation_strict(), &Patch::Apply(json!({}))),
            "PATCH /api/v1/namespaces/web/pods/front?force=true&fieldManager=me&fieldValidation=Strict | \
             accept-encoding: identity; accept: application/json; content-type: application/apply-patch+yaml | {}"
                .into(),
        ),
        (
            ApiRequest::delete(pod(), &DeleteParams::default()),
            format!("DELETE /api/v1/namespaces/web/pods/front | {READ}"),
        ),
        (
            ApiRequest::delete(
                pod(),
                &DeleteParams::foreground().grace_period(0).dry_run().preconditions(Preconditions {
                    uid: Some("u".into()),
                    resource_version: None,
                }),
            ),
            format!(
                "DELETE /api/v1/namespaces/web/pods/front | {WRITE} | {{\"dryRun\":[\"All\"],\"gracePeriodSeconds\":0,\
                 \"propagationPolicy\":\"Foreground\",\"preconditions\":{{\"uid\":\"u\"}}}}"
            ),
        ),
        (
            ApiRequest::delete_collection(pods(), &DeleteParams::orphan(), &ListParams::default().labels("a=b")),
            format!(
                "DELETE /api/v1/namespaces/web/pods?labelSelector=a%3Db | {WRITE} | {{\"propagationPolicy\":\"Orphan\"}}"
            ),
        ),
    ];
    for (built, expected) in table {
        assert_eq!(wire(built), expected);
    }
}

#[test]
fn a_request_that_every_server_rejects_is_rejected_before_it_is_sent() {
    let long_manager = "m".repeat(129);
    let table: Vec<(Built, &str)> = vec![
        (ApiRequest::get(pods(), &GetParams::default()), "the name is missing"),
        (ApiRequest::delete(pods(), &DeleteParams::default()), "the name is missing"),
        (
            ApiRequest::list(pod(), &ListParams::default()),
            "the verb is for a collection, and the path names one object",
        ),
        (
            ApiRequest::delete_collection(pod(), &DeleteParams::default(), &ListParams::default()),
            "the verb is for a collection, and the path names one object",
        ),
        (
            ApiRequest::create(pod(), &PostParams::default(), &json!({})),
            "an object is created in its collection, without its name in the path",
        ),
        (
            ApiRequest::list(pods(), &ListParams::default().matching(VersionMatch::Exact)),
            "version_match needs a resource_version to match",
        ),
        (
            ApiRequest::list(pods(), &ListParams::default().at("0").matching(VersionMatch::Exact)),
            "an exact version_match needs a resource_version other than 0",
        ),
        (
            ApiRequest::watch(pods(), &WatchParams::streaming_lists().disable_bookmarks(), ""),
            "send_initial_events needs bookmarks, which mark where they end",
        ),
        (
            ApiRequest::patch(pod(), &PatchParams::default(), &Patch::Apply(json!({}))),
            "an apply needs a field_manager, the name its fields are owned under",
        ),
        (
            ApiRequest::patch(pod(), &PatchParams::apply("me").force(), &Patch::Merge(json!({}))),
            "force takes fields over from other appliers; only an apply can",
        ),
        (
            ApiRequest::patch(pod(), &PatchParams::apply(&long_manager), &Patch::Apply(json!({}))),
            "a field manager has at most 128 bytes",
        ),
        (
            ApiRequest::raw(AbsolutePath::default()).with_header("x-a", "b\r\nx-c: d"),
            "header \"x-a\" has a name or a value that cannot be sent",
        ),
        (
            ApiRequest::raw(AbsolutePath::default()).with_header("x a\r\n", "b"),
            "header \"x a\" has a name or a value that cannot be sent",
        ),
    ];
    for (built, message) in table {
        assert_eq!(built.unwrap_err().to_string(), message);
    }
}

#[test]
fn debug_of_a_request_shows_its_target_and_no_secrets() {
    let request = ApiRequest::create(pods(), &PostParams::default(), &json!({"data": "canary-body"}))
        .and_then(|request| request.with_header("authorization", "Bearer canary-token"))
        .unwrap();
    let shown = format!("{request:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert_eq!(request.info().to_string(), "create pods in namespace \"web\"");
}
