//! Results of reviews.

use serde_json::{Value, json};

use super::Guarded;

#[tokio::test(start_paused = true)]
async fn returned_reviews_have_managed_fields() {
    let guarded = Guarded::new();
    let admin = guarded.admin();
    let attributes = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    for (path, body) in [
        (
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({"spec": {"resourceAttributes": attributes}}),
        ),
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            json!({"spec": {"user": "ann", "resourceAttributes": attributes}}),
        ),
        (
            "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
            json!({"spec": {"user": "ann", "resourceAttributes": attributes}}),
        ),
        ("/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": {"token": "ann-token"}})),
    ] {
        let review = admin.ok("POST", &format!("{path}?fieldManager=test"), body).await;
        let entry = &review["metadata"]["managedFields"][0];
        assert_eq!((&entry["manager"], &entry["operation"]), (&json!("test"), &json!("Update")), "{review}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_access_reviews_name_their_group_and_no_kind() {
    let guarded = Guarded::new();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let attributes = json!({"verb": "get", "resource": "pods"});
    let with_selector = |selector: Value| {
        let mut attributes = attributes.clone();
        attributes["labelSelector"] = selector;
        json!({"spec": {"resourceAttributes": attributes}})
    };
    let requirement = json!({"key": "a", "operator": "Exists"});
    for (body, field) in [
        (json!({"spec": {}}), "spec"),
        (json!({"metadata": {"name": "x"}, "spec": {"resourceAttributes": attributes}}), "metadata"),
        (with_selector(json!({})), "spec.resourceAttributes.labelSelector.requirements"),
        (
            with_selector(json!({"rawSelector": "a", "requirements": [requirement]})),
            "spec.resourceAttributes.labelSelector.rawSelector",
        ),
    ] {
        let (code, status) = guarded.admin().call("POST", path, body).await;
        assert_eq!((code, &status["reason"]), (422, &json!("Invalid")), "{status}");
        let details = &status["details"];
        assert_eq!((&details["group"], &details["kind"]), (&json!("authorization.k8s.io"), &Value::Null));
        assert_eq!(details["causes"][0]["field"], field, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_review_in_another_namespace_than_its_path_is_a_bad_request() {
    let guarded = Guarded::new();
    let path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let attributes = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let body = json!({"metadata": {"namespace": "other"}, "spec": {"user": "ann", "resourceAttributes": attributes}});
    assert_eq!(guarded.admin().call("POST", path, body).await.0, 400);
}
