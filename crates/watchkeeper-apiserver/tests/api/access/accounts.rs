//! Tokens of service accounts: issued, used, reviewed, rejected.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::Request;
use http_body_util::BodyExt;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use tower::ServiceExt;
use watchkeeper_apiserver::ApiServer;

use super::Guarded;

const API: &str = "https://kubernetes.default.svc.cluster.local";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn cluster() -> Guarded {
    let guarded = Guarded::with(ApiServer::builder().controllers(false));
    guarded.admin().ok("POST", ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
    guarded
}

async fn request(guarded: &Guarded, spec: Value) -> (u16, Value) {
    guarded.admin().call("POST", &format!("{ACCOUNTS}/robot/token"), json!({ "spec": spec })).await
}

async fn token(guarded: &Guarded, spec: Value) -> String {
    let (code, reply) = request(guarded, spec).await;
    assert_eq!(code, 201, "{reply}");
    reply["status"]["token"].as_str().unwrap().to_owned()
}

fn claims(token: &str) -> Value {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice(&claims).unwrap()
}

async fn is_accepted(guarded: &Guarded, token: &str) -> bool {
    let (code, reply) = guarded
        .bearer(token)
        .call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({}))
        .await;
    match code {
        201 => true,
        401 => {
            assert_eq!(
                (&reply["reason"], &reply["message"]),
                (&json!("Unauthorized"), &json!("Unauthorized"))
            );
            assert_eq!(reply["details"], Value::Null, "a rejection gives no reason");
            false
        }
        _ => panic!("{code} {reply}"),
    }
}

