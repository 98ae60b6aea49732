//! The REST client over a real socket: its requests, and its errors.

use k8s_openapi::api::core::v1::Pod;
use kube_core::params::{ListParams, Patch};
use serde_json::{Value, json};
use watchkeeper_client::{
    Client,
    rest::{RequestBuilder, RestClient, Retry, Verb},
};
use watchkeeper_test_support::{Reply, ScriptedServer};

fn rest(server: &ScriptedServer) -> RestClient {
    Client::from(server.client()).rest()
}

fn get_pod(rest: &RestClient) -> RequestBuilder {
    rest.get().namespace("web").resource("pods").name("front")
}

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"front","namespace":"web"}}"#;

fn status(code: u16, reason: &str, message: &str, details: &Value) -> String {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": details, "code": code,
    })
    .to_string()
}

#[tokio::test]
async fn a_request_is_sent_as_built_and_its_response_is_decoded() {
    let server =
        ScriptedServer::script([Reply::json(200, POD), Reply::json(201, POD), Reply::json(200, POD)]).await;
    let rest = rest(&server);
    let pod: Pod = get_pod(&rest).send().await.unwrap();
    assert_eq!(pod.metadata.name.as_deref(), Some("front"));
    let _: Pod =
        rest.post().namespace("web").resource("pods").header("x-trace", "7").body(&pod).send().await.unwrap();
    let patch = Patch::Merge(json!({"metadata": {"labels": null}}));
    let _: Pod = rest
        .patch(&patch)
        .namespace("web")
        .resource("pods")
        .name("front")
        .query("a", "b c")
        .send()
        .await
        .unwrap();

    let received = server.received();
    assert_eq!(received[0].line, "GET /api/v1/namespaces/web/pods/front HTTP/1.1");
    assert_eq!(received[0].header("accept-encoding"), Some("identity"));
    assert_eq!(received[1].line, "POST /api/v1/namespaces/web/pods HTTP/1.1");
    assert_eq!(received[1].header("x-trace"), Some("7"));
    assert_eq!(serde_json::from_slice::<Pod>(&received[1].body).unwrap(), pod);
    assert_eq!(received[2].line, "PATCH /api/v1/namespaces/web/pods/front?a=b+c HTTP/1.1");
    assert_eq!(received[2].header("content-type"), Some("application/merge-patch+json"));
    assert_eq!(received[2].body, br#"{"metadata":{"labels":null}}"#);
}

#[tokio::test]
async fn named_groups_collections_and_paths_outside_the_resources_are_reached() {
    let server = ScriptedServer::handler(|_| Reply::json(200, "{}")).await;
    let rest = rest(&server);
    let requests = [
        rest.get().api("apps/v1").resource("deployments").params(&ListParams::default().limit(2)),
        rest.delete().api("batch/v1").namespace("a").resource("jobs"),
        rest.put().resource("nodes").name("n").subresource("status").body(&json!({})),
        rest.get().absolute_path("/version"),
        rest.verb(Verb::Watch).resource("pods").query("watch", "1"),
    ];
    for request in requests {
        let _: Value = request.send().await.unwrap();
    }
    assert_eq!(
        server.lines(),
        [
            "GET /apis/apps/v1/deployments?limit=2 HTTP/1.1",
            "DELETE /apis/batch/v1/namespaces/a/jobs HTTP/1.1",
            "PUT /api/v1/nodes/n/status HTTP/1.1",
            "GET /version HTTP/1.1",
            "GET /api/v1/pods?watch=1 HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn an_invalid_request_is_not_sent_and_the_error_names_it() {
    let server = ScriptedServer::script([]).await;
    let rest = rest(&server);
    let table = [
        (get_pod(&rest).name("../x"), "get pods: not sent: the name may not contain '/': \"../x\""),
        (rest.get(), "get request: not sent: the resource is missing"),
        (
            rest.get().absolute_path("/a?b"),
            "get request: not sent: the path segment may not contain '?': \"a?b\"",
        ),
        (rest.get().api("/v1").resource("pods"), "get pods: not sent: the group is empty"),
        (
            rest.get().api("a/b/c").resource("pods"),
            "get pods: not sent: the version may not contain '/': \"b/c\"",
        ),
        (
            get_pod(&rest).header("x", "a\nb"),
            "get pods: not sent: header \"x\" has a name or a value that cannot be sent",
        ),
        (
            rest.put().resource("pods").name("a").retry(Retry::reads()),
            "update pods: not sent: update requests are not retried: a lost response does not mean a lost write; \
             use retry_on_conflict or decide per call",
        ),
    ];
    for (request, message) in table {
        assert_eq!(request.send::<Value>().await.unwrap_err().to_string(), message);
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn an_error_status_names_the_request_the_message_and_the_remedy() {
    let pods = |code, reason: &str, message: &str| {
        Reply::json(code, status(code, reason, message, &json!({"name": "front", "kind": "pods"})))
    };
    let long = "x".repeat(5000);
    let table = [
        (
            pods(404, "NotFound", "pods \"front\" not found"),
            "not found (404 NotFound): pods \"front\" not found \
             [if the name is right, check that the server serves this group, version and resource]",
        ),
        (
            pods(401, "Unauthorized", "Unauthorized"),
            "unauthorized (401 Unauthorized): Unauthorized [check that the credentials are present and have not expired]",
        ),
        (
            pods(403, "Forbidden", "no"),
            "forbidden (403 Forbidden): no \
             [grant the verb on the resource in a Role or ClusterRole bound to this identity]",
        ),
        (
            pods(409, "Conflict", "changed"),
            "conflict (409 Conflict): changed \
             [read the object again, apply the change to that, and write; see retry_on_conflict]",
        ),
        (
            pods(410, "Expired", "too old"),
            "expired (410 Expired): too old [list again; the version or continue token is no longer kept]",
        ),
        (
            pods(422, "Invalid", "spec: required"),
            "invalid (422 Invalid): spec: required [correct the fields named]",
        ),
        (
            pods(429, "TooManyRequests", "slow down"),
            "too many requests (429 TooManyRequests): slow down \
             [wait for the time in retry_after and send fewer requests]",
        ),
        (pods(500, "InternalError", "a\u{1b}[31m\nb"), "internal server error (500 InternalError): a [31m b"),
        (
            Reply::text(404, "404 page not found\n"),
            "not found (404 NotFound): 404 page not found \
             [if the name is right, check that the server serves this group, version and resource]",
        ),
        (
            Reply::whole(502, &[("content-type", "text/html")], "<html>canary</html>"),
            "bad gateway (502): Bad Gateway; the response does not come from the API server's own error handling",
        ),
        (
            Reply::json(503, r#"{"canary": true}"#),
            "unavailable (503 ServiceUnavailable): Service Unavailable; \
             the response does not come from the API server's own error handling",
        ),
        (
            Reply::head(500, &[("content-length", "100"), ("content-type", "application/json")])
                .send("{\"cut")
                .close(),
            "internal server error (500 InternalError): Internal Server Error; \
             the response does not come from the API server's own error handling",
        ),
        (
            Reply::json(200, status(500, "InternalError", "after all", &json!({}))),
            "internal server error (500 InternalError): after all",
        ),
        (
            // A response with code 200 whose kind is not the first member.
            Reply::json(
                200,
                r#"{"metadata":{"a":[1]},"status":"Failure","kind":"Status","apiVersion":"v1"}"#,
            ),
            "internal server error (500)",
        ),
    ];
    let replies: Vec<Reply> = table.iter().map(|(reply, _)| reply.clone()).collect();
    let server = ScriptedServer::script(replies).await;
    let rest = rest(&server);
    for (_, message) in table {
        let error = get_pod(&rest).send::<Pod>().await.unwrap_err();
        assert_eq!(error.to_string(), format!("get pods \"front\" in namespace \"web\": {message}"));
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    }

    let server = ScriptedServer::script([Reply::text(500, long.clone())]).await;
    let error = get_pod(&self::rest(&server)).send::<Pod>().await.unwrap_err();
    assert!(error.to_string().len() < 500 && error.to_string().ends_with("..."), "{error}");
}

#[tokio::test]
async fn only_the_servers_word_about_this_very_object_makes_it_absent() {
    let not_found =
        |message: &str, details: &Value| Reply::json(404, status(404, "NotFound", message, details));
    let table = [
        (not_found("pods \"front\" not found", &json!({"name": "front", "kind": "pods"})), true),
        (not_found("the server could not find the requested resource", &json!({})), false),
        (not_found("the server could not find the requested resource", &Value::Null), false),
        (not_found("namespaces \"front\" not found", &json!({"name": "front", "kind": "namespaces"})), false),
        (not_found("pods \"other\" not found", &json!({"name": "other", "kind": "pods"})), false),
        (Reply::text(404, "404 page not found"), false),
        (Reply::json(404, "{}"), false),
        (Reply::json(410, status(410, "Gone", "gone", &json!({"name": "front", "kind": "pods"}))), false),
    ];
    for (reply, is_absent) in table {
        let server = ScriptedServer::script([reply.clone()]).await;
        let result = get_pod(&rest(&server)).send_optional::<Pod>().await;
        assert_eq!(matches!(result, Ok(None)), is_absent, "{reply:?}");
        assert_eq!(result.is_err(), !is_absent, "{reply:?}");
    }
}

#[test]
fn the_futures_of_requests_can_be_sent_between_threads() {
    fn is_send<T: Send>(_: impl Fn(RequestBuilder) -> T) {}
    is_send(RequestBuilder::send::<Pod>);
    is_send(RequestBuilder::send_optional::<Pod>);
    is_send(RequestBuilder::text);
    is_send(RequestBuilder::stream);
}
