//! Tables of the objects that built-in kinds accept, reject and default.

use serde_json::{Value, json};

use crate::strategy::{Part, for_builtin};

fn object(group: &str, version: &str, kind: &str, body: &Value) -> Value {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "n", "uid": "u"}});
    for (name, value) in body.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

/// Returns the errors of a new object, after defaults and preparation.
fn wrong(group: &str, kind: &str, body: &Value) -> Vec<String> {
    let strategy = for_builtin(group, "v1", kind);
    let mut object = object(group, "v1", kind, body);
    strategy.set_defaults(&mut object);
    strategy.prepare_for_create(&mut object);
    let mut paths: Vec<String> = strategy
        .validate_create(&object)
        .into_iter()
        .map(|error| format!("{} {}", error.path, error.kind.reason().trim_start_matches("FieldValue")))
        .collect();
    paths.sort_unstable();
    paths
}

/// Returns the errors of an update.
fn refused(group: &str, kind: &str, old: &Value, new: &Value) -> Vec<String> {
    let strategy = for_builtin(group, "v1", kind);
    let [old, mut new] = [old, new].map(|body| {
        let mut object = object(group, "v1", kind, body);
        strategy.set_defaults(&mut object);
        // As stored: cluster-scoped objects have no namespace.
        let same = object.clone();
        strategy.prepare_for_update(Part::Main, &mut object, &same);
        object
    });
    strategy.prepare_for_update(Part::Main, &mut new, &old);
    let errors = strategy.validate_update(Part::Main, &new, &old);
    let mut paths: Vec<String> = errors.into_iter().map(|error| error.path).collect();
    paths.sort_unstable();
    paths
}

