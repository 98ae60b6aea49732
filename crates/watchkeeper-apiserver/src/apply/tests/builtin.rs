//! Apply on the types of built-in kinds.

use serde_json::json;

use super::TrackedObject;
use crate::{
    kinds::GroupVersionKind,
    schema::{TypeRef, builtin, write_empty},
};

fn tracked(group: &str, kind: &str) -> TrackedObject {
    let gvk = GroupVersionKind { group: group.into(), version: "v1".into(), kind: kind.into() };
    let ty = TypeRef::builtin(builtin().find_kind(&gvk));
    TrackedObject { gvk, ty, object: None, seconds: 0, has_fixed_type: true }
}

#[test]
fn creating_a_deployment_does_not_manage_fields_that_always_exist() {
    let mut tracked = tracked("apps", "Deployment");
    let container = json!({"name": "a", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]});
    let pod =
        json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}], "securityContext": {}});
    let mut object = json!({"spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "d"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": pod},
    }});
    write_empty(&mut object, &tracked.ty);
    tracked.put("u", object);
    let container = json!({".": {}, "f:image": {}, "f:name": {}, "f:resources": {}, "f:ports": {".": {},
        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}});
    let pod = json!({
        "f:containers": {"k:{\"name\":\"a\"}": container},
        "f:securityContext": {},
        "f:volumes": {".": {}, "k:{\"name\":\"v\"}": {".": {}, "f:emptyDir": {}, "f:name": {}}},
    });
    let spec = json!({
        "f:replicas": {},
        "f:selector": {},
        "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
        "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": pod},
    });
    assert_eq!(tracked.managers()[0].1["f:spec"], spec);
}

#[test]
fn service_ports_are_keyed_by_number_and_protocol() {
    let mut tracked = tracked("", "Service");
    tracked.apply("a", json!({"spec": {"ports": [{"port": 80, "name": "web"}]}})).unwrap();
    tracked
        .apply("b", json!({"spec": {"ports": [{"port": 80, "protocol": "UDP", "name": "quic"}]}}))
        .unwrap();
    assert_eq!(tracked.content("spec")["ports"].as_array().unwrap().len(), 2);
    let error = tracked.apply("b", json!({"spec": {"ports": [{"port": 80, "name": "mine"}]}})).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"a\": .spec.ports[port=80,protocol=\"TCP\"].name"
    );
    let error = tracked.apply("b", json!({"spec": {"selector": {"a": "b"}, "porst": []}})).unwrap_err();
    assert!(error.message.ends_with(".spec.porst: field not declared in schema"), "{}", error.message);
}

#[test]
fn two_appliers_share_the_containers_of_a_pod_and_their_environment() {
    let mut tracked = tracked("", "Pod");
    let containers = |env| json!({"spec": {"containers": [{"name": "c", "env": env}]}});
    tracked.apply("a", containers(json!([{"name": "A", "value": "1"}]))).unwrap();
    tracked.apply("b", containers(json!([{"name": "B", "value": "2"}]))).unwrap();
    tracked.apply("a", json!({"spec": {"containers": [{"name": "c"}]}})).unwrap();
    assert_eq!(
        tracked.content("spec")["containers"],
        json!([{"name": "c", "env": [{"name": "B", "value": "2"}]}])
    );
    tracked.apply("b", json!({"spec": {"tolerations": [{"key": "k"}]}})).unwrap();
    let error = tracked.apply("a", json!({"spec": {"tolerations": [{"key": "l"}]}})).unwrap_err();
    assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"b\": .spec.tolerations");
}
