//! Requests of the clientset: built-in types, custom types, and commands to one object.

use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    authorization::v1::{LocalSubjectAccessReview, SelfSubjectAccessReview},
    certificates::v1::CertificateSigningRequest,
    core::v1::{Binding, Namespace, Pod},
};
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use watchkeeper_client::{
    Client,
    kube_core::{
        PartialObjectMeta,
        params::{ListParams, PostParams},
    },
};
use watchkeeper_test_support::{Reply, ScriptedServer};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    plural = "widgetry",
    namespaced,
    schema = "disabled",
    crates(kube_core = "watchkeeper_client::kube_core")
)]
struct WidgetSpec {
    size: u32,
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1beta1",
    kind = "Factory",
    schema = "disabled",
    crates(kube_core = "watchkeeper_client::kube_core")
)]
struct FactorySpec {
    lines: u32,
}

/// Starts a server that responds to every request with `document`, and returns a client for it.
async fn responding_with(document: Value) -> (ScriptedServer, Client) {
    let server = ScriptedServer::handler(move |_| Reply::json(200, document.to_string())).await;
    let client = Client::from(server.client());
    (server, client)
}

#[tokio::test]
async fn accessors_of_built_in_types_send_to_their_paths() {
    let (server, client) = responding_with(json!({ "metadata": {}, "items": [] })).await;
    let clientset = client.clientset();
    let all = ListParams::default();
    clientset.core_v1().pods("shop").list(&all).await.unwrap();
    clientset.core_v1().pods_in_all_namespaces().list(&all).await.unwrap();
    clientset.core_v1().nodes().list(&all).await.unwrap();
    clientset.apps_v1().deployments("shop").list(&all).await.unwrap();
    clientset.apps_v1().deployments_in_all_namespaces().list(&all).await.unwrap();
    clientset.rbac_v1().cluster_roles().list(&all).await.unwrap();
    clientset.networking_v1().network_policies("shop").list(&all).await.unwrap();
    clientset.apiextensions_v1().custom_resource_definitions().list(&all).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/namespaces/shop/pods HTTP/1.1",
            "GET /api/v1/pods HTTP/1.1",
            "GET /api/v1/nodes HTTP/1.1",
            "GET /apis/apps/v1/namespaces/shop/deployments HTTP/1.1",
            "GET /apis/apps/v1/deployments HTTP/1.1",
            "GET /apis/rbac.authorization.k8s.io/v1/clusterroles HTTP/1.1",
            "GET /apis/networking.k8s.io/v1/namespaces/shop/networkpolicies HTTP/1.1",
            "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn types_of_any_scope_are_reached_with_one_call() {
    let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w1" }, "spec": { "size": 3 } });
    let (server, client) = responding_with(widget).await;
    let widget = client.resource::<Widget>().namespace("shop").get("w1").await.unwrap();
    assert_eq!(widget.spec.size, 3);

    let (lists, client) = responding_with(json!({ "items": [] })).await;
    client.resource::<Widget>().list(&ListParams::default()).await.unwrap();
    client.resource::<Factory>().list(&ListParams::default()).await.unwrap();

    assert_eq!(server.lines(), ["GET /apis/example.com/v1/namespaces/shop/widgetry/w1 HTTP/1.1"]);
    assert_eq!(
        lists.lines(),
        ["GET /apis/example.com/v1/widgetry HTTP/1.1", "GET /apis/example.com/v1beta1/factories HTTP/1.1",]
    );
}

#[tokio::test]
async fn metadata_alone_can_be_requested_for_any_type() {
    let (server, client) = responding_with(json!({ "metadata": { "name": "p" } })).await;
    let pod = client.resource::<PartialObjectMeta<Pod>>().namespace("shop").get("p").await.unwrap();
    assert_eq!(pod.metadata.name.as_deref(), Some("p"));
    let request = &server.received()[0];
    assert_eq!(request.line, "GET /api/v1/namespaces/shop/pods/p HTTP/1.1");
    let accept = request.header("accept").unwrap();
    assert!(accept.contains("as=PartialObjectMetadata"), "{accept}");
}

#[tokio::test]
async fn a_created_review_is_returned_with_its_status() {
    let review = json!({ "metadata": {}, "spec": {}, "status": { "allowed": true } });
    let (server, client) = responding_with(review).await;
    let clientset = client.clientset();
    let authorization = clientset.authorization_v1();
    let review = authorization
        .self_subject_access_reviews()
        .create(&SelfSubjectAccessReview::default())
        .await
        .unwrap();
    assert!(review.status.unwrap().allowed);
    let reviews = authorization.local_subject_access_reviews("shop");
    reviews.create_with(&PostParams::default(), &LocalSubjectAccessReview::default()).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1",
            "POST /apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn commands_to_an_object_are_methods_of_its_client() {
    let post = PostParams::default();

    let (server, client) =
        responding_with(json!({ "kind": "Status", "status": "Success", "code": 201 })).await;
    client.clientset().core_v1().pods("shop").bind("p", &post, &Binding::default()).await.unwrap();
    assert_eq!(server.lines(), ["POST /api/v1/namespaces/shop/pods/p/binding HTTP/1.1"]);

    let token = json!({ "metadata": {}, "spec": { "audiences": [] },
        "status": { "token": "t0k3n", "expirationTimestamp": "2030-01-01T00:00:00Z" } });
    let (server, client) = responding_with(token).await;
    let accounts = client.clientset().core_v1().service_accounts("shop");
    let token = accounts.create_token("robot", &post, &TokenRequest::default()).await.unwrap();
    assert_eq!(token.status.unwrap().token.as_deref(), Some("t0k3n"));
    assert_eq!(server.lines(), ["POST /api/v1/namespaces/shop/serviceaccounts/robot/token HTTP/1.1"]);

    let (server, client) =
        responding_with(json!({ "metadata": {}, "spec": { "request": "", "signerName": "" } })).await;
    let requests = client.clientset().certificates_v1().certificate_signing_requests();
    requests.update_approval("csr", &post, &CertificateSigningRequest::default()).await.unwrap();
    let namespaces = client.clientset().core_v1().namespaces();
    namespaces.finalize("shop", &post, &Namespace::default()).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/csr/approval HTTP/1.1",
            "PUT /api/v1/namespaces/shop/finalize HTTP/1.1",
        ]
    );
}
