//! Faults that break clients in production, each sent over a real socket and named after its effect.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::{
    Status,
    params::{DeleteParams, ListParams, WatchParams},
};
use serde_json::{Value, json};
use watchkeeper_client::{
    Client, Error,
    classify::{Decision, Failure, Next, Phase, Situation, classify},
    rest::{ByteStream, ResourceClient},
};
use watchkeeper_test_support::{Reply, ScriptedServer};

fn configs(server: &ScriptedServer) -> ResourceClient<ConfigMap> {
    Client::from(server.client()).resource().namespace("web")
}

fn status(code: u16, reason: &str, message: &str, details: &Value) -> String {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message, "details": details,
    })
    .to_string()
}

async fn start_watch(configs: &ResourceClient<ConfigMap>) -> Result<ByteStream, Error> {
    let request = configs.watch_request(&WatchParams::default(), "10")?;
    configs.client().rest().request(request).stream().await
}

async fn decision_at_watch_start(reply: Reply) -> (Decision, &'static str) {
    let server = ScriptedServer::script([reply]).await;
    let error = start_watch(&configs(&server)).await.expect_err("the watch is refused");
    // Reported once and immediately: no lower layer hides the fault by retrying.
    assert_eq!(server.lines().len(), 1);
    let classification = classify(Situation::at(Phase::WatchStart), Failure::from(&error));
    (classification.decision, classification.reason.label())
}

#[tokio::test]
async fn http_410_at_the_start_of_a_watch_means_relist_as_the_event_does() {
    let expired = status(410, "Expired", "too old resource version: 10 (42)", &Value::Null);
    let as_http = decision_at_watch_start(Reply::json(410, expired.clone())).await;
    assert_eq!(as_http, (Decision::Relist, "expired"));
    assert_eq!(decision_at_watch_start(Reply::text(410, "Gone")).await, as_http);

    let event: Status = serde_json::from_str(&expired).unwrap();
    let as_event = classify(Situation::at(Phase::WatchStream), Failure::of_event(&event));
    assert_eq!((as_event.decision, as_event.reason.label()), as_http);
}

#[tokio::test]
async fn http_504_with_a_version_from_the_future_means_relist_from_scratch() {
    let text = "Too large resource version: 10, current: 7";
    let dialects = [
        status(
            504,
            "Timeout",
            "Timeout: x",
            &json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": text}]}),
        ),
        status(504, "Timeout", "Timeout: x", &json!({"causes": [{"message": "Too large resource version"}]})),
        status(504, "Timeout", text, &Value::Null),
    ];
    for dialect in dialects {
        let decision = decision_at_watch_start(Reply::json(504, dialect.clone())).await;
        assert_eq!(decision, (Decision::RelistFromScratch, "resource_version_too_large"), "{dialect}");
    }
    let busy = decision_at_watch_start(Reply::json(504, status(504, "Timeout", "busy", &Value::Null))).await;
    assert_eq!(busy.0, Decision::BackOff { retry_after: None, then: Next::Resume });
}

#[tokio::test]
async fn when_the_second_page_has_always_expired_the_list_is_read_whole_once() {
    let list = |token: &str, names: &[&str]| {
        let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        let metadata = json!({"resourceVersion": "7", "continue": token});
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}).to_string()
    };
    let server = ScriptedServer::handler(move |request| {
        let target = request.target();
        if target.contains("continue=") {
            Reply::json(
                410,
                status(410, "Expired", "The provided continue parameter is too old", &Value::Null),
            )
        } else if target.contains("limit=") {
            Reply::json(200, list("t1", &["a", "b"]))
        } else {
            Reply::json(200, list("", &["a", "b", "c"]))
        }
    })
    .await;
    let all = configs(&server).list_all(&ListParams::default().limit(2).labels("x")).await.unwrap();
    // Not a, b, a, b, c: the items of the first attempt are not part of the second.
    assert_eq!(all.items.len(), 3);
    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/namespaces/web/configmaps?labelSelector=x&limit=2 HTTP/1.1",
            "GET /api/v1/namespaces/web/configmaps?labelSelector=x&limit=2&continue=t1 HTTP/1.1",
            "GET /api/v1/namespaces/web/configmaps?labelSelector=x HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn a_first_page_that_has_expired_is_for_the_caller_to_decide() {
    let gone = || Reply::json(410, status(410, "Expired", "too old", &Value::Null));
    let server = ScriptedServer::handler(move |_| gone()).await;
    let error = configs(&server).list_all(&ListParams::default().at("3")).await.unwrap_err();
    assert_eq!(server.lines().len(), 1);
    let classification = classify(Situation::at(Phase::List), Failure::from(&error));
    assert_eq!(classification.decision, Decision::RelistFromScratch);
}

