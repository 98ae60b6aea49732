//! Pods of the shape that a `ReplicaSet`'s pods have on a server: two containers, ten labels, five
//! annotations, two volumes, a status, and managedFields by the two managers that write every pod. Each is
//! about 9 KB, of which managedFields are 3.8 KB, with members in the order of the Go encoder. The same index
//! produces the same pod.

mod managed_fields;

use std::fmt::Write as _;

use bytes::Bytes;

/// Appends formatted text. Writing to a string is infallible.
macro_rules! push {
    ($out:expr, $($text:tt)*) => { let _ = write!($out, $($text)*); };
}

/// Returns the body of a list of `count` pods.
pub(crate) fn list(count: u64) -> Bytes {
    let mut body = String::from(
        r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"900000"},"items":["#,
    );
    for index in 0..count {
        if index > 0 {
            body.push(',');
        }
        body.push('{');
        push_pod(&mut body, index);
    }
    body.push_str("]}\n");
    Bytes::from(body)
}

/// Returns the body of a watch with `count` events, each of a different pod.
pub(crate) fn watch(count: u64) -> Bytes {
    let mut body = String::new();
    for index in 0..count {
        body.push_str(r#"{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","#);
        push_pod(&mut body, index);
        body.push_str("}\n");
    }
    Bytes::from(body)
}

/// The values that differ from pod to pod.
#[derive(Debug)]
struct Details {
    service: String,
    template: String,
    name: String,
    node: String,
    host_ip: String,
    pod_ip: String,
    token_volume: String,
    uid: String,
    digest: String,
    time: String,
    version: u64,
}

impl Details {
    fn new(index: u64) -> Self {
        let replica_set = index / 50;
        let service = format!("svc-{:03}", replica_set % 200);
        let template = format!("{:010x}", mixed(replica_set) >> 24);
        let [high, low] = [mixed(index), mixed(index ^ u64::MAX)];
        let node = index % 97;
        Self {
            name: format!("{service}-{template}-{:05x}", low >> 44),
            uid: format!(
                "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
                high >> 32,
                high >> 16 & 0xffff,
                high & 0xfff,
                low >> 52,
                low & 0xffff_ffff_ffff
            ),
            node: format!("ip-10-2-{node}-17.compute.internal"),
            host_ip: format!("10.2.{node}.17"),
            pod_ip: format!("10.100.{}.{}", index / 250 % 250, index % 250),
            token_volume: format!("kube-api-access-{:05x}", high >> 44),
            digest: format!("{high:016x}{low:016x}{:016x}{:016x}", mixed(high), mixed(low)),
            time: format!(
                "2026-01-{:02}T{:02}:{:02}:{:02}Z",
                1 + index % 28,
                index % 24,
                index % 60,
                index % 59
            ),
            version: 100_000 + index,
            service,
            template,
        }
    }
}

/// Returns a pseudo-random number.
fn mixed(number: u64) -> u64 {
    let number =
        (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Appends the members of a pod after its type, and the closing bracket.
pub(crate) fn push_pod(out: &mut String, index: u64) {
    let pod = Details::new(index);
    out.push_str(r#""metadata":"#);
    push_metadata(out, &pod, index);
    out.push_str(r#","spec":"#);
    push_spec(out, &pod);
    out.push_str(r#","status":"#);
    push_status(out, &pod);
    out.push('}');
}

fn push_metadata(out: &mut String, pod: &Details, index: u64) {
    let Details { service, template, name, uid, time, digest, version, .. } = pod;
    push!(
        out,
        r#"{{"name":"{name}","generateName":"{service}-{template}-","namespace":"ns-{:02}","uid":"{uid}","#,
        index % 50
    );
    push!(out, r#""resourceVersion":"{version}","generation":1,"creationTimestamp":"{time}","#);
    push!(
        out,
        r#""labels":{{"app":"{service}","app.kubernetes.io/component":"server","app.kubernetes.io/instance":"{service}-prod","#
    );
    push!(
        out,
        r#""app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"{service}","app.kubernetes.io/version":"1.8.{}","#,
        index % 10
    );
    push!(
        out,
        r#""environment":"production","helm.sh/chart":"generic-service-4.12.1","pod-template-hash":"{template}","team":"team-{}"}},"#,
        index % 7
    );
    push!(
        out,
        r#""annotations":{{"checksum/config":"{digest}","cni.projectcalico.org/containerID":"{}","#,
        digest.chars().rev().collect::<String>()
    );
    push!(
        out,
        r#""kubectl.kubernetes.io/restartedAt":"{time}","prometheus.io/port":"9090","prometheus.io/scrape":"true"}},"#
    );
    push!(
        out,
        r#""ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{service}-{template}","uid":"{uid}","controller":true,"blockOwnerDeletion":true}}],"#
    );
    push!(
        out,
        r#""managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"{time}","fieldsType":"FieldsV1","fieldsV1":"#
    );
    push!(out, "{}", managed_fields::spec(pod));
    push!(
        out,
        r#"}},{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{time}","fieldsType":"FieldsV1","fieldsV1":"#
    );
    push!(out, "{}", managed_fields::status(pod));
    out.push_str(r#","subresource":"status"}]}"#);
}

const CONDITIONS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

fn push_spec(out: &mut String, pod: &Details) {
    let Details { service, token_volume, node, .. } = pod;
    push!(
        out,
        r#"{{"volumes":[{{"name":"config","configMap":{{"name":"{service}-config","defaultMode":420}}}},{{"name":"{token_volume}","projected":{{"sources":["#
    );
    out.push_str(r#"{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},"#);
    out.push_str(r#"{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"#);
    push!(
        out,
        r#""containers":[{{"name":"{service}","image":"registry.example.com/apps/{service}:1.8.1","args":["serve","--config=/etc/app/config.yaml"],"#
    );
    out.push_str(r#""ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},"#);
    out.push_str(r#"{"name":"POD_NAMESPACE","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}},"#);
    push!(
        out,
        r#"{{"name":"COLLECTOR_ENDPOINT","value":"http://collector.observability.svc.cluster.local:4317"}},{{"name":"SERVICE_NAME","value":"{service}"}},"#
    );
    push!(
        out,
        r#"{{"name":"DATABASE_URL","value":"postgres://{service}@primary.databases.svc.cluster.local:5432/{service}"}}],"#
    );
    push!(
        out,
        r#""resources":{{"limits":{{"memory":"1Gi"}},"requests":{{"cpu":"250m","memory":"512Mi"}}}},"volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/app"}},"#
    );
    push!(
        out,
        r#"{{"name":"{token_volume}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"#
    );
    out.push_str(r#""readinessProbe":{"httpGet":{"path":"/readyz","port":"http","scheme":"HTTP"},"initialDelaySeconds":5,"timeoutSeconds":2,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"#);
    out.push_str(r#""terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"},"#);
    out.push_str(r#"{"name":"proxy","image":"registry.example.com/mesh/proxy:1.27.1","args":["proxy","sidecar","--domain","$(POD_NAMESPACE).svc.cluster.local"],"#);
    out.push_str(r#""resources":{"limits":{"memory":"1Gi"},"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"#);
    push!(
        out,
        r#""restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{service}","serviceAccount":"{service}","nodeName":"{node}","#
    );
    out.push_str(r#""securityContext":{"runAsUser":1000,"fsGroup":2000,"seccompProfile":{"type":"RuntimeDefault"}},"imagePullSecrets":[{"name":"registry"}],"schedulerName":"default-scheduler","#);
    out.push_str(r#""tolerations":[{"key":"dedicated","operator":"Equal","value":"apps","effect":"NoSchedule"},{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},"#);
    out.push_str(r#"{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}"#);
}

fn push_status(out: &mut String, pod: &Details) {
    let Details { service, host_ip, pod_ip, time, digest, .. } = pod;
    out.push_str(r#"{"phase":"Running","conditions":["#);
    for (index, condition) in CONDITIONS.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        push!(
            out,
            r#"{comma}{{"type":"{condition}","status":"True","lastProbeTime":null,"lastTransitionTime":"{time}"}}"#
        );
    }
    push!(
        out,
        r#"],"hostIP":"{host_ip}","hostIPs":[{{"ip":"{host_ip}"}}],"podIP":"{pod_ip}","podIPs":[{{"ip":"{pod_ip}"}}],"startTime":"{time}","containerStatuses":["#
    );
    for (comma, name, image) in [
        ("", service.as_str(), format!("apps/{service}:1.8.1")),
        (",", "proxy", "mesh/proxy:1.27.1".to_owned()),
    ] {
        push!(
            out,
            r#"{comma}{{"name":"{name}","state":{{"running":{{"startedAt":"{time}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"#
        );
        push!(
            out,
            r#""image":"registry.example.com/{image}","imageID":"registry.example.com/{image}@sha256:{digest}","containerID":"containerd://{digest}","started":true}}"#
        );
    }
    out.push_str(r#"],"qosClass":"Burstable"}"#);
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod as Decoded;
    use kube_core::{ObjectList, WatchEvent};

    use super::*;

    #[test]
    fn the_pods_are_of_the_size_and_shape_the_suite_claims() {
        let body = list(100);
        let decoded: ObjectList<Decoded> = serde_json::from_slice(&body).unwrap();
        assert_eq!(decoded.items.len(), 100);
        assert!((8_800..9_600).contains(&(body.len() / 100)), "{} bytes each", body.len() / 100);
        for pod in &decoded.items {
            let managed = serde_json::to_string(&pod.metadata.managed_fields).unwrap().len();
            assert!((3_500..4_100).contains(&managed), "{managed} bytes of managedFields");
            assert_eq!(pod.spec.as_ref().unwrap().containers.len(), 2);
            assert_eq!(pod.metadata.labels.as_ref().unwrap().len(), 10);
            assert_eq!(pod.metadata.annotations.as_ref().unwrap().len(), 5);
        }
        let mut names: Vec<_> = decoded.items.iter().map(|pod| pod.metadata.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 100, "each pod has a name of its own");
        assert_eq!(list(100), body, "the same index is the same pod");
    }

    #[test]
    fn a_watch_is_one_event_a_line() {
        let body = watch(3);
        let text = std::str::from_utf8(&body).unwrap();
        assert_eq!(text.lines().count(), 3);
        for line in text.lines() {
            assert!(matches!(
                serde_json::from_str::<WatchEvent<Decoded>>(line).unwrap(),
                WatchEvent::Modified(_)
            ));
        }
    }
}
