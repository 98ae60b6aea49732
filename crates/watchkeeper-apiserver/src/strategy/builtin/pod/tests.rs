use serde_json::{Value, json};

use super::super::cases::KindUnderTest;

fn pod() -> KindUnderTest {
    KindUnderTest::new("", "v1", "Pod", &json!({"spec": {"containers": [{"name": "c", "image": "i"}]}}))
}

#[test]
fn each_invalid_field_of_a_pod_spec_is_rejected() {
    pod().check_create(&[
        ("/spec/overhead", json!({"cpu": "-1"}), &["spec.overhead.limits[cpu] Invalid"]),
        ("/spec/overhead", json!({"bogus": "1"}), &["spec.overhead.limits[bogus] Invalid", "spec.overhead.limits[bogus] Invalid"]),
        ("/spec/dnsConfig", json!({"searches": ["A"]}), &["spec.dnsConfig.searches[0] Invalid"]),
        ("/spec/dnsConfig", json!({"options": [{}]}), &["spec.dnsConfig.options[0] Required"]),
        ("/spec/dnsPolicy", json!("None"), &["spec.dnsConfig Required"]),
        ("/spec/resourceClaims", json!([{"name": "a"}]), &["spec.resourceClaims[0] Invalid"]),
        ("/spec/resourceClaims", json!([{"name": "A", "resourceClaimName": "x"}]), &["spec.resourceClaims[0].name Invalid"]),
        ("/spec/resourceClaims", json!([{"name": "a", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "x"}]), &["spec.resourceClaims[1].name Duplicate"]),
        ("/spec/os", json!({"name": ""}), &["spec.os.name Required"]),
        ("/spec/os", json!({"name": "plan9"}), &["spec.os NotSupported"]),
        ("/spec/hostUsers", json!(false), &[]),
        ("/spec/schedulingGates", json!([{"name": "a b"}]), &["spec.schedulingGates[0] Invalid"]),
        ("/spec/schedulingGates", json!([{"name": "a"}, {"name": "a"}]), &["spec.schedulingGates[1] Duplicate"]),
        ("/spec/tolerations", json!([{"key": "a", "operator": "Lt", "value": "1"}]), &["spec.tolerations[0].operator NotSupported"]),
        ("/spec/tolerations", json!([{"key": "a", "value": "-"}]), &["spec.tolerations[0].operator Invalid"]),
        ("/spec/hostAliases", json!([{"ip": ""}]), &["spec.hostAliases[0].ip Invalid"]),
        ("/spec/runtimeClassName", json!(""), &["spec.runtimeClassName Invalid"]),
        ("/spec/hostnameOverride", json!("A"), &["spec.hostnameOverride Invalid"]),
        ("/spec/readinessGates", json!([{"conditionType": ""}]), &["spec.readinessGates[0].conditionType Invalid", "spec.readinessGates[0].conditionType Invalid"]),
        ("/spec/topologySpreadConstraints", json!([{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "X", "minDomains": 1}]), &[
            "spec.topologySpreadConstraints[0].whenUnsatisfiable NotSupported",
            "spec.topologySpreadConstraints[0].minDomains Invalid",
        ]),
        ("/spec/affinity", json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "matchLabelKeys": ["b"]}]}}), &[
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys Forbidden",
        ]),
        ("/spec/affinity", json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "x", "operator": "In", "values": ["n"]}]}]}}}), &[
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key Invalid",
        ]),
        ("/metadata/annotations", json!({"controller.kubernetes.io/pod-deletion-cost": "+1"}), &["metadata.annotations[controller.kubernetes.io/pod-deletion-cost] Invalid"]),
        ("/metadata/annotations", json!({"container.apparmor.security.beta.kubernetes.io/x": "odd"}), &[
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x] Invalid",
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/x] Invalid",
        ]),
    ]);
}