fn template(spec: &Value) -> Value {
    let mut pod = json!({"containers": [{"name": "c", "image": "i"}]});
    for (name, value) in spec.as_object().into_iter().flatten() {
        pod[name] = value.clone();
    }
    json!({"metadata": {"labels": {"a": "b"}}, "spec": pod})
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_validation_rule_rejects_an_invalid_new_object() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let workload = |extra: Value| {
        let mut spec = json!({"selector": selector, "template": template(&json!({}))});
        for (name, value) in extra.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        json!({ "spec": spec })
    };
    let pod = |extra: Value| json!({"spec": template(&extra)["spec"]});
    let container = |extra: Value| {
        let mut container = json!({"name": "c", "image": "i"});
        for (name, value) in extra.as_object().into_iter().flatten() {
            container[name] = value.clone();
        }
        json!({"spec": {"containers": [container]}})
    };
    let job = |extra: Value| {
        let mut spec = json!({"template": template(&json!({"restartPolicy": "Never"}))});
        for (name, value) in extra.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        json!({ "spec": spec })
    };
    let port = |extra: Value| {
        let mut port = json!({"port": 80});
        for (name, value) in extra.as_object().into_iter().flatten() {
            port[name] = value.clone();
        }
        json!({"spec": {"ports": [port]}})
    };
    let ingress = |path: Value| json!({"spec": {"rules": [{"http": {"paths": [path]}}]}});
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let table: Vec<(&str, &str, Value, &[&str])> = vec![
        ("", "Pod", pod(json!({})), &[]),
        ("", "Pod", json!({}), &["spec.containers Required"]),
        ("", "Pod", pod(json!({"restartPolicy": "No"})), &["spec.restartPolicy NotSupported"]),
        (
            "",
            "Pod",
            pod(json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "v"}]})),
            &["spec.tolerations[0].operator Invalid"],
        ),
        (
            "",
            "Pod",
            pod(json!({"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]})),
            &["spec.volumes[0].hostPath Forbidden"],
        ),
        (
            "",
            "Pod",
            pod(json!({"volumes": [{"name": "v", "configMap": {}}]})),
            &["spec.volumes[0].configMap.name Required"],
        ),
        (
            "",
            "Pod",
            pod(json!({"ephemeralContainers": [{"name": "e", "image": "i"}]})),
            &["spec.ephemeralContainers Forbidden"],
        ),
        (
            "",
            "Pod",
            pod(json!({"initContainers": [{"name": "c", "image": "i"}]})),
            &["spec.initContainers[0].name Duplicate"],
        ),
        (
            "",
            "Pod",
            container(
                json!({"env": [{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}),
            ),
            &["spec.containers[0].env[0].valueFrom Invalid"],
        ),
        ("", "Pod", container(json!({"livenessProbe": {}})), &["spec.containers[0].livenessProbe Required"]),
        (
            "",
            "Pod",
            container(json!({"livenessProbe": {"tcpSocket": {"port": 0}}})),
            &["spec.containers[0].livenessProbe.tcpSocket.port Invalid"],
        ),
        (
            "",
            "Pod",
            container(json!({"imagePullPolicy": "Maybe"})),
            &["spec.containers[0].imagePullPolicy NotSupported"],
        ),
        (
            "",
            "Pod",
            container(json!({"resources": {"limits": {"bogus": "1"}}})),
            &[
                "spec.containers[0].resources.limits[bogus] Invalid",
                "spec.containers[0].resources.limits[bogus] Invalid",
                "spec.containers[0].resources.requests[bogus] Invalid",
                "spec.containers[0].resources.requests[bogus] Invalid",
            ],
        ),
        ("apps", "Deployment", workload(json!({})), &[]),
        ("apps", "Deployment", workload(json!({"selector": {}})), &["spec.selector Invalid"]),
        (
            "apps",
            "Deployment",
            workload(json!({"selector": null})),
            &["spec.selector Required", "spec.template.metadata.labels Invalid"],
        ),
        (
            "apps",
            "Deployment",
            workload(json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}})),
            &["spec.strategy.rollingUpdate Forbidden"],
        ),
        (
            "apps",
            "Deployment",
            workload(json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}})),
            &["spec.strategy.rollingUpdate.maxUnavailable Invalid"],
        ),
        (
            "apps",
            "Deployment",
            workload(json!({"minReadySeconds": 700})),
            &["spec.progressDeadlineSeconds Invalid"],
        ),
        (
            "apps",
            "DaemonSet",
            workload(json!({"updateStrategy": {"type": "Never"}})),
            &["spec.updateStrategy NotSupported"],
        ),
        (
            "apps",
            "StatefulSet",
            workload(json!({"podManagementPolicy": "X"})),
            &["spec.podManagementPolicy Invalid"],
        ),
        ("apps", "ReplicaSet", workload(json!({"replicas": -1})), &["spec.replicas Invalid"]),
        ("batch", "Job", job(json!({})), &[]),
        (
            "batch",
            "Job",
            job(json!({"template": template(&json!({}))})),
            &["spec.template.spec.restartPolicy Required"],
        ),
        (
            "batch",
            "Job",
            job(json!({"completionMode": "Indexed", "parallelism": 2})),
            &["spec.completions Required"],
        ),
        ("batch", "Job", job(json!({"backoffLimitPerIndex": 1})), &["spec.backoffLimitPerIndex Invalid"]),
        (
            "batch",
            "CronJob",
            json!({"spec": {"schedule": "* * * *", "jobTemplate": job(json!({}))}}),
            &["spec.schedule Invalid"],
        ),
        ("", "Service", port(json!({})), &[]),
        (
            "",
            "Service",
            port(json!({"port": 0})),
            &["spec.ports[0].port Invalid", "spec.ports[0].targetPort Invalid"],
        ),
        ("", "Service", port(json!({"protocol": "ICMP"})), &["spec.ports[0].protocol NotSupported"]),
        ("", "Service", port(json!({"nodePort": 30000})), &["spec.ports[0].nodePort Forbidden"]),
        ("", "Service", json!({"spec": {"type": "ExternalName"}}), &["spec.externalName Required"]),
        (
            "",
            "Service",
            json!({"spec": {"type": "Odd", "ports": [{"port": 1}]}}),
            &["spec.type NotSupported"],
        ),
        (
            "networking.k8s.io",
            "Ingress",
            ingress(json!({"path": "/", "pathType": "Prefix", "backend": backend})),
            &[],
        ),
        (
            "networking.k8s.io",
            "Ingress",
            ingress(json!({"path": "/", "backend": backend})),
            &["spec.rules[0].http.paths[0].pathType Required"],
        ),
        (
            "networking.k8s.io",
            "Ingress",
            ingress(json!({"path": "x", "pathType": "Exact", "backend": backend})),
            &["spec.rules[0].http.paths[0].path Invalid"],
        ),
        (
            "networking.k8s.io",
            "Ingress",
            ingress(json!({"path": "/", "pathType": "Exact", "backend": {}})),
            &["spec.rules[0].http.paths[0].backend Invalid"],
        ),
        (
            "networking.k8s.io",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "ingress": [{"from": [{}]}]}}),
            &["spec.ingress[0].from[0] Required"],
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["fd00::1"]}]}),
            &["endpoints[0].addresses Invalid"],
        ),
        ("discovery.k8s.io", "EndpointSlice", json!({"endpoints": []}), &["addressType Required"]),
        (
            "policy",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
            &["spec Invalid"],
        ),
        (
            "policy",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "101%"}}),
            &["spec.minAvailable Invalid"],
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
            &["spec.accessModes Required"],
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"]}}),
            &["spec.resources[storage] Required"],
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"spec": {"leaseDurationSeconds": 0}}),
            &["spec.leaseDurationSeconds Invalid"],
        ),
        (
            "",
            "Event",
            json!({"involvedObject": {"namespace": "other"}}),
            &["involvedObject.namespace Invalid"],
        ),
        (
            "",
            "Secret",
            json!({"type": "kubernetes.io/basic-auth"}),
            &["data[password] Required", "data[username] Required"],
        ),
        (
            "rbac.authorization.k8s.io",
            "Role",
            json!({"rules": [{"verbs": ["get"]}]}),
            &["rules[0].apiGroups Required", "rules[0].resources Required"],
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"roleRef": {"kind": "X", "name": "r"}}),
            &["roleRef.kind NotSupported"],
        ),
        (
            "",
            "ConfigMap",
            json!({"metadata": {"name": "x", "namespace": "n", "finalizers": ["bare"]}}),
            &["metadata.finalizers[0] Invalid"],
        ),
        (
            "",
            "Node",
            json!({"spec": {"taints": [{"key": "a", "effect": "No"}]}}),
            &["metadata.taints[0].effect NotSupported"],
        ),
    ];
    for (group, kind, body, expected) in table {
        assert_eq!(wrong(group, kind, &body), expected, "{kind} {body}");
    }
}

