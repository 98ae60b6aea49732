//! The defaults of pods and pod templates.

use serde_json::{Value, json};

use crate::strategy::{
    edit::{
        self, DefaultValue,
        DefaultValue::{Bool, EmptyObject, Int, IntPtr, Str},
        Fill, Members,
    },
    quantity,
};

/// The defaults of any pod spec.
const SPEC: &[Fill] = &[
    ("", "dnsPolicy", Str("ClusterFirst")),
    ("", "restartPolicy", Str("Always")),
    ("", "securityContext", EmptyObject),
    ("", "terminationGracePeriodSeconds", IntPtr(30)),
    ("", "schedulerName", Str("default-scheduler")),
];

/// The container lists of a pod spec.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The defaults of a container. Order matters: objects are created before they are filled.
const CONTAINER: &[Fill] = &[
    ("", "terminationMessagePath", Str("/dev/termination-log")),
    ("", "terminationMessagePolicy", Str("File")),
    ("", "resources", EmptyObject),
    ("ports[]", "protocol", Str("TCP")),
    ("env[].valueFrom.fieldRef", "apiVersion", Str("v1")),
    ("env[].valueFrom.resourceFieldRef", "divisor", Str("0")),
    ("livenessProbe|readinessProbe|startupProbe", "timeoutSeconds", Int(1)),
    ("livenessProbe|readinessProbe|startupProbe", "periodSeconds", Int(10)),
    ("livenessProbe|readinessProbe|startupProbe", "successThreshold", Int(1)),
    ("livenessProbe|readinessProbe|startupProbe", "failureThreshold", Int(3)),
    ("livenessProbe|readinessProbe|startupProbe.httpGet", "path", Str("/")),
    ("livenessProbe|readinessProbe|startupProbe.httpGet", "scheme", Str("HTTP")),
    ("livenessProbe|readinessProbe|startupProbe.grpc", "service", Str("")),
    ("lifecycle.postStart|preStop.httpGet", "path", Str("/")),
    ("lifecycle.postStart|preStop.httpGet", "scheme", Str("HTTP")),
];

/// The defaults of a volume.
const VOLUME: &[Fill] = &[
    ("secret|configMap|downwardAPI|projected", "defaultMode", IntPtr(0o644)),
    ("hostPath", "type", Str("")),
    ("projected.sources[].serviceAccountToken", "expirationSeconds", IntPtr(3600)),
    ("downwardAPI.items[].fieldRef", "apiVersion", Str("v1")),
    ("projected.sources[].downwardAPI.items[].fieldRef", "apiVersion", Str("v1")),
    ("downwardAPI.items[].resourceFieldRef", "divisor", Str("0")),
    ("projected.sources[].downwardAPI.items[].resourceFieldRef", "divisor", Str("0")),
    ("ephemeral.volumeClaimTemplate.spec", "volumeMode", Str("Filesystem")),
    ("ephemeral.volumeClaimTemplate", "metadata", EmptyObject),
    ("iscsi", "iscsiInterface", Str("default")),
    ("rbd", "pool", Str("rbd")),
    ("rbd", "user", Str("admin")),
    ("rbd", "keyring", Str("/etc/ceph/keyring")),
    ("azureDisk", "cachingMode", Str("ReadWrite")),
    ("azureDisk", "fsType", Str("ext4")),
    ("azureDisk", "readOnly", Bool(false)),
    ("azureDisk", "kind", Str("Shared")),
    ("scaleIO", "storageMode", Str("ThinProvisioned")),
    ("scaleIO", "fsType", Str("xfs")),
];

/// Sets the defaults of a pod. Some apply to pods and not to templates.
pub(super) fn pod_defaults(object: &mut Value) {
    edit::object(object, "spec");
    if let Some(spec) = object.get_mut("spec") {
        spec_defaults(spec);
        edit::each(spec, "containers|initContainers[].resources", &mut requests_from_limits);
        edit::fill_all(spec, &[("", "enableServiceLinks", Bool(true))]);
        if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
            host_ports(spec);
        }
        if spec
            .get("terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|seconds| seconds < 0)
        {
            spec["terminationGracePeriodSeconds"] = 1.into();
        }
    }
    edit::object(object, "status");
    status_defaults(object);
}

/// Sets the defaults of a pod template in another kind.
pub(in super::super) fn template_defaults(template: &mut Value) {
    edit::object(template, "metadata");
    edit::object(template, "spec");
    if let Some(spec) = template.get_mut("spec") {
        spec_defaults(spec);
    }
}

/// Sets the defaults of any pod spec.
fn spec_defaults(spec: &mut Value) {
    if let Some(members) = spec.as_object_mut() {
        same_service_account(members);
    }
    edit::fill_all(spec, SPEC);
    for list in CONTAINERS {
        items(spec, list).for_each(container_defaults);
    }
    items(spec, "volumes").for_each(volume_defaults);
    edit::each(spec, "resources.limits|requests", &mut quantity::canonicalize);
    edit::each(spec, "overhead", &mut quantity::canonicalize);
}

fn items<'a>(spec: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

