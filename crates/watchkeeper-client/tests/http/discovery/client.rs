//! Discovery over a real socket: the requests, the results, and caching.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use watchkeeper_client::{
    Client,
    discovery::{DiscoveryClient, DiscoveryError, FailureReason},
    kube_core::GroupVersion,
};
use watchkeeper_test_support::{Gate, Received, Reply, ScriptedServer};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn client(server: &ScriptedServer) -> DiscoveryClient {
    DiscoveryClient::new(Client::from(server.client()))
}

fn ok(document: &Value) -> Reply {
    Reply::json(200, document.to_string())
}

fn aggregated_document(items: &Value) -> String {
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items })
        .to_string()
}

fn aggregated(items: &Value) -> Reply {
    Reply::whole(200, &[("content-type", AGGREGATED)], aggregated_document(items))
}

fn not_found() -> Reply {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404 });
    Reply::json(404, status.to_string())
}

/// Responds as a server in both forms: pods in the core group, deployments with a scale in `apps`.
fn aggregated_server(request: &Received) -> Reply {
    match request.target() {
        "/api" => {
            aggregated(&json!([{ "metadata": { "name": "" }, "versions": [{ "version": "v1", "resources": [
            { "resource": "pods", "responseKind": { "kind": "Pod" }, "scope": "Namespaced",
              "singularResource": "pod", "verbs": ["get", "list"], "shortNames": ["po"], "categories": ["all"] },
        ] }] }]))
        }
        "/apis" => aggregated(
            &json!([{ "metadata": { "name": "apps" }, "versions": [{ "version": "v1", "resources": [
            { "resource": "deployments", "responseKind": { "kind": "Deployment" }, "scope": "Namespaced",
              "singularResource": "deployment", "verbs": ["get"], "shortNames": ["deploy"], "categories": ["all"],
              "subresources": [{ "subresource": "scale", "verbs": ["get"],
                "responseKind": { "group": "autoscaling", "version": "v1", "kind": "Scale" } }] },
        ] }] }]),
        ),
        _ => not_found(),
    }
}

fn legacy_server(request: &Received) -> Reply {
    ok(&match request.target() {
        "/api" => json!({ "kind": "APIVersions", "versions": ["v1"] }),
        "/apis" => json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [{
            "name": "apps",
            "versions": [{ "groupVersion": "apps/v1", "version": "v1" }],
            "preferredVersion": { "groupVersion": "apps/v1", "version": "v1" },
        }] }),
        "/api/v1" => json!({ "kind": "APIResourceList", "groupVersion": "v1", "resources": [
            { "name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["get", "list"],
              "shortNames": ["po"], "categories": ["all"] },
        ] }),
        "/apis/apps/v1" => json!({ "kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
            { "name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
              "verbs": ["get"], "shortNames": ["deploy"], "categories": ["all"] },
            { "name": "deployments/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
              "version": "v1", "kind": "Scale", "verbs": ["get"] },
        ] }),
        _ => return not_found(),
    })
}

fn lines(server: &ScriptedServer) -> Vec<String> {
    let mut targets: Vec<String> =
        server.received().iter().map(|request| request.target().to_owned()).collect();
    targets.sort();
    targets
}

#[tokio::test]
async fn the_aggregated_form_takes_two_requests() {
    let server = ScriptedServer::handler(aggregated_server).await;
    let found = client(&server).server_resources().await.unwrap();
    assert_eq!(found.api_versions(), ["apps/v1", "v1"]);
    assert!(found.failures.is_empty());
    assert_eq!(lines(&server), ["/api", "/apis"]);
    for request in server.received() {
        assert_eq!(request.header("accept").unwrap(), format!("{AGGREGATED},application/json"));
    }
}

#[tokio::test]
async fn both_forms_say_the_same() {
    let new = ScriptedServer::handler(aggregated_server).await;
    let old = ScriptedServer::handler(legacy_server).await;
    let (new, of_old) =
        (client(&new).server_resources().await.unwrap(), client(&old).server_resources().await.unwrap());
    assert_eq!(new.groups, of_old.groups);
    assert_eq!(lines(&old), ["/api", "/api/v1", "/apis", "/apis/apps/v1"]);
}

#[tokio::test]
async fn each_root_may_speak_its_own_form() {
    let server = ScriptedServer::handler(|request| match request.target() {
        "/api" => aggregated_server(request),
        _ => legacy_server(request),
    })
    .await;
    let found = client(&server).server_resources().await.unwrap();
    let whole = ScriptedServer::handler(aggregated_server).await;
    assert_eq!(found.groups, client(&whole).server_resources().await.unwrap().groups);
    assert_eq!(lines(&server), ["/api", "/apis", "/apis/apps/v1"]);
}

