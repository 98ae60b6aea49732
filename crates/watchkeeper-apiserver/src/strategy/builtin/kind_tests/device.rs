//! Devices and claims for them.

use serde_json::{Value, json};

use super::{NOW, created, creates, updates};
use crate::strategy::Part;

const GROUP: &str = "resource.k8s.io";

fn spec() -> Value {
    json!({"devices": {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}],
        "constraints": [{"requests": ["r"], "matchAttribute": "a.b/c"}],
        "config": [{"requests": ["r"], "opaque": {"driver": "d", "parameters": {}}}],
    }})
}

#[test]
fn resource_claims_and_templates_are_validated() {
    let table: &[(&str, Value, &[&str])] = &[
        (
            "/devices/requests/0/name",
            json!("A"),
            &[
                "devices.config[0].requests[0] Invalid",
                "devices.constraints[0].requests[0] Invalid",
                "devices.requests[0].name Invalid",
            ],
        ),
        (
            "/devices/requests/-",
            json!({"name": "r", "exactly": {"deviceClassName": "c"}}),
            &["devices.requests[1] Duplicate"],
        ),
        ("/devices/requests/0/exactly", Value::Null, &["devices.requests[0] Required"]),
        (
            "/devices/requests/0/exactly/deviceClassName",
            json!(""),
            &["devices.requests[0].exactly.deviceClassName Required"],
        ),
        (
            "/devices/requests/0/exactly/allocationMode",
            json!("Odd"),
            &["devices.requests[0].exactly.allocationMode NotSupported"],
        ),
        ("/devices/requests/0/exactly/count", json!(-1), &["devices.requests[0].exactly.count Invalid"]),
        (
            "/devices/requests/0/exactly/selectors",
            json!([{}]),
            &["devices.requests[0].exactly.selectors[0].cel Required"],
        ),
        (
            "/devices/requests/0/exactly/tolerations",
            json!([{"key": "a", "value": "b c"}]),
            &["devices.requests[0].exactly.tolerations[0].value Invalid"],
        ),
        (
            "/devices/requests/0/firstAvailable",
            json!([{"name": "s", "deviceClassName": "c"}]),
            &["devices.requests[0] Invalid"],
        ),
        (
            "/devices/constraints/0/matchAttribute",
            json!("c"),
            &["devices.constraints[0].matchAttribute Invalid"],
        ),
        ("/devices/constraints/0/requests", json!(["x"]), &["devices.constraints[0].requests[0] Invalid"]),
        ("/devices/config/0/opaque", Value::Null, &["devices.config[0].opaque Required"]),
        ("/devices/config/0/opaque/parameters", json!("x"), &["devices.config[0].opaque.parameters Invalid"]),
    ];
    let under = |pointer: &str, path: &str| {
        table
            .iter()
            .map(|(at, value, errors)| {
                let errors: Vec<String> = errors.iter().map(|error| format!("{path}.{error}")).collect();
                (format!("{pointer}{at}"), value.clone(), errors)
            })
            .collect::<Vec<_>>()
    };
    for (kind, body, changes) in [
        ("ResourceClaim", json!({"spec": spec()}), under("/spec", "spec")),
        ("ResourceClaimTemplate", json!({"spec": {"spec": spec()}}), under("/spec/spec", "spec.spec")),
    ] {
        for (pointer, value, errors) in changes {
            let errors: Vec<&str> = errors.iter().map(String::as_str).collect();
            creates(GROUP, kind, &body, &[(&pointer, value, &errors)]);
        }
    }
    updates(
        GROUP,
        "ResourceClaim",
        Part::Main,
        &json!({"spec": spec()}),
        &[("/spec/devices/requests/0/name", json!("s"), &["spec Invalid"])],
    );
}

#[test]
fn a_device_request_defaults_to_exact_count_one() {
    let claim = created(GROUP, "ResourceClaim", &json!({"spec": spec()}));
    let exactly = &claim["spec"]["devices"]["requests"][0]["exactly"];
    assert_eq!(exactly, &json!({"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}));
    let mut all = spec();
    all["devices"]["requests"][0]["exactly"]["allocationMode"] = json!("All");
    let claim = created(GROUP, "ResourceClaim", &json!({ "spec": all }));
    assert!(claim["spec"]["devices"]["requests"][0]["exactly"].get("count").is_none());
}

#[test]
fn resource_claim_statuses_are_validated() {
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "v"});
    let allocated = json!({"allocation": {"devices": {"results": [result]}}});
    updates(
        GROUP,
        "ResourceClaim",
        Part::Subresource("status"),
        &json!({"spec": spec()}),
        &[
            ("/status", allocated.clone(), &[]),
            (
                "/status",
                json!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}),
                &["status.reservedFor Forbidden"],
            ),
            (
                "/status",
                json!({"allocation": {"devices": {"results": [{"request": "x", "driver": "d", "pool": "p", "device": "v"}]}}}),
                &["status.allocation.devices.results[0].request Invalid"],
            ),
            (
                "/status",
                json!({"devices": [{"driver": "d", "pool": "p", "device": "v"}]}),
                &["status.devices[0] Invalid"],
            ),
        ],
    );
    updates(
        GROUP,
        "ResourceClaim",
        Part::Subresource("status"),
        &json!({"spec": spec(), "status": allocated}),
        &[
            ("/status/allocation/devices/results/0/device", json!("w"), &["status.allocation Invalid"]),
            (
                "/status/reservedFor",
                json!([{"resource": "pods", "name": "p", "uid": ""}]),
                &["status.reservedFor[0].uid Required"],
            ),
        ],
    );
}

