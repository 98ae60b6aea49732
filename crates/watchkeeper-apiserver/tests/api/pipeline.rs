//! The request pipeline before and around the verb: deadlines, credentials, hosts, paths, warnings.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, Clock, Endpoint, ResponseBody, TokenFileError, TokioClock};

use crate::support::{Cluster, read};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TOKENS: &str = "admin,root,1,\"system:masters\"\nlimited,ann,2,";

type AnyBody = BoxBody<Bytes, Infallible>;

fn whole(text: impl Into<Bytes>) -> AnyBody {
    Full::new(text.into()).boxed()
}

/// Returns a body that never sends anything.
fn stalled() -> AnyBody {
    BoxBody::new(StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>()))
}

async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    headers: &[(&str, &[u8])],
    body: AnyBody,
) -> Response<ResponseBody> {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.service().oneshot(request.body(body).unwrap()).await.unwrap()
}

/// Sends a raw request over a socket and returns the status code.
async fn over_socket(endpoint: &Endpoint, head: &[u8]) -> u16 {
    let mut socket = TcpStream::connect(endpoint.address()).await.unwrap();
    socket.write_all(head).await.unwrap();
    let mut line = [0; 12];
    socket.read_exact(&mut line).await.unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

async fn listening(server: &ApiServer) -> Endpoint {
    server.listen(([127, 0, 0, 1], 0).into()).await.unwrap()
}

fn large_map(name: &str, bytes: usize) -> Value {
    json!({"metadata": {"name": name}, "data": {"large": "x".repeat(bytes)}})
}

#[tokio::test(start_paused = true)]
async fn a_request_that_exceeds_its_deadline_is_answered_with_504() {
    let server = ApiServer::in_process();
    for (query, seconds) in [("", 60), ("?timeout=2s", 2), ("?timeout=10m", 60), ("?timeout=0s", 60)] {
        let clock = TokioClock::new();
        let before = clock.now();
        let response = send(&server, "POST", &format!("{MAPS}{query}"), &[], stalled()).await;
        let (code, status) = read(response).await;
        assert_eq!((code, &status["reason"], &status["kind"]), (504, &json!("Timeout"), &json!("Status")));
        assert_eq!(clock.now().saturating_sub(before).as_secs(), seconds, "{query}");
    }
    // The wait for a future version ends at the deadline too.
    let (code, _) =
        read(send(&server, "GET", &format!("{MAPS}?resourceVersion=999&timeout=1s"), &[], whole("")).await)
            .await;
    assert_eq!(code, 504);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_timeout_is_rejected_with_400_except_for_watches() {
    let cluster = Cluster::new();
    for path in
        [format!("{MAPS}?timeout=invalid"), "/version?timeout=5".to_owned(), format!("{MAPS}/a?timeout=x")]
    {
        let (code, status) = cluster.get(&path).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{path}");
    }
    let watch = format!("{MAPS}?watch=true&timeout=invalid&timeoutSeconds=1");
    assert_eq!(cluster.send("GET", &watch, &Value::Null).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_refused_are_answered_before_their_body_is_read() {
    let server = ApiServer::builder().tokens(TOKENS).unwrap().rbac(true).build();
    let (admin, limited, unknown) = (&b"Bearer admin"[..], &b"Bearer limited"[..], &b"Bearer unknown"[..]);
    for (path, token, accept, expected) in [
        (MAPS, unknown, "application/json", 401),
        (MAPS, limited, "application/json", 403),
        (MAPS, admin, "text/html", 406),
        ("/api/v1/namespaces/default/nonsense", admin, "application/json", 404),
        ("/api/v1/configmaps", admin, "application/json", 405),
        ("/nonsense", limited, "application/json", 403),
    ] {
        let headers = [("authorization", token), ("accept", accept.as_bytes())];
        let answered =
            tokio::time::timeout(Duration::from_millis(1), send(&server, "POST", path, &headers, stalled()));
        assert_eq!(answered.await.expect(path).status(), expected, "{path}");
    }
}

#[tokio::test]
async fn small_requests_are_answered_while_a_large_one_is_processed() {
    let server = ApiServer::in_process();
    let large = large_map("large", 900_000).to_string();
    let patch = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    let item = format!("{MAPS}/large");
    // All tasks run on one thread: tasks complete in the order of polling, except those on blocking threads.
    let rounds = [
        ("POST", MAPS, "application/json", large, 201),
        // The stored object makes a small patch expensive.
        ("PATCH", item.as_str(), "application/merge-patch+json", patch, 200),
    ];
    for (method, path, content_type, body, expected) in rounds {
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
        let request = request.body(whole(body)).unwrap();
        let mut large = std::pin::pin!(server.service().oneshot(request));
        let small = send(&server, "GET", "/api/v1/namespaces/default", &[], whole(""));
        tokio::select! {
            biased;
            _ = &mut large => panic!("{method}: the large request kept the thread to itself"),
            response = small => assert_eq!(response.status(), 200),
        }
        assert_eq!(large.await.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn lists_with_large_selectors_do_not_block_other_requests() {
    let server = ApiServer::in_process();
    for number in 0..50 {
        let map = json!({"metadata": {"name": format!("m{number}"), "labels": {"app": "a"}}}).to_string();
        assert_eq!(send(&server, "POST", MAPS, &[], whole(map)).await.status(), 201);
    }
    let values: Vec<String> = (0..2_000).map(|number| format!("v{number}")).collect();
    let path = format!("{MAPS}?labelSelector=app%20in%20(a,{})", values.join(","));
    let mut list = std::pin::pin!(send(&server, "GET", &path, &[], whole("")));
    tokio::select! {
        biased;
        _ = &mut list => panic!("the list kept the thread to itself"),
        response = send(&server, "GET", "/version", &[], whole("")) => assert_eq!(response.status(), 200),
    }
    let (code, list) = read(list.await).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(50)));
}

#[tokio::test(start_paused = true)]
async fn a_large_request_works_on_paused_time() {
    let server = ApiServer::in_process();
    let clock = TokioClock::new();
    let before = clock.now();
    let (code, created) =
        read(send(&server, "POST", MAPS, &[], whole(large_map("a", 500_000).to_string())).await).await;
    assert_eq!((code, &created["metadata"]["name"]), (201, &json!("a")));
    assert_eq!(clock.now(), before, "paused time does not advance during the work");
}

#[tokio::test]
async fn an_empty_token_file_is_refused() {
    for text in ["", "\n", "  \n\t\n"] {
        let error = ApiServer::builder().tokens(text).expect_err("no token");
        assert_eq!(error, TokenFileError::NoTokens);
        assert!(error.to_string().contains("token,user,uid"), "{error}");
    }
}

#[tokio::test]
async fn rbac_without_tokens_is_anonymous_on_sockets_and_the_administrator_in_process() {
    let server = ApiServer::builder().rbac(true).build();
    assert_eq!(send(&server, "GET", MAPS, &[], whole("")).await.status(), 200);
    let endpoint = listening(&server).await;
    let get = |path: &str, extra: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{extra}\r\n").into_bytes()
    };
    assert_eq!(over_socket(&endpoint, &get(MAPS, "")).await, 403);
    assert_eq!(over_socket(&endpoint, &get("/version", "")).await, 200, "anonymous users can read it");
    assert_eq!(over_socket(&endpoint, &get(MAPS, "Authorization: Bearer any\r\n")).await, 401);
    server.shutdown().await;
}

#[tokio::test]
async fn tokens_without_rbac_reject_requests_without_a_token() {
    let server = ApiServer::builder().tokens(TOKENS).unwrap().build();
    let endpoint = listening(&server).await;
    let get = |extra: &str| format!("GET {MAPS} HTTP/1.1\r\nHost: any.example\r\n{extra}\r\n").into_bytes();
    assert_eq!(over_socket(&endpoint, &get("")).await, 401);
    assert_eq!(over_socket(&endpoint, &get("Authorization: Bearer limited\r\n")).await, 200);
    server.shutdown().await;
}

#[tokio::test]
async fn a_bearer_token_that_is_not_ascii_is_401() {
    let server = ApiServer::builder().tokens(TOKENS).unwrap().rbac(true).build();
    for (value, expected) in [
        (&b"Bearer \xc3\xa4dmin"[..], 401),
        (b"bEaReR \xff", 401),
        (b"Basic \xff", 403),
        (b"Bearer admin", 200),
    ] {
        let response = send(&server, "GET", MAPS, &[("authorization", value)], whole("")).await;
        assert_eq!(response.status(), expected, "{value:?}");
    }
}

#[tokio::test]
async fn the_control_path_needs_credentials_and_permission() {
    let compact = || whole(r#"{"action": "compact"}"#);
    let server = ApiServer::builder().tokens(TOKENS).unwrap().rbac(true).control(true).build();
    for (token, expected) in
        [(&b""[..], 403), (b"Bearer unknown", 401), (b"Bearer limited", 403), (b"Bearer admin", 200)]
    {
        let response = send(&server, "POST", "/-/control", &[("authorization", token)], compact()).await;
        assert_eq!(response.status(), expected, "{token:?}");
    }
    // A role that permits posting to the path is enough.
    let role = json!({"metadata": {"name": "control"}, "rules": [{"verbs": ["post"], "nonResourceURLs": ["/-/control"]}]});
    let binding = json!({
        "metadata": {"name": "control"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "control"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        let admin = [("authorization", &b"Bearer admin"[..])];
        assert_eq!(send(&server, "POST", &path, &admin, whole(object.to_string())).await.status(), 201);
    }
    let limited = [("authorization", &b"Bearer limited"[..])];
    assert_eq!(send(&server, "POST", "/-/control", &limited, compact()).await.status(), 200);

    let server = ApiServer::builder().tokens(TOKENS).unwrap().control(true).build();
    let endpoint = listening(&server).await;
    let post =
        b"POST /-/control HTTP/1.1\r\nHost: localhost\r\nContent-Length: 21\r\n\r\n{\"action\": \"compact\"}";
    assert_eq!(over_socket(&endpoint, post).await, 401);
    server.shutdown().await;
}

#[tokio::test]
async fn permission_to_list_one_name_allows_a_metadata_name_field_selector() {
    let server = ApiServer::builder().tokens(TOKENS).unwrap().rbac(true).build();
    let rules = json!([{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}]);
    let binding = json!({
        "metadata": {"name": "one"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    let role = json!({"metadata": {"name": "one"}, "rules": rules});
    for (plural, object) in [("roles", role), ("rolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/default/{plural}");
        let admin = [("authorization", &b"Bearer admin"[..])];
        assert_eq!(send(&server, "POST", &path, &admin, whole(object.to_string())).await.status(), 201);
    }
    for (query, expected) in [
        ("?fieldSelector=metadata.name%3Da", 200),
        ("?fieldSelector=metadata.name%3Da&watch=true", 200),
        ("?fieldSelector=metadata.name%3Db", 403),
        ("?fieldSelector=metadata.name!%3Da", 403),
        ("?fieldSelector=metadata.name%3D", 403),
        ("", 403),
    ] {
        let limited = [("authorization", &b"Bearer limited"[..])];
        let response = send(&server, "GET", &format!("{MAPS}{query}"), &limited, whole("")).await;
        assert_eq!(response.status(), expected, "{query}");
    }
}

#[tokio::test]
async fn a_server_without_authentication_rejects_cross_origin_requests() {
    let server = ApiServer::builder().allowed_hosts(["dev.example"]).build();
    let endpoint = listening(&server).await;
    for (headers, expected) in [
        ("Host: localhost", 200),
        ("Host: 127.0.0.1:1", 200),
        ("Host: dev.example:8001", 200),
        ("Host: localhost\r\nOrigin: http://localhost:8001", 200),
        ("Host: rebound.example", 403),
        ("Host: localhost\r\nOrigin: https://evil.example", 403),
        ("Host: localhost\r\nOrigin: null", 403),
        ("Host: localhost\r\nSec-Fetch-Site: cross-site", 403),
    ] {
        for (method, path) in [("GET", MAPS), ("POST", MAPS), ("GET", "/version")] {
            let body = if method == "POST" { r#"{"metadata":{"generateName":"a-"}}"# } else { "" };
            let length = body.len();
            let head = format!(
                "{method} {path} HTTP/1.1\r\n{headers}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            let expected = if expected == 200 && method == "POST" { 201 } else { expected };
            assert_eq!(over_socket(&endpoint, head.as_bytes()).await, expected, "{method} {path} {headers}");
        }
    }
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn paths_with_empty_or_superfluous_segments_are_404() {
    let cluster = Cluster::new();
    cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    for (path, is_status) in [
        ("//api/v1", false),
        ("//api/v1/namespaces", false),
        ("/api//v1/namespaces", true),
        ("/api/v1//namespaces", true),
        ("/api/v1/namespaces/default//configmaps", true),
        ("/api/v1/namespaces/default/configmaps//a", true),
        ("/api/v1/namespaces/default/status/extra", true),
        ("/api/v1/namespaces/default/configmaps/a/status/extra/segments", true),
        ("/apis/apps/v1/namespaces/default/deployments/d/status/extra", true),
        ("/apis/apps/v1/namespaces/default/deployments/d/scale/extra", true),
        ("/api/v9", true),
        ("/api/v9/pods", true),
        ("/apis/none.example/v1/things", false),
    ] {
        let (code, body) = cluster.get(path).await;
        assert_eq!((code, body["kind"] == "Status"), (404, is_status), "{path}: {body}");
    }
    for path in
        [MAPS.to_owned(), format!("{MAPS}/"), format!("{MAPS}/a/"), "/api/v1/".to_owned(), "/".to_owned()]
    {
        assert_eq!(cluster.get(&path).await.0, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn queries_are_validated_like_upstream() {
    let cluster = Cluster::new();
    cluster.ok("POST", MAPS, json!({"metadata": {"name": "a", "labels": {"app": ""}}})).await;
    let (code, list) = cluster.get(&format!("{MAPS}?labelSelector=app%20in%20()")).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(1)));
    for (method, query, expected) in [
        ("GET", "?limit=", 400),
        ("GET", "?limit=x", 400),
        ("GET", "?limit=-1", 200),
        ("GET", "?timeoutSeconds=9223372036854775808", 400),
        ("GET", "?resourceVersionMatch=Foo&resourceVersion=1", 422),
        ("GET", "?sendInitialEvents=true", 422),
        ("GET", "?includeObject=Foo", 200),
        ("GET", "?fieldSelector=a", 400),
        ("POST", "?dryRun=", 422),
        ("POST", "?dryRun=Some", 422),
        ("POST", "?fieldValidation=Foo", 422),
        ("POST", "?fieldManager=%07", 422),
        ("DELETE", "/a?gracePeriodSeconds=x", 400),
        ("DELETE", "/a?gracePeriodSeconds=", 400),
        ("DELETE", "/a?propagationPolicy=Foo", 422),
        ("DELETE", "/a?propagationPolicy=", 422),
        ("DELETE", "/a?dryRun=", 422),
    ] {
        let body = if method == "POST" { json!({"metadata": {"name": "b"}}) } else { Value::Null };
        let (code, reply) = cluster.call(method, &format!("{MAPS}{query}"), body).await;
        assert_eq!(code, expected, "{method} {query}: {reply}");
    }
    let table = [("accept", &b"application/json;as=Table;v=v1;g=meta.k8s.io"[..])];
    let path = format!("{MAPS}?includeObject=Foo");
    assert_eq!(send(&cluster.server, "GET", &path, &table, whole("")).await.status(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_the_largest_timeout_is_accepted() {
    let cluster = Cluster::new();
    cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    for seconds in ["9223372036854775807", "9223372036", "4294967296"] {
        let mut watch = cluster.watch(&format!("{MAPS}?watch=1&timeoutSeconds={seconds}")).await;
        assert_eq!(watch.next().await.unwrap().0, "ADDED", "{seconds}");
    }
}

fn warnings(response: &Response<ResponseBody>) -> Vec<&str> {
    response.headers().get_all(header::WARNING).iter().map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reply_has_no_more_warnings_than_clients_accept() {
    let cluster = Cluster::new();
    let mut object = json!({"metadata": {"name": "a"}});
    for number in 0..5_000 {
        object[format!("unknown{number}")] = 1.into();
    }
    let response = cluster.send("POST", MAPS, &object).await;
    assert_eq!(response.status(), 201);
    assert!((1..=64).contains(&warnings(&response).len()), "{}", warnings(&response).len());
    assert!(response.headers().len() < 100);
}

#[tokio::test(start_paused = true)]
async fn error_responses_carry_earlier_warnings() {
    let cluster = Cluster::new();
    cluster.ok("POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    let unknown = "unknown field \\\"nonsense\\\"";
    for (method, path, body, expected) in [
        ("POST", MAPS.to_owned(), json!({"metadata": {"name": "Wrong!"}, "nonsense": 1}), 422),
        ("POST", MAPS.to_owned(), json!({"metadata": {"name": "a"}, "nonsense": 1}), 409),
        (
            "PUT",
            format!("{MAPS}/a"),
            json!({"metadata": {"name": "a"}, "data": {"!": ""}, "nonsense": 1}),
            422,
        ),
    ] {
        let response = cluster.send(method, &path, &body).await;
        assert_eq!(response.status(), expected);
        assert!(
            warnings(&response).iter().any(|text| text.contains(unknown)),
            "{method} {:?}",
            warnings(&response)
        );
    }
    let patch = json!({"data": {"!": ""}, "nonsense": 1});
    let response =
        cluster.send_as("PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", &patch).await;
    assert_eq!(response.status(), 422);
    assert!(warnings(&response).iter().any(|text| text.contains(unknown)), "{:?}", warnings(&response));

    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    for (path, expected) in [(format!("{jobs}/none"), 404), (jobs.to_owned(), 200)] {
        let response = cluster.send("DELETE", &path, &Value::Null).await;
        assert_eq!(response.status(), expected);
        assert!(warnings(&response).iter().any(|text| text.contains("child pods are preserved")), "{path}");
    }
}