#[tokio::test]
async fn plain_json_is_requested_from_a_server_that_rejects_the_aggregated_form() {
    let server = ScriptedServer::handler(|request| match request.header("accept") {
        Some("application/json") => legacy_server(request),
        _ => Reply::json(406, json!({ "kind": "Status", "status": "Failure", "code": 406 }).to_string()),
    })
    .await;
    let found = client(&server).server_resources().await.unwrap();
    assert_eq!(found.api_versions(), ["apps/v1", "v1"]);
    assert_eq!(lines(&server), ["/api", "/api", "/api/v1", "/apis", "/apis", "/apis/apps/v1"]);
}

#[tokio::test]
async fn one_root_may_be_missing_but_not_both() {
    let server = ScriptedServer::handler(|request| match request.target() {
        "/api" => not_found(),
        _ => aggregated_server(request),
    })
    .await;
    assert_eq!(client(&server).server_resources().await.unwrap().api_versions(), ["apps/v1"]);

    let server = ScriptedServer::handler(|_| Reply::text(404, "404 page not found")).await;
    let error = client(&server).server_resources().await.unwrap_err();
    assert!(matches!(error, DiscoveryError::NothingServed), "{error}");
}

#[tokio::test]
async fn partial_results_are_returned_with_their_failures() {
    let server = ScriptedServer::handler(|request| match request.target() {
        "/apis" => ok(&json!({ "kind": "APIGroupList", "groups": [
            { "name": "apps", "versions": [{ "version": "v1" }] },
            { "name": "metrics.k8s.io", "versions": [{ "version": "v1beta1" }] },
            { "name": "broken.io", "versions": [{ "version": "v1" }] },
        ] })),
        "/apis/metrics.k8s.io/v1beta1" => Reply::text(503, "service unavailable"),
        "/apis/broken.io/v1" => Reply::json(200, "{\"kind\": \"APIResourceList\", \"resources\": 7}"),
        _ => legacy_server(request),
    })
    .await;
    let found = client(&server).server_resources().await.unwrap();
    assert!(found.resource(&"apps/v1/deployments".parse().unwrap()).is_some());
    let metrics = found.failure(&GroupVersion::gv("metrics.k8s.io", "v1beta1")).unwrap();
    let FailureReason::Request(error) = metrics else { panic!("{metrics}") };
    assert_eq!(error.status().unwrap().code, 503);
    let broken = found.failure(&GroupVersion::gv("broken.io", "v1")).unwrap();
    assert!(matches!(broken, FailureReason::Document(_)), "{broken}");
    assert_eq!(found.failures.len(), 2);
    assert_eq!(found.api_versions(), ["apps/v1", "broken.io/v1", "metrics.k8s.io/v1beta1", "v1"]);
    assert_eq!(server.received().len(), 6, "no further request is sent to a server that is down");
}

#[tokio::test]
async fn stale_versions_of_the_aggregated_form_are_reported() {
    let server = ScriptedServer::handler(|request| match request.target() {
        "/apis" => aggregated(&json!([
            { "metadata": { "name": "metrics.k8s.io" }, "versions": [{ "version": "v1beta1", "freshness": "Stale" }] },
        ])),
        _ => aggregated_server(request),
    })
    .await;
    let found = client(&server).server_resources().await.unwrap();
    assert_eq!(found.api_versions(), ["v1"]);
    let reason = found.failure(&GroupVersion::gv("metrics.k8s.io", "v1beta1")).unwrap();
    assert!(matches!(reason, FailureReason::Stale));
}

/// Starts a legacy server that lists `gone.io` in its first `listed` responses and has no document for it.
async fn server_without_gone_io(listed: usize) -> ScriptedServer {
    let requests = AtomicUsize::new(0);
    ScriptedServer::handler(move |request| {
        if request.target() == "/apis" && requests.fetch_add(1, Ordering::Relaxed) < listed {
            return ok(&json!({ "kind": "APIGroupList", "groups": [
                { "name": "apps", "versions": [{ "version": "v1" }] },
                { "name": "gone.io", "versions": [{ "version": "v1" }] },
            ] }));
        }
        legacy_server(request)
    })
    .await
}

#[tokio::test]
async fn a_group_that_vanishes_meanwhile_is_no_failure() {
    for listed in [1, 2] {
        let server = server_without_gone_io(listed).await;
        let found = client(&server).server_resources().await.unwrap();
        assert!(found.failures.is_empty());
        assert!(found.group("gone.io").is_none());
        assert_eq!(lines(&server).iter().filter(|line| *line == "/apis").count(), listed + 1);
    }
}

#[tokio::test]
async fn a_listed_group_that_never_exists_is_reported_after_two_retries() {
    let server = server_without_gone_io(usize::MAX).await;
    let found = client(&server).server_resources().await.unwrap();
    assert!(found.failure(&GroupVersion::gv("gone.io", "v1")).is_some());
    assert!(found.resource(&"apps/v1/deployments".parse().unwrap()).is_some());
    assert_eq!(lines(&server).iter().filter(|line| *line == "/apis/gone.io/v1").count(), 3);
}

