//! Requests that act as another user.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Guarded, ann};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn a_request_as_another_user_has_the_permissions_of_that_user() {
    let guarded = Guarded::new();
    assert_eq!(guarded.admin().get(PODS).await.0, 200);
    let (code, status) = guarded.admin().with("Impersonate-User", "nobody").get(PODS).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("pods is forbidden: User \"nobody\" cannot list resource \"pods\""),
        "{message}"
    );

    let reader = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]);
    guarded.grant("reader", json!({"kind": "User", "name": "nobody"}), reader).await;
    assert_eq!(guarded.admin().with("Impersonate-User", "nobody").get(PODS).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn only_permitted_users_groups_uids_and_extra_values_are_impersonated() {
    let guarded = Guarded::new();
    let as_bob = || {
        let caller = guarded.ann().with("Impersonate-User", "bob").with("Impersonate-Group", "ops");
        let caller = caller.with("Impersonate-Group", "web").with("Impersonate-Uid", "7");
        caller.with("Impersonate-Extra-Acme.io%2fScopes", "a").with("impersonate-extra-acme.io%2fscopes", "b")
    };
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    assert_eq!(as_bob().call("POST", reviews, json!({})).await.0, 403);
    let rules = json!([
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users", "groups"], "resourceNames": ["bob", "ops", "web"]},
        {"verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["uids"], "resourceNames": ["7"]},
        {"verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["userextras/acme.io/scopes"]},
    ]);
    guarded.grant("impersonator", ann(), rules).await;
    assert_eq!(
        as_bob().identity().await,
        json!({
            "username": "bob",
            "uid": "7",
            "groups": ["ops", "web", "system:authenticated"],
            "extra": {"acme.io/scopes": ["a", "b"]},
        })
    );
    for (name, value) in [("Impersonate-Group", "system:masters"), ("Impersonate-Extra-Other", "a")] {
        let (code, status) = as_bob().with(name, value).call("POST", reviews, json!({})).await;
        assert_eq!(code, 403, "{name}: {status}");
    }
    assert_eq!(guarded.ann().with("Impersonate-User", "eve").call("POST", reviews, json!({})).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn a_service_account_is_impersonated_with_its_groups() {
    let guarded = Guarded::new();
    let robot = guarded.admin().with("Impersonate-User", "system:serviceaccount:shop:robot");
    assert_eq!(
        robot.identity().await,
        json!({
            "username": "system:serviceaccount:shop:robot",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
        })
    );
    let anonymous = guarded.admin().with("Impersonate-User", "system:anonymous");
    assert_eq!(anonymous.get("/version").await.0, 200);
    assert_eq!(anonymous.get("/apis").await.0, 403, "paths are authorized for the impersonated user");
}

#[tokio::test(start_paused = true)]
async fn access_reviews_answer_for_the_impersonated_user() {
    let guarded = Guarded::new();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let question =
        json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}});
    for (caller, expected) in
        [(guarded.admin(), true), (guarded.admin().with("Impersonate-User", "nobody"), false)]
    {
        let review = caller.ok("POST", path, question.clone()).await;
        assert_eq!(review["status"]["allowed"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn headers_without_a_user_are_a_bad_request() {
    let guarded = Guarded::new();
    for name in ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes"] {
        for path in [PODS, "/version"] {
            let (code, status) = guarded.admin().with(name, "x").get(path).await;
            assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{name} {path}");
        }
    }
}

#[tokio::test]
async fn impersonation_works_on_a_socket() {
    let guarded = Guarded::new();
    let endpoint = guarded.server.listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let mut socket = TcpStream::connect(endpoint.address()).await.unwrap();
    let request = format!(
        "GET {PODS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin-token\r\nImpersonate-User: nobody\r\n\
         Connection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 403"), "{reply}");
    let status: Value = serde_json::from_str(reply.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(status["reason"], "Forbidden");
    guarded.server.shutdown().await;
}
