//! The managed fields of a pod: the controller manager owns its spec, the kubelet its status.

use serde_json::{Map, Value, json};

use super::{CONDITIONS, Details};

/// Returns the fields of an object, each owned as a whole, and the object itself.
fn set(names: &[&str]) -> Value {
    let mut fields = Map::from_iter([(".".to_owned(), json!({}))]);
    fields.extend(names.iter().map(|name| (format!("f:{name}"), json!({}))));
    fields.into()
}

/// Returns the elements of a list that are identified by one of their fields.
fn by<'a>(field: &str, elements: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let mut fields = Map::from_iter([(".".to_owned(), json!({}))]);
    let key = |element: &str| format!("k:{}", json!({ field: element }));
    fields.extend(elements.into_iter().map(|(element, set)| (key(element), set)));
    fields.into()
}

/// Returns `of` with these members added.
fn with(mut of: Value, members: &Value) -> Value {
    if let (Some(of), Some(members)) = (of.as_object_mut(), members.as_object()) {
        of.extend(members.clone());
    }
    of
}

pub(super) fn spec(pod: &Details) -> Value {
    json!({
        "f:metadata": {
            "f:annotations": set(&[
                "checksum/config", "cni.projectcalico.org/containerID", "kubectl.kubernetes.io/restartedAt",
                "prometheus.io/port", "prometheus.io/scrape",
            ]),
            "f:generateName": {},
            "f:labels": set(&[
                "app", "app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by",
                "app.kubernetes.io/name", "app.kubernetes.io/version", "environment", "helm.sh/chart",
                "pod-template-hash", "team",
            ]),
            "f:ownerReferences": by("uid", [(pod.uid.as_str(), json!({}))]),
        },
        "f:spec": {
            "f:containers": containers(pod),
            "f:dnsPolicy": {},
            "f:enableServiceLinks": {},
            "f:imagePullSecrets": by("name", [("registry", json!({}))]),
            "f:nodeName": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:securityContext": with(set(&["fsGroup", "runAsUser"]), &json!({ "f:seccompProfile": set(&["type"]) })),
            "f:serviceAccount": {},
            "f:serviceAccountName": {},
            "f:terminationGracePeriodSeconds": {},
            "f:tolerations": {},
            "f:volumes": by("name", [
                ("config", with(set(&["name"]), &json!({ "f:configMap": set(&["defaultMode", "name"]) }))),
                (
                    pod.token_volume.as_str(),
                    with(set(&["name"]), &json!({ "f:projected": set(&["defaultMode", "sources"]) })),
                ),
            ]),
        },
    })
}

fn containers(pod: &Details) -> Value {
    let common =
        ["args", "image", "imagePullPolicy", "name", "terminationMessagePath", "terminationMessagePolicy"];
    let resources =
        with(set(&[]), &json!({ "f:limits": set(&["memory"]), "f:requests": set(&["cpu", "memory"]) }));
    let proxy = with(set(&common), &json!({ "f:resources": resources.clone() }));
    let value = set(&["name", "value"]);
    let reference = with(set(&["name"]), &json!({ "f:valueFrom": set(&["fieldRef"]) }));
    let mount = set(&["mountPath", "name", "readOnly"]);
    let probe =
        ["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"];
    let main = with(
        set(&common),
        &json!({
            "f:env": by("name", [
                ("COLLECTOR_ENDPOINT", value.clone()),
                ("DATABASE_URL", value.clone()),
                ("POD_NAME", reference.clone()),
                ("POD_NAMESPACE", reference),
                ("SERVICE_NAME", value),
            ]),
            "f:ports": with(set(&[]), &json!({
                "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": set(&["containerPort", "name", "protocol"]),
            })),
            "f:readinessProbe": with(set(&probe), &json!({ "f:httpGet": set(&["path", "port", "scheme"]) })),
            "f:resources": resources,
            "f:volumeMounts": by("mountPath", [
                ("/etc/app", mount.clone()),
                ("/var/run/secrets/kubernetes.io/serviceaccount", mount),
            ]),
        }),
    );
    let Value::Object(mut containers) = by("name", [("proxy", proxy), (pod.service.as_str(), main)]) else {
        return Value::Null;
    };
    // Containers exist because the pod does; no manager owns the list.
    containers.remove(".");
    containers.into()
}

pub(super) fn status(pod: &Details) -> Value {
    let condition = set(&["lastProbeTime", "lastTransitionTime", "status", "type"]);
    json!({
        "f:status": {
            "f:conditions": by("type", CONDITIONS.map(|name| (name, condition.clone()))),
            "f:containerStatuses": {},
            "f:hostIP": {},
            "f:hostIPs": {},
            "f:phase": {},
            "f:podIP": {},
            "f:podIPs": by("ip", [(pod.pod_ip.as_str(), set(&["ip"]))]),
            "f:startTime": {},
        },
    })
}