#[test]
fn changes_of_immutable_fields_are_rejected() {
    let workload = |selector: &str, name: &str| {
        json!({"spec": {"selector": {"matchLabels": {"a": selector}}, "serviceName": name,
            "template": {"metadata": {"labels": {"a": selector}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    };
    let job = |completions: u8| {
        json!({"spec": {"completions": completions, "selector": {"matchLabels": {"a": "b"}}, "manualSelector": true,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})
    };
    let service = |ip: &str| json!({"spec": {"clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80}]}});
    let claim = |class: &str| json!({"spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let table: Vec<(&str, &str, Value, Value, &[&str])> = vec![
        ("apps", "Deployment", workload("x", ""), workload("y", ""), &["spec.selector"]),
        ("apps", "StatefulSet", workload("x", "a"), workload("x", "b"), &["spec.serviceName"]),
        ("batch", "Job", job(1), job(2), &["spec.completions"]),
        ("", "Service", service("10.96.0.1"), service("10.96.0.2"), &["spec.clusterIPs[0]"]),
        ("", "PersistentVolumeClaim", claim("a"), claim("b"), &["spec"]),
        ("", "Secret", json!({"type": "a"}), json!({"type": "b"}), &["type"]),
        (
            "",
            "ConfigMap",
            json!({"immutable": true, "data": {"a": "1"}}),
            json!({"immutable": true, "data": {"a": "2"}}),
            &["data"],
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4"}),
            json!({"addressType": "IPv6"}),
            &["addressType"],
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "a"}}),
            json!({"roleRef": {"kind": "Role", "name": "b"}}),
            &["roleRef"],
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({"provisioner": "a/b"}),
            json!({"provisioner": "a/c"}),
            &["provisioner"],
        ),
        ("scheduling.k8s.io", "PriorityClass", json!({"value": 1}), json!({"value": 2}), &["value"]),
    ];
    for (group, kind, old, new, expected) in table {
        assert_eq!(refused(group, kind, &old, &new), expected, "{kind}");
        assert_eq!(refused(group, kind, &old, &old), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn generation_increases_with_changes_of_the_desired_state() {
    let strategy = for_builtin("apps", "v1", "Deployment");
    let old = json!({"metadata": {"generation": 3}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
    let generation = |change: &dyn Fn(&mut Value), part: Part<'_>| {
        let mut new = old.clone();
        change(&mut new);
        strategy.prepare_for_update(part, &mut new, &old);
        new["metadata"]["generation"].as_i64()
    };
    assert_eq!(generation(&|new| new["spec"]["replicas"] = 2.into(), Part::Main), Some(4));
    assert_eq!(generation(&|new| new["metadata"]["annotations"] = json!({"a": "b"}), Part::Main), Some(4));
    assert_eq!(generation(&|new| new["metadata"]["labels"] = json!({"a": "b"}), Part::Main), Some(3));
    assert_eq!(generation(&|new| new["status"]["replicas"] = 5.into(), Part::Main), Some(3));
    assert_eq!(generation(&|new| new["status"]["replicas"] = 5.into(), Part::Subresource("status")), Some(3));
    assert_eq!(generation(&|new| new["metadata"]["generation"] = 9.into(), Part::Main), Some(3));
}

#[test]
fn a_status_write_changes_only_the_status() {
    let strategy = for_builtin("apps", "v1", "Deployment");
    let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
    let mut new = json!({"metadata": {"labels": {"c": "d"}, "annotations": {"e": "f"}}, "spec": {"replicas": 9}, "status": {"replicas": 2}});
    strategy.prepare_for_update(Part::Subresource("status"), &mut new, &old);
    let expected = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"e": "f"}}, "spec": {"replicas": 1}, "status": {"replicas": 2}});
    assert_eq!(new, expected);
    let mut main = json!({"metadata": {}, "spec": {"replicas": 9}, "status": {"replicas": 2}});
    strategy.prepare_for_update(Part::Main, &mut main, &old);
    assert_eq!(main["status"], old["status"]);
}

#[test]
fn boolean_strategy_settings_equal_those_of_kube_apiserver() {
    let creates = ["Lease", "Service", "Role", "Event", "Endpoints", "LimitRange"];
    let returns = [
        "Pod",
        "Service",
        "ServiceAccount",
        "ResourceQuota",
        "PodTemplate",
        "PersistentVolumeClaim",
        "Namespace",
    ];
    let conditional = ["Lease", "PodDisruptionBudget", "CustomResourceDefinition"];
    let kinds = [
        ("coordination.k8s.io", "Lease"),
        ("", "Service"),
        ("rbac.authorization.k8s.io", "Role"),
        ("", "Event"),
        ("", "Endpoints"),
        ("", "LimitRange"),
        ("", "ConfigMap"),
        ("", "Secret"),
        ("apps", "Deployment"),
        ("", "ServiceAccount"),
        ("", "Namespace"),
        ("", "Node"),
        ("", "Pod"),
        ("", "ResourceQuota"),
        ("", "PodTemplate"),
        ("", "PersistentVolumeClaim"),
        ("policy", "PodDisruptionBudget"),
        ("batch", "Job"),
    ];
    for (group, kind) in kinds {
        let rules = for_builtin(group, "v1", kind).settings();
        assert_eq!(rules.creates_on_update, creates.contains(&kind), "{kind}");
        assert_eq!(rules.delete_returns_object, returns.contains(&kind), "{kind}");
        assert_eq!(rules.takes_unconditional_update, !conditional.contains(&kind), "{kind}");
    }
}