#[tokio::test]
async fn no_name_reaches_another_path_on_the_wire() {
    let server = ScriptedServer::handler(|_| Reply::json(200, "{}")).await;
    let here = configs(&server);
    let injected = ["../secrets/admin-token", "a?x=y", "a#f", "a%2fb", "..", "", "a/b", "a\r\nhost: x"];
    for name in injected {
        assert!(matches!(here.get(name).await, Err(Error::Invalid { .. })), "get {name:?}");
        let deleted = here.delete(name, &DeleteParams::default()).await;
        assert!(matches!(deleted, Err(Error::Invalid { .. })), "delete {name:?}");
        let elsewhere = Client::from(server.client()).resource::<ConfigMap>().namespace(name);
        assert!(matches!(elsewhere.get("a").await, Err(Error::Invalid { .. })), "namespace {name:?}");
        let scale = here.get_subresource::<Value>("a", name).await;
        assert!(matches!(scale, Err(Error::Invalid { .. })), "subresource {name:?}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());

    // Characters that are valid in a name but not in a path arrive encoded.
    let _: Value = here.get_subresource("ä b", "c").await.unwrap();
    assert_eq!(server.lines(), ["GET /api/v1/namespaces/web/configmaps/%C3%A4%20b/c HTTP/1.1"]);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_only_its_host_is_reported() {
    let elsewhere = ScriptedServer::handler(|_| Reply::json(200, "{}")).await;
    for code in [301, 302, 303, 307, 308] {
        let location = format!("{}/api/v1/secrets?token=canary", elsewhere.url());
        let server =
            ScriptedServer::script([Reply::whole(code, &[("location", location.as_str())], "canary")]).await;
        let error = configs(&server).get("a").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "get configmaps \"a\" in namespace \"web\": the server responded with a redirect ({code}) to 127.0.0.1; \
                 redirects are not followed, configure the right server"
            )
        );
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        assert_eq!(server.lines().len(), 1);
        let classification = classify(Situation::at(Phase::List), Failure::from(&error));
        assert_eq!(classification.decision, Decision::GiveUp { then: Next::Relist });
    }
    let server = ScriptedServer::script([Reply::whole(302, &[("location", "/login")], "")]).await;
    let error = configs(&server).get("a").await.unwrap_err();
    assert!(error.to_string().contains("redirect (302) to the same host"), "{error}");
    assert!(elsewhere.received().is_empty());

    let server = ScriptedServer::script([Reply::head(304, &[])]).await;
    let error = configs(&server).get("a").await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
}

#[tokio::test]
async fn http_429_carries_how_long_to_wait_from_the_header_or_the_status() {
    let too_many = |details: &Value| status(429, "TooManyRequests", "slow down", details);
    let json_type = ("content-type", "application/json");
    let table = [
        (Reply::whole(429, &[("retry-after", "2"), json_type], too_many(&Value::Null)), Some(2)),
        (Reply::json(429, too_many(&json!({"retryAfterSeconds": 3}))), Some(3)),
        (Reply::whole(429, &[("retry-after", "0")], ""), Some(0)),
        (Reply::whole(429, &[("retry-after", "soon")], ""), None),
        (Reply::text(429, "slow down"), None),
    ];
    for (reply, seconds) in table {
        let server = ScriptedServer::script([reply]).await;
        let error = start_watch(&configs(&server)).await.unwrap_err();
        let retry_after = seconds.map(Duration::from_secs);
        assert_eq!(error.retry_after(), retry_after);
        let classification = classify(Situation::at(Phase::WatchStart), Failure::from(&error));
        assert_eq!(classification.decision, Decision::BackOff { retry_after, then: Next::Resume });
        assert_eq!(server.lines().len(), 1, "no retry underneath");
    }
}

#[tokio::test]
async fn a_write_whose_response_is_lost_is_sent_once() {
    let server = ScriptedServer::handler(|_| Reply::nothing().reset()).await;
    let pods = Client::from(server.client()).resource::<Pod>().namespace("web");
    let error = pods.create(&kube_core::params::PostParams::default(), &Pod::default()).await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }), "{error}");
    assert_eq!(server.lines().len(), 1);
}