#[test]
fn resource_slices_are_validated_on_create_and_update() {
    let slice = json!({"spec": {
        "driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1},
        "devices": [{"name": "a", "attributes": {"k": {"int": 1}}, "capacity": {"c": {"value": "1"}}}],
    }});
    creates(
        GROUP,
        "ResourceSlice",
        &slice,
        &[
            ("/spec/driver", json!(""), &["spec.driver Required"]),
            ("/spec/pool/name", json!("A_"), &["spec.pool.name Invalid"]),
            ("/spec/pool/resourceSliceCount", json!(0), &["spec.pool.resourceSliceCount Invalid"]),
            ("/spec/pool/generation", json!(-1), &["spec.pool.generation Invalid"]),
            ("/spec/nodeName", Value::Null, &["spec Required"]),
            ("/spec/allNodes", json!(true), &["spec Invalid"]),
            ("/spec/allNodes", json!(false), &["spec.allNodes Invalid"]),
            ("/spec/devices/0/name", json!("A"), &["spec.devices[0].name Invalid"]),
            ("/spec/devices/-", json!({"name": "a"}), &["spec.devices[1] Duplicate"]),
            ("/spec/devices/0/attributes/k", json!({}), &["spec.devices[0].attributes[k] Invalid"]),
            (
                "/spec/devices/0/attributes/k",
                json!({"version": "1"}),
                &["spec.devices[0].attributes[k].version Invalid"],
            ),
            (
                "/spec/devices/0/attributes",
                json!({"k-k": {"int": 1}}),
                &["spec.devices[0].attributes Invalid"],
            ),
            ("/spec/devices/0/allNodes", json!(true), &["spec.devices[0] Invalid"]),
            (
                "/spec/devices/0/taints",
                json!([{"key": "a", "effect": "Odd"}]),
                &["spec.devices[0].taints[0].effect NotSupported"],
            ),
            (
                "/spec/devices/0/bindingConditions",
                json!(["a"]),
                &["spec.devices[0].bindingFailureConditions Invalid"],
            ),
            (
                "/spec/devices/0/capacity/c/requestPolicy",
                json!({}),
                &["spec.devices[0].capacity[c].requestPolicy Forbidden"],
            ),
            (
                "/spec/devices/0/consumesCounters",
                json!([{"counterSet": "", "counters": {"a": {"value": "1"}}}]),
                &["spec.devices[0].consumesCounters[0].counterSet Required"],
            ),
            (
                "/spec/sharedCounters",
                json!([{"name": "s", "counters": {}}]),
                &["spec Invalid", "spec.sharedCounters[0].counters Required"],
            ),
        ],
    );
    updates(
        GROUP,
        "ResourceSlice",
        Part::Main,
        &slice,
        &[
            ("/spec/driver", json!("e"), &["spec.driver Invalid"]),
            ("/spec/nodeName", json!("m"), &["spec.nodeName Invalid"]),
            ("/spec/pool/name", json!("q"), &["spec.pool.name Invalid"]),
        ],
    );
    let mut odd = slice.clone();
    odd["spec"]["skipNodeOperations"] = json!(["All"]);
    odd["spec"]["devices"][0]["attributes"]["k"]["ints"] = json!([1]);
    odd["spec"]["devices"][0]["taints"] = json!([{"key": "a", "effect": "NoSchedule"}]);
    let stored = created(GROUP, "ResourceSlice", &odd);
    assert!(stored["spec"].get("skipNodeOperations").is_none());
    assert_eq!(stored["spec"]["devices"][0]["attributes"]["k"], json!({"int": 1}));
    assert_eq!(stored["spec"]["devices"][0]["taints"][0]["timeAdded"], json!(NOW));
}

#[test]
fn device_classes_and_taint_rules_are_validated() {
    creates(
        GROUP,
        "DeviceClass",
        &json!({"spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
        &[
            ("/spec/selectors/0", json!({}), &["spec.selectors[0].cel Required"]),
            (
                "/spec/selectors/0/cel/expression",
                json!("device.nope"),
                &["spec.selectors[0].cel.expression Invalid"],
            ),
            ("/spec/config", json!([{}]), &["spec.config[0].opaque Required"]),
            ("/spec/extendedResourceName", json!("cpu"), &["spec.extendedResourceName Invalid"]),
        ],
    );
    creates(
        GROUP,
        "DeviceTaintRule",
        &json!({"spec": {"taint": {"key": "a", "effect": "NoExecute"}}}),
        &[
            ("/spec/taint/effect", json!(""), &["spec.taint.effect Required"]),
            ("/spec/taint/key", json!(""), &["spec.taint.key Invalid", "spec.taint.key Invalid"]),
            ("/spec/deviceSelector", json!({"device": "A"}), &["spec.deviceSelector.device Invalid"]),
            ("/spec/deviceSelector", json!({"driver": ""}), &["spec.deviceSelector.driver Required"]),
        ],
    );
}
