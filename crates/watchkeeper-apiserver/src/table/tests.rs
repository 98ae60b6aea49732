use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::*;
use crate::kinds::{Custom, PrinterColumn, Registry};

const NOON: &str = "2020-01-01T12:00:00Z";

fn at_noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(438_300)
}

fn kind(group: &str, plural: &str) -> Arc<Kind> {
    Arc::clone(Registry::new().kinds().by_path(group, "v1", plural).unwrap())
}

fn cells(group: &str, plural: &str, object: Value) -> Value {
    table(&kind(group, plural), &[object], at_noon())["rows"][0]["cells"].clone()
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better by value")]
fn pod(status: Value) -> Value {
    json!({
        "metadata": {"name": "p", "creationTimestamp": "2020-01-01T11:50:00Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "n"},
        "status": status
    })
}

#[test]
fn every_row_has_as_many_cells_as_there_are_columns() {
    for kind in Registry::new().kinds().iter() {
        let rendered =
            table(kind, &[json!({"metadata": {"name": "x", "creationTimestamp": NOON}})], at_noon());
        let columns = rendered["columnDefinitions"].as_array().unwrap();
        let cells = rendered["rows"][0]["cells"].as_array().unwrap();
        // Upstream sends the age of an IP address in a column that does not exist.
        let surplus = usize::from(kind.plural == "ipaddresses");
        assert_eq!(cells.len(), columns.len() + surplus, "{}", kind.plural);
        let index = columns.iter().position(|column| column["name"] == "Name").unwrap();
        assert_eq!(cells[index], "x", "{}", kind.plural);
    }
}

#[test]
fn every_kind_of_the_table_of_columns_is_served() {
    for (group, plural, _) in columns::rows() {
        let kinds = Registry::new().kinds();
        assert!(
            kinds.iter().any(|kind| kind.gvk.group == group && kind.plural == plural),
            "{group} {plural}"
        );
    }
}

#[test]
fn empty_objects_have_table_rows() {
    for kind in Registry::new().kinds().iter() {
        let rendered =
            table(kind, &[json!({}), json!({"metadata": null, "spec": [], "status": 1})], at_noon());
        assert_eq!(rendered["rows"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_running_pod_counts_its_containers() {
    let running = json!({"ready": true, "restartCount": 2, "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "2020-01-01T11:59:00Z"}}});
    let status = json!({"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}],
        "containerStatuses": [running, {"ready": false, "restartCount": 0, "state": {"running": {}}}]});
    assert_eq!(
        cells("", "pods", pod(status)),
        json!(["p", "1/2", "Running", "2 (60s ago)", "10m", "10.0.0.1", "n", "<none>", "<none>"])
    );
}

#[test]
fn the_status_column_of_a_pod_shows_why_it_does_not_run() {
    let reason = |pod: Value| cells("", "pods", pod)[2].clone();
    let crash = json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    assert_eq!(reason(pod(json!({"phase": "Running", "containerStatuses": [crash]}))), "CrashLoopBackOff");
    let killed = json!({"state": {"terminated": {"exitCode": 137, "signal": 9}}});
    assert_eq!(reason(pod(json!({"phase": "Failed", "containerStatuses": [killed]}))), "Signal:9");
    let failed = json!({"state": {"terminated": {"exitCode": 3}}});
    assert_eq!(
        reason(pod(json!({"phase": "Pending", "initContainerStatuses": [failed]}))),
        "Init:ExitCode:3"
    );
    let mut waiting = pod(json!({"phase": "Pending", "initContainerStatuses": [{"state": {}}]}));
    waiting["spec"]["initContainers"] = json!([{"name": "i"}, {"name": "j"}]);
    assert_eq!(reason(waiting), "Init:0/2");
    let mut deleted = pod(json!({"phase": "Running"}));
    deleted["metadata"]["deletionTimestamp"] = NOON.into();
    assert_eq!(reason(deleted), "Terminating");
    let done = pod(json!({"phase": "Succeeded"}));
    let rendered = table(&kind("", "pods"), &[done], at_noon());
    assert_eq!(rendered["rows"][0]["conditions"][0]["reason"], "Succeeded");
}

#[test]
fn a_sidecar_counts_as_a_container() {
    let mut object = pod(json!({"phase": "Running",
        "initContainerStatuses": [{"name": "s", "ready": true, "started": true, "restartCount": 1, "state": {"running": {}}}],
        "containerStatuses": [{"ready": true, "state": {"running": {}}}, {"ready": true, "state": {"running": {}}}]}));
    object["spec"]["initContainers"] = json!([{"name": "s", "restartPolicy": "Always"}]);
    let rendered = cells("", "pods", object);
    assert_eq!((&rendered[1], &rendered[3]), (&json!("3/3"), &json!("1")));
}

#[test]
fn workload_rows_show_their_progress() {
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({
        "metadata": {"name": "d", "creationTimestamp": NOON},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "2", "a": "1"}}, "template": template},
        "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}
    });
    assert_eq!(
        cells("apps", "deployments", deployment),
        json!(["d", "2/3", 3, 1, "0s", "c", "i", "a=1,b=2"])
    );
    let job = json!({
        "metadata": {"name": "j", "creationTimestamp": NOON},
        "spec": {"completions": 1, "template": template},
        "status": {"succeeded": 1, "startTime": "2020-01-01T11:00:00Z", "completionTime": "2020-01-01T11:05:03Z",
            "conditions": [{"type": "Complete", "status": "True"}]}
    });
    assert_eq!(
        cells("batch", "jobs", job),
        json!(["j", "Complete", "1/1", "5m3s", "0s", "c", "i", "<none>"])
    );
}

#[test]
fn service_rows_show_their_addresses() {
    let service = json!({
        "metadata": {"name": "s", "creationTimestamp": NOON},
        "spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "selector": {"a": "b"},
            "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 53, "protocol": "UDP"}]}
    });
    assert_eq!(
        cells("", "services", service),
        json!(["s", "LoadBalancer", "10.0.0.1", "<pending>", "80:30000/TCP,53/UDP", "0s", "a=b"])
    );
}

#[test]
fn node_rows_show_roles_and_readiness() {
    let node = json!({
        "metadata": {"name": "n", "creationTimestamp": NOON, "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "False"}], "nodeInfo": {"kernelVersion": "6", "architecture": "arm64"}}
    });
    assert_eq!(
        cells("", "nodes", node),
        json!([
            "n",
            "NotReady,SchedulingDisabled",
            "worker",
            "0s",
            "",
            "<none>",
            "<none>",
            "<unknown>",
            "6 (arm64)",
            "<unknown>"
        ])
    );
}

#[test]
fn events_of_both_groups_have_equal_rows() {
    let old = json!({"metadata": {"name": "e"}, "type": "Normal", "reason": "R", "message": " m ", "count": 3,
        "involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "c"}, "lastTimestamp": NOON});
    let new = json!({"metadata": {"name": "e"}, "type": "Normal", "reason": "R", "note": " m ", "deprecatedCount": 3,
        "regarding": {"kind": "Pod", "name": "p"}, "deprecatedSource": {"component": "c"}, "deprecatedLastTimestamp": NOON});
    let rendered = cells("", "events", old);
    assert_eq!(rendered, json!(["0s", "Normal", "R", "pod/p", "", "c", "m", "<unknown>", 3, "e"]));
    assert_eq!(cells("events.k8s.io", "events", new), rendered);
}

#[test]
fn the_newest_default_storage_class_is_marked() {
    let class = |name: &str, day: u8| {
        json!({"metadata": {"name": name, "creationTimestamp": format!("2020-01-{day:02}T00:00:00Z"),
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "x"})
    };
    let rendered =
        table(&kind("storage.k8s.io", "storageclasses"), &[class("a", 1), class("b", 2)], at_noon());
    assert_eq!(rendered["rows"][0]["cells"][0], "a");
    assert_eq!(rendered["rows"][1]["cells"][0], "b (default)");
}

#[test]
fn a_scale_has_the_columns_of_a_scale() {
    let scale = json!({"kind": "Scale", "metadata": {"name": "d", "creationTimestamp": NOON},
        "spec": {"replicas": 3}, "status": {"replicas": 2}});
    let rendered = table(&kind("apps", "deployments"), &[scale], at_noon());
    assert_eq!(rendered["rows"][0]["cells"], json!(["d", 3, 2, "0s"]));
    assert_eq!(rendered["columnDefinitions"].as_array().unwrap().len(), 4);
}

fn custom(columns: Vec<PrinterColumn>) -> Kind {
    let custom = Custom { columns, ..Custom::default() };
    Kind { custom: Some(Arc::new(custom)), ..Kind::clone(&kind("", "configmaps")) }
}

#[test]
fn a_custom_kind_shows_its_additional_printer_columns() {
    let column = |name: &str, ty: &str, json_path: &str| PrinterColumn {
        name: name.into(),
        ty: ty.into(),
        json_path: json_path.into(),
        ..PrinterColumn::default()
    };
    let kind = custom(vec![
        column("S", "string", ".spec.s"),
        column("N", "integer", ".spec.n"),
        column("B", "boolean", ".spec.b"),
        column("F", "number", ".spec.f"),
        column("L", "string", ".spec.l[*]"),
        column("O", "string", ".spec.o"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ]);
    let object = json!({
        "metadata": {"name": "x", "creationTimestamp": "2020-01-01T11:00:00Z"},
        "spec": {"s": "t", "n": 5, "b": true, "f": 1.5, "l": ["p", "q"], "o": {"a": 1}}
    });
    let rendered = table(&kind, &[object, json!({"metadata": {"name": "y"}})], at_noon());
    assert_eq!(rendered["rows"][0]["cells"], json!(["x", "t", 5, true, 1.5, "p", "{\"a\":1}", "60m"]));
    assert_eq!(rendered["rows"][1]["cells"], json!(["y", null, null, null, null, null, null, null]));
    assert_eq!(
        rendered["columnDefinitions"][1],
        json!({
            "name": "S", "type": "string", "format": "", "priority": 0,
            "description": "Custom resource definition column (in JSONPath format): .spec.s"
        })
    );
}

#[test]
fn a_custom_kind_without_columns_shows_name_and_age() {
    let object = json!({"metadata": {"name": "x", "creationTimestamp": NOON}});
    let rendered = table(&custom(Vec::new()), &[object], at_noon());
    assert_eq!(rendered["rows"][0]["cells"], json!(["x", "0s"]));
    assert_eq!(rendered["columnDefinitions"][1]["type"], "date");
}