async fn review(guarded: &Guarded, token: &str, audiences: &[&str]) -> Value {
    let body = json!({"spec": {"token": token, "audiences": audiences}});
    guarded.admin().ok("POST", REVIEWS, body).await["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_issued_token_authenticates_its_service_account_until_it_expires() {
    let guarded = cluster().await;
    let token = token(&guarded, json!({"expirationSeconds": 600})).await;
    let found = claims(&token);
    let account = guarded.admin().ok("GET", &format!("{ACCOUNTS}/robot"), Value::Null).await;
    assert_eq!(found["iss"], API);
    assert_eq!(found["aud"], json!([API]));
    assert_eq!(found["sub"], "system:serviceaccount:default:robot");
    assert_eq!(found["exp"].as_i64().unwrap() - found["iat"].as_i64().unwrap(), 600);
    assert_eq!(found["nbf"], found["iat"]);
    assert_eq!(
        found["kubernetes.io"],
        json!({"namespace": "default", "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}})
    );
    let identity = guarded.bearer(&token).identity().await;
    assert_eq!(
        identity,
        json!({
            "username": "system:serviceaccount:default:robot",
            "uid": account["metadata"]["uid"],
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={}", found["jti"].as_str().unwrap())]},
        })
    );
    assert_eq!(guarded.bearer(&token).get("/api/v1/namespaces/default/pods").await.0, 403);
    let list = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]);
    let robot = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"});
    guarded.grant("robot", robot, list).await;
    assert_eq!(guarded.bearer(&token).get("/api/v1/namespaces/default/pods").await.0, 200);

    tokio::time::advance(Duration::from_secs(659)).await;
    assert!(is_accepted(&guarded, &token).await, "clocks may differ by a minute");
    tokio::time::advance(Duration::from_secs(3)).await;
    assert!(!is_accepted(&guarded, &token).await);
    let status = review(&guarded, &token, &[]).await;
    assert_eq!(status, json!({"user": {}, "error": "service account token has expired"}));
}

#[tokio::test(start_paused = true)]
async fn tokens_of_deleted_and_recreated_accounts_are_rejected() {
    let guarded = cluster().await;
    let token = token(&guarded, json!({})).await;
    assert!(is_accepted(&guarded, &token).await);
    guarded.admin().ok("DELETE", &format!("{ACCOUNTS}/robot"), Value::Null).await;
    assert!(!is_accepted(&guarded, &token).await);
    guarded.admin().ok("POST", ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
    assert!(!is_accepted(&guarded, &token).await, "another account has the name");
    assert_eq!(review(&guarded, &token, &[]).await["authenticated"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_bound_token_is_invalid_once_its_object_is_deleted() {
    let guarded = cluster().await;
    let admin = guarded.admin();
    admin.ok("POST", "/api/v1/nodes", json!({"metadata": {"name": "worker"}})).await;
    let containers = json!([{"name": "c", "image": "i"}]);
    let spec = json!({"serviceAccountName": "robot", "nodeName": "worker", "containers": containers});
    let objects = [
        ("Secret", "/api/v1/namespaces/default/secrets", json!({"metadata": {"name": "x"}})),
        ("Node", "/api/v1/nodes", json!({"metadata": {"name": "x"}})),
        ("Pod", "/api/v1/namespaces/default/pods", json!({"metadata": {"name": "x"}, "spec": spec})),
    ];
    for (kind, path, object) in objects {
        let created = admin.ok("POST", path, object.clone()).await;
        let uid = created["metadata"]["uid"].as_str().unwrap();
        let reference = json!({"apiVersion": "v1", "kind": kind, "name": "x", "uid": uid});
        let token = token(&guarded, json!({ "boundObjectRef": reference })).await;
        let member = kind.to_lowercase();
        assert_eq!(claims(&token)["kubernetes.io"][member], json!({"name": "x", "uid": uid}), "{kind}");
        assert!(is_accepted(&guarded, &token).await, "{kind}");
        admin.ok("DELETE", &format!("{path}/x?gracePeriodSeconds=0"), Value::Null).await;
        assert!(!is_accepted(&guarded, &token).await, "{kind}");
        admin.ok("POST", path, object).await;
        assert!(!is_accepted(&guarded, &token).await, "another {kind} has the name");
        let (code, conflict) = request(&guarded, json!({ "boundObjectRef": reference })).await;
        assert_eq!((code, &conflict["reason"]), (409, &json!("Conflict")), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_bound_token_names_pod_and_node_and_is_valid_during_the_grace_period() {
    let guarded = cluster().await;
    let admin = guarded.admin();
    let node = admin.ok("POST", "/api/v1/nodes", json!({"metadata": {"name": "worker"}})).await;
    let pods = "/api/v1/namespaces/default/pods";
    let containers = json!([{"name": "c", "image": "i"}]);
    let spec = json!({"serviceAccountName": "robot", "nodeName": "worker", "containers": containers});
    let pod = admin.ok("POST", pods, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": "p"});
    let token = token(&guarded, json!({ "boundObjectRef": reference })).await;
    let extra = guarded.bearer(&token).identity().await["extra"].clone();
    for (key, value) in [
        ("pod-name", "p"),
        ("pod-uid", pod["metadata"]["uid"].as_str().unwrap()),
        ("node-name", "worker"),
        ("node-uid", node["metadata"]["uid"].as_str().unwrap()),
    ] {
        assert_eq!(extra[format!("authentication.kubernetes.io/{key}")], json!([value]));
    }
    admin.ok("DELETE", &format!("{pods}/p?gracePeriodSeconds=100"), Value::Null).await;
    tokio::time::advance(Duration::from_secs(150)).await;
    assert!(is_accepted(&guarded, &token).await, "the pod is stopping, and clocks may differ by a minute");
    tokio::time::advance(Duration::from_secs(20)).await;
    assert!(!is_accepted(&guarded, &token).await);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_valid_only_for_its_audiences() {
    let guarded = cluster().await;
    let vault = token(&guarded, json!({"audiences": ["vault", "proxy"]})).await;
    assert!(!is_accepted(&guarded, &vault).await, "the token is not for this server");
    assert_eq!(review(&guarded, &vault, &[]).await["authenticated"], Value::Null);
    let status = review(&guarded, &vault, &["other", "vault"]).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot");
    assert_eq!(review(&guarded, "ann-token", &[]).await["audiences"], json!([API]));
    assert_eq!(review(&guarded, "ann-token", &["vault"]).await["authenticated"], Value::Null);
    let status = review(&guarded, "nonsense", &[]).await;
    assert_eq!(status, json!({"user": {}, "error": "invalid bearer token"}));
}

#[tokio::test(start_paused = true)]
async fn token_requests_are_validated() {
    let guarded = cluster().await;
    let containers = json!([{"name": "c", "image": "i"}]);
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "other", "containers": containers}});
    guarded.admin().ok("POST", "/api/v1/namespaces/default/pods", pod).await;
    let bound = |api_version: &str, kind: &str, name: &str| json!({"boundObjectRef": {"apiVersion": api_version, "kind": kind, "name": name}});
    for (spec, code, reason) in [
        (json!({"expirationSeconds": 599}), 422, "Invalid"),
        (json!({"expirationSeconds": (1_u64 << 32) + 1}), 422, "Invalid"),
        (json!({"expirationSeconds": 1_u64 << 32}), 201, ""),
        (bound("v1", "Pod", "none"), 404, "NotFound"),
        (bound("v1", "Secret", "none"), 404, "NotFound"),
        (bound("v1", "Node", "none"), 404, "NotFound"),
        (bound("v1", "Pod", "p"), 400, "BadRequest"),
        (bound("v1", "ConfigMap", "none"), 400, "BadRequest"),
        (bound("apps/v1", "Pod", "p"), 400, "BadRequest"),
    ] {
        let (found, reply) = request(&guarded, spec.clone()).await;
        assert_eq!(found, code, "{spec}: {reply}");
        assert_eq!(reply["reason"].as_str().unwrap_or_default(), reason, "{spec}");
    }
    for (metadata, code) in [
        (json!({"name": "other"}), 422),
        (json!({"namespace": "other"}), 400),
        (json!({"uid": "other"}), 409),
        (json!({"name": "robot", "namespace": "default"}), 201),
    ] {
        let body = json!({"metadata": metadata, "spec": {}});
        let (found, reply) = guarded.admin().call("POST", &format!("{ACCOUNTS}/robot/token"), body).await;
        assert_eq!(found, code, "{metadata}: {reply}");
    }
    let (code, _) =
        guarded.admin().call("POST", &format!("{ACCOUNTS}/none/token"), json!({"spec": {}})).await;
    assert_eq!(code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_token_with_the_kubelet_lifetime_gets_extended_expiration() {
    let guarded = cluster().await;
    let containers = json!([{"name": "c", "image": "i"}]);
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"serviceAccountName": "robot", "containers": containers}});
    guarded.admin().ok("POST", "/api/v1/namespaces/default/pods", pod).await;
    let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": "p"});
    let found =
        claims(&token(&guarded, json!({"expirationSeconds": 3607, "boundObjectRef": reference})).await);
    let lifetime = found["exp"].as_i64().unwrap() - found["iat"].as_i64().unwrap();
    assert_eq!(lifetime, 365 * 24 * 3600);
    assert_eq!(found["kubernetes.io"]["warnafter"].as_i64().unwrap(), found["iat"].as_i64().unwrap() + 3607);
}

#[tokio::test(start_paused = true)]
async fn forged_and_foreign_tokens_are_rejected() {
    let guarded = cluster().await;
    let token = token(&guarded, json!({})).await;
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts")
    };
    let mut forged = claims(&token);
    forged["sub"] = "system:serviceaccount:kube-system:admin".into();
    forged["kubernetes.io"]["namespace"] = "kube-system".into();
    let forged = BASE64_URL_SAFE_NO_PAD.encode(forged.to_string());
    let none = BASE64_URL_SAFE_NO_PAD.encode("{\"alg\":\"none\"}");
    let foreign = super::accounts::token(&cluster().await, json!({})).await;
    for token in [
        format!("{header}.{forged}.{signature}"),
        format!("{none}.{payload}."),
        format!("{header}.{payload}.{}", "A".repeat(86)),
        foreign,
    ] {
        assert!(!is_accepted(&guarded, &token).await, "{token}");
        assert_eq!(review(&guarded, &token, &[]).await["authenticated"], Value::Null);
    }
    let open = ApiServer::builder().controllers(false).build();
    let client = super::Caller { server: &open, headers: Vec::new() };
    let request = client.with("authorization", &format!("Bearer {token}"));
    assert_eq!(
        request.get("/version").await.0,
        401,
        "a server without a token file rejects forged tokens too"
    );
}

#[tokio::test(start_paused = true)]
async fn bearer_tokens_that_are_not_text_are_unauthorized() {
    let guarded = cluster().await;
    let request = Request::builder()
        .uri("/version")
        .header("authorization", http::HeaderValue::from_bytes(b"Bearer \xff\xfe").unwrap())
        .body(String::new())
        .unwrap();
    assert_eq!(guarded.server.service().oneshot(request).await.unwrap().status(), 401);
}

#[tokio::test(start_paused = true)]
async fn keys_and_issuer_are_published_to_service_accounts_and_verify_tokens() {
    let guarded = cluster().await;
    let token = token(&guarded, json!({})).await;
    let robot = guarded.bearer(&token);
    for path in ["/.well-known/openid-configuration", "/openid/v1/jwks"] {
        assert_eq!(guarded.ann().get(path).await.0, 403, "{path} is for service accounts by default");
    }
    let (code, configuration) = robot.get("/.well-known/openid-configuration").await;
    assert_eq!((code, &configuration["issuer"]), (200, &json!(API)));
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let (code, keys) = robot.get("/openid/v1/jwks").await;
    assert_eq!(code, 200);
    let key = &keys["keys"][0];
    let decode = |member: &str| BASE64_URL_SAFE_NO_PAD.decode(key[member].as_str().unwrap()).unwrap();
    let point = [vec![4], decode("x"), decode("y")].concat();
    let (message, signature) = token.rsplit_once('.').unwrap();
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message.as_bytes(), &signature).unwrap();

    for (path, content_type) in [
        ("/.well-known/openid-configuration", "application/json"),
        ("/openid/v1/jwks", "application/jwk-set+json"),
    ] {
        let request = Request::builder()
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .body(String::new());
        let response = guarded.server.service().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.headers()["content-type"], content_type);
        assert_eq!(response.headers()["cache-control"], "public, max-age=3600");
        response.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn the_openid_configuration_names_the_listen_address() {
    let guarded = cluster().await;
    let endpoint = guarded.server.listen_tls(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (_, configuration) = guarded.admin().get("/.well-known/openid-configuration").await;
    assert_eq!(configuration["jwks_uri"], format!("{}/openid/v1/jwks", endpoint.url()));
    guarded.server.shutdown().await;
}
