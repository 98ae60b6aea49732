//! Which fields an object has after a write, and who manages them.

use serde_json::{Value, json};

use crate::support::{Cluster, DEFINITIONS, apply, foo_definition, read, served_version, small_deployment};

fn managed(object: &Value) -> &Value {
    &object["metadata"]["managedFields"][0]["fieldsV1"]
}

fn causes(reply: &Value) -> Vec<&str> {
    let causes = reply["details"]["causes"].as_array().into_iter().flatten();
    causes.map(|cause| cause["field"].as_str().unwrap_or_default()).collect()
}

#[tokio::test(start_paused = true)]
async fn untyped_json_is_managed_as_a_whole() {
    let cluster = Cluster::new();
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"},
        "revision": 1, "data": {"a": {"b": 1}},
    });
    let expected = json!({"f:data": {}, "f:revision": {}});
    assert_eq!(*managed(&cluster.ok("POST", revisions, revision.clone()).await), expected);
    let mut other = revision;
    other["metadata"]["name"] = json!("b");
    let (code, applied) = apply(&cluster, &format!("{revisions}/b"), &other).await;
    assert_eq!((code, managed(&applied)), (201, &expected), "{applied}");
}

#[tokio::test(start_paused = true)]
async fn fields_set_by_the_server_are_managed_by_the_writer() {
    let cluster = Cluster::new();
    let mut set = small_deployment("d");
    set["kind"] = json!("DaemonSet");
    set["spec"].as_object_mut().unwrap().remove("replicas");
    let created = cluster.ok("POST", "/apis/apps/v1/namespaces/default/daemonsets", set).await;
    let annotation = "deprecated.daemonset.template.generation";
    assert_eq!(created["metadata"]["annotations"][annotation], "1");
    assert_eq!(
        managed(&created)["f:metadata"]["f:annotations"][format!("f:{annotation}")],
        json!({}),
        "{created}"
    );

    let rule = json!({"metadata": {"name": "r"}, "spec": {"taint": {"key": "a", "effect": "NoSchedule"}}});
    let created = cluster.ok("POST", "/apis/resource.k8s.io/v1/devicetaintrules", rule).await;
    assert_eq!(managed(&created)["f:spec"]["f:taint"]["f:timeAdded"], json!({}), "{created}");
}