#[tokio::test]
async fn a_group_whose_name_is_no_valid_path_is_reported_and_not_requested() {
    let server = ScriptedServer::handler(|request| match request.target() {
        "/apis" => ok(&json!({ "kind": "APIGroupList", "groups": [
            { "name": "../../api/v1/secrets?x=", "versions": [{ "version": "v1" }] },
        ] })),
        _ => legacy_server(request),
    })
    .await;
    let found = client(&server).server_resources().await.unwrap();
    assert_eq!(found.failures.len(), 1);
    assert_eq!(lines(&server), ["/api", "/api/v1", "/apis"]);
}

#[tokio::test]
async fn a_response_that_is_no_discovery_document_is_an_error() {
    let server = ScriptedServer::handler(|_| {
        Reply::whole(200, &[("content-type", "text/html")], "<html>sign in</html>")
    })
    .await;
    let error = client(&server).server_resources().await.unwrap_err();
    assert!(matches!(&error, DiscoveryError::Document { .. }), "{error}");
    assert!(error.to_string().ends_with("is this a Kubernetes API server?"), "{error}");
    assert!(!error.to_string().contains("sign in"), "{error}");
}

#[tokio::test]
async fn a_rejected_request_is_an_error_and_the_next_call_retries() {
    let refused = AtomicUsize::new(0);
    let server = ScriptedServer::handler(move |request| match request.target() {
        "/apis" if refused.fetch_add(1, Ordering::Relaxed) == 0 => Reply::text(401, "who are you"),
        _ => aggregated_server(request),
    })
    .await;
    let discovery = client(&server);
    let error = discovery.server_resources().await.unwrap_err();
    let DiscoveryError::Request(cause) = &error else { panic!("{error}") };
    assert_eq!(cause.status().unwrap().code, 401);
    assert!(error.to_string().contains("/apis"), "{error}");
    assert!(discovery.server_resources().await.is_ok());
}

#[tokio::test]
async fn clones_and_concurrent_callers_share_one_fetch() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = ScriptedServer::handler(move |_| {
        let document = aggregated_document(&json!([]));
        let length = document.len().to_string();
        Reply::head(200, &[("content-type", AGGREGATED), ("content-length", &length)])
            .wait_for(&held)
            .send(document)
    })
    .await;
    let discovery = client(&server);
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let shared = discovery.clone();
        callers.spawn(async move { shared.server_resources().await.unwrap() });
    }
    gate.reached().await;
    gate.open();
    let responses = callers.join_all().await;
    assert!(responses.iter().all(|response| Arc::ptr_eq(response, &responses[0])));
    assert_eq!(server.received().len(), 2);
    assert!(discovery.age().is_some());
}

#[tokio::test]
async fn only_refresh_and_invalidate_cause_another_request() {
    let server = ScriptedServer::handler(aggregated_server).await;
    let discovery = client(&server);
    assert!(discovery.cached().is_none());
    for (requests, forget) in [(2, false), (2, true), (4, false)] {
        discovery.server_resources().await.unwrap();
        assert_eq!(server.received().len(), requests);
        if forget {
            discovery.invalidate();
            assert!(discovery.cached().is_none());
            assert_eq!(discovery.age(), None);
        }
    }
    discovery.clone().refresh().await.unwrap();
    assert_eq!(server.received().len(), 6);
}

#[tokio::test]
async fn the_server_returns_its_version_and_its_openapi_documents() {
    let server = ScriptedServer::handler(|request| {
        ok(&match request.target() {
            "/version" => json!({ "major": "1", "minor": "37", "gitVersion": "v1.37.0", "buildDate": "", "compiler": "gc",
                "gitCommit": "", "gitTreeState": "clean", "goVersion": "", "platform": "linux/amd64" }),
            "/openapi/v3" => json!({ "paths": {
                "api/v1": { "serverRelativeURL": "/openapi/v3/api/v1?hash=AB" },
                "apis/apps/v1": { "serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=CD" },
            } }),
            "/openapi/v3/apis/apps/v1" => json!({ "openapi": "3.0.0" }),
            _ => return not_found(),
        })
    })
    .await;
    let discovery = client(&server);
    assert_eq!(discovery.server_version().await.unwrap().git_version, "v1.37.0");
    let paths = discovery.openapi_v3_paths().await.unwrap();
    assert_eq!(paths["apis/apps/v1"], "/openapi/v3/apis/apps/v1?hash=CD");
    assert_eq!(discovery.openapi_v3(&GroupVersion::gv("apps", "v1")).await.unwrap()["openapi"], "3.0.0");
    assert!(discovery.openapi_v3(&GroupVersion::gv("", "v1")).await.unwrap_err().is_not_found());
}