fn container_defaults(container: &mut Value) {
    edit::fill_all(container, CONTAINER);
    edit::each(container, "", &mut |container| {
        let policy = pull_policy(edit::text(container, "image"));
        edit::fill(container, "imagePullPolicy", policy);
    });
    edit::each(container, "resources.limits|requests", &mut quantity::canonicalize);
}

fn volume_defaults(volume: &mut Value) {
    edit::fill_all(volume, VOLUME);
    edit::each(volume, "", &mut volume_source);
    edit::each(volume, "image", &mut |image| {
        let policy = pull_policy(edit::text(image, "reference"));
        edit::fill(image, "pullPolicy", policy);
    });
}

fn same_service_account(spec: &mut Members) {
    let name = match edit::text(spec, "serviceAccountName") {
        "" => edit::text(spec, "serviceAccount"),
        name => name,
    };
    if name.is_empty() {
        spec.remove("serviceAccountName");
        spec.remove("serviceAccount");
        return;
    }
    let name = name.to_owned();
    spec.insert("serviceAccountName".to_owned(), name.clone().into());
    spec.insert("serviceAccount".to_owned(), name.into());
}

/// Returns the default pull policy. An image without a tag, or with the tag `latest`, may change.
fn pull_policy(image: &str) -> DefaultValue {
    // A name that cannot be an image has no tag, not even the default one.
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/:".contains(&byte);
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let repository =
        name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(name, |(name, _)| name);
    if repository.len() > 255 || (!repository.contains('/') && !repository.bytes().all(is_name)) {
        return Str("IfNotPresent");
    }
    let (image, digest) =
        image.split_once('@').map_or((image, None), |(image, digest)| (image, Some(digest)));
    let last = image.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map(|(_, tag)| tag);
    match (tag, digest) {
        (Some("latest"), _) | (None, None) => Str("Always"),
        _ => Str("IfNotPresent"),
    }
}

/// Sets the default source of a volume, an empty directory.
fn volume_source(volume: &mut Members) {
    let has_source = volume.iter().any(|(name, value)| name != "name" && !value.is_null());
    if !has_source {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

fn requests_from_limits(resources: &mut Members) {
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    let limits = limits.clone();
    if limits.is_empty() {
        return;
    }
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    if requests.is_null() {
        *requests = json!({});
    }
    if let Value::Object(requests) = requests {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

/// Sets host ports on the host network, where a container port is a host port.
fn host_ports(spec: &mut Value) {
    edit::each(spec, "containers|initContainers[].ports[]", &mut |port| {
        if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
            edit::fill(port, "hostPort", Int(number));
        }
    });
}

fn status_defaults(object: &mut Value) {
    let Some(Value::Object(status)) = object.get_mut("status") else { return };
    let ip = edit::text(status, "podIP").to_owned();
    let first = status.get("podIPs").and_then(|ips| ips.pointer("/0/ip")).and_then(Value::as_str);
    match (ip.as_str(), first) {
        ("", Some(first)) => {
            let first = first.to_owned();
            status.insert("podIP".to_owned(), first.into());
        }
        ("", None) => {}
        (ip, Some(first)) if ip == first => {}
        (ip, _) => {
            status.insert("podIPs".to_owned(), json!([{ "ip": ip }]));
        }
    }
    edit::each(object, "status.conditions[]", &mut |condition| {
        // The times of conditions are present even if they are unknown.
        condition.entry("lastProbeTime").or_insert(Value::Null);
        condition.entry("lastTransitionTime").or_insert(Value::Null);
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DefaultValue, pod_defaults, pull_policy, template_defaults};

    #[test]
    fn the_pull_policy_follows_the_tag() {
        let table = [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("reg.example.com:5000/nginx", "Always"),
            ("reg.example.com:5000/a/nginx:1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
        ];
        for (image, expected) in table {
            let DefaultValue::Str(policy) = pull_policy(image) else { panic!("a text") };
            assert_eq!(policy, expected, "{image}");
        }
    }

    #[test]
    fn requests_default_to_limits_in_pods_but_not_in_templates() {
        let spec =
            json!({"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}]});
        let mut pod = json!({"spec": spec});
        pod_defaults(&mut pod);
        assert_eq!(
            pod["spec"]["containers"][0]["resources"],
            json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})
        );
        let mut template = json!({"spec": spec});
        template_defaults(&mut template);
        assert_eq!(template["spec"]["containers"][0]["resources"], json!({"limits": {"cpu": "1"}}));
        assert!(template["spec"].get("enableServiceLinks").is_none());
    }

    #[test]
    fn defaulting_is_idempotent() {
        let mut pod = json!({"spec": {
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": 80}}, "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}],
            "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}], "hostNetwork": true, "serviceAccount": "x"}});
        pod_defaults(&mut pod);
        let once = pod.clone();
        pod_defaults(&mut pod);
        assert_eq!(pod, once);
        assert_eq!(
            pod["spec"]["containers"][0]["ports"][0],
            json!({"containerPort": 80, "hostPort": 80, "protocol": "TCP"})
        );
        assert_eq!(pod["spec"]["serviceAccountName"], "x");
    }
}