#[tokio::test(start_paused = true)]
async fn volume_attributes_classes_get_the_protection_finalizer() {
    let cluster = Cluster::new();
    let class = json!({"metadata": {"name": "c"}, "driverName": "d.example.com", "parameters": {"a": "b"}});
    let created = cluster.ok("POST", "/apis/storage.k8s.io/v1/volumeattributesclasses", class).await;
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/vac-protection"]));
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_spec_is_validated_with_the_defaults_of_an_empty_spec() {
    let cluster = Cluster::new();
    let volume = json!({"metadata": {"name": "v"}});
    let (code, reply) = cluster.call("POST", "/api/v1/persistentvolumes", volume).await;
    assert_eq!(code, 422);
    assert_eq!(causes(&reply), ["spec.accessModes", "spec.capacity", "spec.capacity", "spec"]);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_reported_once() {
    let cluster = Cluster::new();
    let quota = json!({"metadata": {"name": "q"}, "spec": {
        "hard": {"pods": "1", "requests.cpu": "1"}, "scopes": ["VolumeAttributesClass"],
    }});
    let (code, reply) = cluster.call("POST", "/api/v1/namespaces/default/resourcequotas", quota).await;
    assert_eq!((code, causes(&reply)), (422, vec!["spec.scopes"]), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn metadata_of_a_disruption_budget_is_validated_when_its_spec_is_valid() {
    let cluster = Cluster::new();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let mut budget = json!({"metadata": {"name": "b", "labels": {"a b": "c"}}, "spec": {"minAvailable": -1}});
    let (_, reply) = cluster.call("POST", budgets, budget.clone()).await;
    assert_eq!(causes(&reply), ["spec.minAvailable"]);
    budget["spec"]["minAvailable"] = json!(1);
    let (_, reply) = cluster.call("POST", budgets, budget).await;
    assert_eq!(causes(&reply), ["metadata.labels"]);
}

#[tokio::test(start_paused = true)]
async fn a_strategic_merge_cannot_change_the_kind() {
    let cluster = Cluster::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster.ok("POST", maps, json!({"metadata": {"name": "a"}})).await;
    let path = format!("{maps}/a");
    let patch = json!({"kind": "Secret", "apiVersion": "v9", "data": {"a": "b"}});
    let strategic = "application/strategic-merge-patch+json";
    let (code, reply) = read(cluster.send_as("PATCH", &path, strategic, &patch).await).await;
    assert_eq!((code, &reply["kind"], &reply["data"]["a"]), (200, &json!("ConfigMap"), &json!("b")));
}

#[tokio::test(start_paused = true)]
async fn a_missing_object_is_reported_before_an_unreadable_patch() {
    let cluster = Cluster::new();
    let path = "/api/v1/namespaces/default/configmaps/absent";
    let reply = cluster.send_as("PATCH", path, "application/json-patch+json", &json!({})).await;
    assert_eq!(reply.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_cannot_be_set_by_an_update() {
    let cluster = Cluster::new();
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster.ok("POST", maps, json!({"metadata": {"name": "a"}})).await;
    let map = json!({"metadata": {"name": "a", "deletionGracePeriodSeconds": 5}});
    let (code, reply) = cluster.call("PUT", &format!("{maps}/a"), map).await;
    assert_eq!((code, causes(&reply)), (422, vec!["metadata.deletionGracePeriodSeconds"]), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn malformed_schemas_of_definitions_are_rejected() {
    let cluster = Cluster::new();
    let schema = |spec: Value| {
        let version = served_version("v1", true, &json!({"type": "object", "properties": {"spec": spec}}));
        foo_definition(&json!([version]))
    };
    for odd in ["x".into(), json!(1), json!([])] {
        let definition = schema(json!({"type": "object", "additionalProperties": odd}));
        let (code, reply) = cluster.call("POST", DEFINITIONS, definition).await;
        assert_eq!(code, 400, "{reply}");
    }
    let items = json!({"type": "string", "unknown": 1});
    let path = format!("{DEFINITIONS}?fieldValidation=Strict");
    let created = cluster.ok("POST", &path, schema(json!({"type": "array", "items": items}))).await;
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/items";
    assert_eq!(created.pointer(spec), Some(&json!({"type": "string"})), "{created}");
}

#[tokio::test(start_paused = true)]
async fn values_of_custom_resources_are_validated_like_upstream() {
    let cluster = Cluster::new();
    let spec = json!({"type": "object", "properties": {
        "half": {"type": "number", "multipleOf": 0.5}, "n": {"type": "integer"},
        "date": {"type": "string", "format": "date"}, "list": {"type": "array", "items": {"type": "string"}},
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    cluster.ok("POST", DEFINITIONS, foo_definition(&json!([served_version("v1", true, &schema)]))).await;
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    let foo = |name: &str, spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec});
    // Whole numbers are written without a fraction, lists pass where a text has a format.
    let created = cluster.ok("POST", foos, foo("a", json!({"n": 1.0, "half": 1.5, "date": []}))).await;
    assert_eq!(created["spec"], json!({"date": [], "half": 1.5, "n": 1}));
    // The factor of a whole number is truncated to nothing.
    let (code, reply) = cluster.call("POST", foos, foo("b", json!({"half": 1}))).await;
    assert_eq!((code, causes(&reply)), (422, vec!["spec.half"]), "{reply}");
    // Members of an object in place of a list are unknown fields.
    let strict = format!("{foos}?fieldValidation=Strict");
    let (code, reply) = cluster.call("POST", &strict, foo("c", json!({"list": {"zz": 1}}))).await;
    assert_eq!(code, 400, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_same_fields_as_upstream() {
    let cluster = Cluster::new();
    let volume = json!({"name": "v", "emptyDir": {}, "downwardAPI": {}, "cephfs": {"monitors": ["m"]}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "volumes": [volume],
    }});
    let (code, reply) = cluster.call("POST", "/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(code, 422);
    let mut fields = causes(&reply);
    fields.sort_unstable();
    assert_eq!(fields, ["spec.volumes[0].cephFS", "spec.volumes[0].downwarAPI"]);

    let service = json!({"spec": {
        "group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
        "service": {"name": "s", "namespace": "d"}, "insecureSkipTLSVerify": true,
    }});
    let (code, reply) = cluster.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", service).await;
    assert_eq!((code, causes(&reply)), (422, vec!["metadata.name"]), "{reply}");
}