#[test]
fn each_invalid_field_of_a_container_is_rejected() {
    pod().check_create(&[
        ("/spec/containers/0/restartPolicy", json!("X"), &["spec.containers[0].restartPolicy NotSupported"]),
        ("/spec/containers/0/restartPolicyRules", json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]), &["spec.containers[0].restartPolicy Required"]),
        ("/spec/containers/0/resizePolicy", json!([{"resourceName": "disk", "restartPolicy": "NotRequired"}]), &["spec.containers[0].resizePolicy NotSupported"]),
        ("/spec/containers/0/resizePolicy", json!([{"resourceName": "cpu"}]), &["spec.containers[0].resizePolicy Required"]),
        ("/spec/containers/0/resizePolicy", json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}, {"resourceName": "cpu", "restartPolicy": "NotRequired"}]), &["spec.containers[0].resizePolicy[1] Duplicate"]),
        ("/spec/containers/0/resources", json!({"claims": [{"name": "x"}]}), &["spec.containers[0].resources.claims[0] NotFound"]),
        ("/spec/containers/0/resources", json!({"requests": {"example.com/gpu": "1"}}), &["spec.containers[0].resources.limits Required"]),
        ("/spec/containers/0/resources", json!({"limits": {"hugepages-2Mi": "2Mi"}}), &["spec.containers[0].resources Forbidden"]),
        ("/spec/containers/0/resources", json!({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}), &["spec.containers[0].resources.limits[hugepages-2Mi] Invalid", "spec.containers[0].resources.requests[hugepages-2Mi] Invalid"]),
        ("/spec/containers/0/image", json!(" i"), &["spec.containers[0].image Invalid"]),
        ("/spec/containers/0/envFrom", json!([{}]), &["spec.containers[0].envFrom Invalid"]),
        ("/spec/containers/0/env", json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]), &["spec.containers[0].env[0].valueFrom.fieldRef.fieldPath NotSupported"]),
        ("/spec/containers/0/env", json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "no.such"}}}]), &["spec.containers[0].env[0].valueFrom.fieldRef.fieldPath Invalid"]),
        ("/spec/containers/0/env", json!([{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.disk"}}}]), &["spec.containers[0].env[0].valueFrom.resourceFieldRef.resource NotSupported"]),
        ("/spec/containers/0/env", json!([{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]), &["spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor Invalid"]),
        ("/spec/containers/0/env", json!([{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "K"}}}]), &["spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName NotFound"]),
        ("/spec/containers/0/livenessProbe", json!({"httpGet": {"port": 80, "scheme": "X", "httpHeaders": [{"name": "a b"}]}}), &["spec.containers[0].livenessProbe.httpGet.scheme NotSupported", "spec.containers[0].livenessProbe.httpGet.httpHeaders Invalid"]),
        ("/spec/containers/0/livenessProbe", json!({"grpc": {"port": 0}}), &["spec.containers[0].livenessProbe.grpc.port Invalid"]),
        ("/spec/containers/0/lifecycle", json!({"preStop": {"sleep": {"seconds": 31}}}), &["spec.containers[0].lifecycle.preStop.sleep Invalid"]),
        ("/spec/containers/0/securityContext", json!({"procMount": "Unmasked"}), &["spec.containers[0].securityContext.procMount Invalid"]),
        ("/spec/containers/0/securityContext", json!({"seccompProfile": {"type": "Localhost"}}), &["spec.containers[0].securityContext.seccompProfile.localhostProfile Required"]),
        ("/spec/containers/0/securityContext", json!({"privileged": true, "allowPrivilegeEscalation": false}), &["spec.containers[0].securityContext Invalid"]),
        ("/spec/containers/0/volumeMounts", json!([{"name": "v", "mountPath": "/a"}]), &["spec.containers[0].volumeMounts[0].name NotFound"]),
        ("/spec/initContainers", json!([{"name": "i", "image": "i", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]), &["spec.initContainers[0].resizePolicy[0].restartPolicy Invalid"]),
        ("/spec/securityContext", json!({"sysctls": [{"name": "A"}], "supplementalGroupsPolicy": "X"}), &["spec.securityContext.sysctls[0].name Invalid", "spec.securityContext.supplementalGroupsPolicy NotSupported"]),
        ("/spec/resources", json!({"limits": {"example.com/gpu": "1"}}), &["spec.resources.limits[example.com/gpu] NotSupported"]),
    ]);
}

#[test]
fn each_invalid_field_of_a_volume_is_rejected() {
    let volume = |source: Value| {
        let mut volume = json!({"name": "v"});
        for (name, value) in source.as_object().into_iter().flatten() {
            volume[name] = value.clone();
        }
        json!([volume])
    };
    pod().check_create(&[
        (
            "/spec/volumes",
            volume(json!({"emptyDir": {"sizeLimit": "-1"}})),
            &["spec.volumes[0].emptyDir.sizeLimit Forbidden"],
        ),
        (
            "/spec/volumes",
            volume(
                json!({"secret": {"secretName": "s", "items": [{"key": "k", "path": "/a", "mode": 512}]}}),
            ),
            &["spec.volumes[0].secret.items[0].path Invalid", "spec.volumes[0].secret.items[0].mode Invalid"],
        ),
        (
            "/spec/volumes",
            volume(json!({"nfs": {"server": "s", "path": "a"}})),
            &["spec.volumes[0].nfs.path Invalid"],
        ),
        (
            "/spec/volumes",
            volume(json!({"downwardAPI": {"items": [{"path": "p"}]}})),
            &["spec.volumes[0].downwardAPI Required"],
        ),
        (
            "/spec/volumes",
            volume(
                json!({"projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}}),
            ),
            &["spec.volumes[0].projected.sources[0] Forbidden"],
        ),
        ("/spec/volumes", volume(json!({"csi": {"driver": "a b"}})), &["spec.volumes[0].csi.driver Invalid"]),
        (
            "/spec/volumes",
            volume(json!({"image": {"pullPolicy": "X"}})),
            &["spec.volumes[0].image.reference Required", "spec.volumes[0].image.pullPolicy NotSupported"],
        ),
        (
            "/spec/volumes",
            volume(json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})),
            &[
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes Required",
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage] Required",
            ],
        ),
        ("/spec/volumes", volume(json!({"fc": {}})), &["spec.volumes[0].fc.targetWWNs Required"]),
        (
            "/spec/volumes",
            volume(json!({"iscsi": {"targetPortal": "t", "iqn": "x", "lun": 256}})),
            &["spec.volumes[0].iscsi.iqn Invalid", "spec.volumes[0].iscsi.lun Invalid"],
        ),
        ("/spec/volumes", json!([{"name": "v"}, {"name": "v"}]), &["spec.volumes[1].name Duplicate"]),
    ]);
}

