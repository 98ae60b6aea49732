//! The columns of a resource's table, in addition to name and age.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};
use watchkeeper::{
    apiserver::JsonPath, client::discovery::RestMapping,
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_core::DynamicObject, prelude::*,
};

use super::render;

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) header: String,
    cell: Cell,
}

#[derive(Debug, Clone)]
enum Cell {
    /// The result of a function of the object.
    Of(fn(&DynamicObject) -> String),
    /// The value at a path.
    At(JsonPath),
    /// The time since the timestamp at a path.
    Since(JsonPath),
}

type Known = &'static [(&'static str, fn(&DynamicObject) -> String)];

impl Column {
    pub(super) fn value(&self, object: &DynamicObject, now: Timestamp) -> String {
        match &self.cell {
            Cell::Of(function) => function(object),
            Cell::At(path) => joined(&path.find(&whole(object, path))),
            Cell::Since(path) => {
                let whole = whole(object, path);
                let times = path.find(&whole).into_iter().filter_map(|value| value.as_str()?.parse().ok());
                let mut ages =
                    times.map(|time: Timestamp| render::duration(now.as_second() - time.as_second()));
                ages.next().unwrap_or_default()
            }
        }
    }
}

/// Returns the JSON that a path applies to. Only metadata has to be copied, and only if the path leads into it.
fn whole<'a>(object: &'a DynamicObject, path: &JsonPath) -> Cow<'a, Value> {
    if path.first_member() == Some("metadata") {
        Cow::Owned(json!({"metadata": object.metadata}))
    } else {
        Cow::Borrowed(&object.data)
    }
}

/// Returns the columns of a resource: built-in ones for common kinds, those of the definition for custom
/// resources, none otherwise.
pub(super) async fn of(client: &Client, mapping: &RestMapping) -> Vec<Column> {
    if let Some(known) = known(&mapping.resource.group, &mapping.resource.resource) {
        let column = |(header, function): &(&str, fn(&DynamicObject) -> String)| Column {
            header: (*header).to_owned(),
            cell: Cell::Of(*function),
        };
        return known.iter().map(column).collect();
    }
    // Without a definition, or permission to read it, the table has names and ages only.
    let definitions = client.resource::<CustomResourceDefinition>();
    let name = format!("{}.{}", mapping.resource.resource, mapping.resource.group);
    match definitions.get_opt(&name).await {
        Ok(Some(definition)) => of_definition(&definition, &mapping.resource.version),
        Ok(None) | Err(_) => Vec::new(),
    }
}

fn of_definition(definition: &CustomResourceDefinition, version: &str) -> Vec<Column> {
    let version = definition.spec.versions.iter().find(|candidate| candidate.name == version);
    let columns =
        version.and_then(|version| version.additional_printer_columns.as_ref()).into_iter().flatten();
    let usual = columns.filter(|column| column.priority.unwrap_or(0) == 0);
    usual
        .filter(|column| column.json_path != ".metadata.creationTimestamp")
        .filter_map(|column| {
            let path = JsonPath::parse(&column.json_path)?;
            let cell = if column.type_ == "date" { Cell::Since(path) } else { Cell::At(path) };
            Some(Column { header: column.name.to_uppercase(), cell })
        })
        .collect()
}

fn known(group: &str, resource: &str) -> Option<Known> {
    Some(match (group, resource) {
        ("", "pods") => &[
            ("READY", |pod| {
                let statuses = pod.data.pointer("/status/containerStatuses").and_then(Value::as_array);
                let ready = statuses.into_iter().flatten().filter(|status| status["ready"] == true).count();
                format!("{ready}/{}", list_len(pod, "/spec/containers"))
            }),
            ("STATUS", |pod| {
                if pod.metadata.deletion_timestamp.is_some() {
                    return "Terminating".to_owned();
                }
                text(pod, "/status/phase")
            }),
            ("NODE", |pod| text(pod, "/spec/nodeName")),
        ],
        ("", "nodes") => &[
            ("STATUS", |node| {
                let conditions = node.data.pointer("/status/conditions").and_then(Value::as_array);
                let mut ready =
                    conditions.into_iter().flatten().filter(|condition| condition["type"] == "Ready");
                if ready.any(|condition| condition["status"] == "True") { "Ready" } else { "NotReady" }
                    .to_owned()
            }),
            ("VERSION", |node| text(node, "/status/nodeInfo/kubeletVersion")),
        ],
        ("", "namespaces") => &[("STATUS", |namespace| text(namespace, "/status/phase"))],
        ("", "services") => &[
            ("TYPE", |service| text(service, "/spec/type")),
            ("CLUSTER-IP", |service| text(service, "/spec/clusterIP")),
        ],
        ("", "configmaps" | "secrets") => &[("DATA", |object| {
            let count = |pointer| {
                object.data.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
            };
            (count("/data") + count("/binaryData")).to_string()
        })],
        ("apps", "deployments") => &[
            ("READY", |it| {
                format!("{}/{}", number(it, "/status/readyReplicas"), number(it, "/spec/replicas"))
            }),
            ("UP-TO-DATE", |it| number(it, "/status/updatedReplicas")),
            ("AVAILABLE", |it| number(it, "/status/availableReplicas")),
        ],
        ("apps", "replicasets" | "statefulsets") => &[("READY", |it| {
            format!("{}/{}", number(it, "/status/readyReplicas"), number(it, "/spec/replicas"))
        })],
        ("batch", "jobs") => &[("COMPLETIONS", |it| {
            format!("{}/{}", number(it, "/status/succeeded"), number(it, "/spec/completions"))
        })],
        ("networking.k8s.io", "ingresses") => &[
            ("CLASS", |ingress| text(ingress, "/spec/ingressClassName")),
            ("HOSTS", |ingress| {
                let rules = ingress.data.pointer("/spec/rules").and_then(Value::as_array);
                let hosts: Vec<&str> =
                    rules.into_iter().flatten().map(|rule| rule["host"].as_str().unwrap_or("*")).collect();
                hosts.join(",")
            }),
        ],
        ("coordination.k8s.io", "leases") => &[("HOLDER", |lease| text(lease, "/spec/holderIdentity"))],
        _ => return None,
    })
}

fn text(object: &DynamicObject, pointer: &str) -> String {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or("<none>").to_owned()
}

fn number(object: &DynamicObject, pointer: &str) -> String {
    object.data.pointer(pointer).and_then(Value::as_i64).unwrap_or(0).to_string()
}

fn list_len(object: &DynamicObject, pointer: &str) -> usize {
    object.data.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len)
}

fn joined(values: &[&Value]) -> String {
    let text = |value: &&Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    values.iter().map(text).collect::<Vec<_>>().join(",")
}