#[test]
fn fields_of_disabled_gates_are_dropped_from_pods_and_templates() {
    let changes = [
        ("/spec/evictionResponders", json!([{"name": "a"}])),
        ("/spec/schedulingGroup", json!({"podGroupName": "g"})),
        ("/spec/volumes", json!([{"name": "v", "emptyDir": {"mode": 511}}])),
        ("/spec/containers/0/lifecycle", json!({"stopSignal": "SIGTERM"})),
    ];
    let created = pod().created(&changes);
    let spec = &created["spec"];
    assert!(spec.get("evictionResponders").is_none() && spec.get("schedulingGroup").is_none());
    assert_eq!(spec["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    assert!(spec["containers"][0].get("lifecycle").is_none());
    let deployment = KindUnderTest::new(
        "apps",
        "v1",
        "Deployment",
        &json!({"spec": {"template": {"spec": {
        "schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "image": "i"}]}}}}),
    );
    assert!(deployment.created(&[]).pointer("/spec/template/spec/schedulingGroup").is_none());
}

#[test]
fn each_invalid_field_of_a_pod_status_is_rejected() {
    pod().check_status(
        &json!({"qosClass": "BestEffort", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}),
        &[
            ("/status/qosClass", json!("Guaranteed"), &["status.qosClass Invalid"]),
            (
                "/status/conditions",
                json!([{"type": "a b", "status": "True"}]),
                &["status.conditions[0].Type Invalid"],
            ),
            ("/status/podIPs", json!([{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]), &["status.podIPs Invalid"]),
            (
                "/status/podIPs",
                json!([{"ip": "10.0.0.1"}, {"ip": "x"}]),
                &["status.podIPs[1] Invalid", "status.podIPs Invalid"],
            ),
            ("/status/hostIPs", json!([{"ip": "10.0.0.9"}]), &["status.hostIPs[0].ip Invalid"]),
            ("/status/nominatedNodeName", json!("A"), &["status.nominatedNodeName Invalid"]),
            ("/status/observedGeneration", json!(-1), &["status.observedGeneration Invalid"]),
            (
                "/status/resourceClaimStatuses",
                json!([{"name": "x"}]),
                &["status.resourceClaimStatuses[0].name Invalid"],
            ),
        ],
    );
}

#[test]
fn immutable_pod_annotations_cannot_be_changed() {
    pod().check_update(&[
        (
            "/metadata/annotations",
            json!({"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}),
            &["metadata.annotations[container.apparmor.security.beta.kubernetes.io/c] Forbidden"],
        ),
        ("/spec/containers/0/image", json!("j"), &[]),
    ]);
}

#[test]
fn a_pod_template_is_validated_and_its_changes_increase_the_generation() {
    let template = KindUnderTest::new(
        "",
        "v1",
        "PodTemplate",
        &json!({"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}),
    );
    template.check_create(&[
        ("/template", Value::Null, &["template.spec.containers Required"]),
        ("/template/metadata/labels", json!({"a b": "c"}), &["template.labels Invalid"]),
        ("/template/spec/restartPolicy", json!("X"), &["template.spec.restartPolicy NotSupported"]),
    ]);
    let old = template.created(&[]);
    assert_eq!(
        template.updated(&old, &[("/metadata/labels", json!({"a": "b"}))])["metadata"]["generation"],
        1
    );
    assert_eq!(
        template.updated(&old, &[("/template/spec/hostIPC", json!(true))])["metadata"]["generation"],
        2
    );
}

#[test]
fn a_resize_changes_only_cpu_and_memory() {
    let with = |resources: Value| {
        let containers = json!([{"name": "c", "image": "i", "resources": resources}]);
        KindUnderTest::new("", "v1", "Pod", &json!({"spec": {"containers": containers}})).created(&[])
    };
    let old = with(json!({"requests": {"cpu": "1", "memory": "1Gi"}}));
    let cases: [(Value, &[&str]); 4] = [
        (with(json!({"requests": {"cpu": "2", "memory": "1Gi"}})), &[]),
        (with(json!({"requests": {"cpu": "2"}})), &["spec.containers[0].resources.requests"]),
        (with(json!({"limits": {"cpu": "1", "memory": "1Gi"}})), &["spec"]),
        (with(json!({"requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}})), &["spec"]),
    ];
    for (new, expected) in cases {
        let mut errors = Vec::new();
        super::resize::validate(
            &crate::strategy::cursor::Cursor::root(&new),
            &crate::strategy::cursor::Cursor::root(&old),
            &mut errors,
        );
        let paths: Vec<String> = errors.into_iter().map(|error| error.path).collect();
        assert_eq!(paths, expected, "{}", new["spec"]["containers"][0]["resources"]);
    }
}
