//! The table cells of objects of built-in kinds.

mod cluster;
mod network;
mod pod;
mod storage;
mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::kinds::Kind;

/// Returns the cells of an object. `default_name` is the name of the default object of the list, such as the default storage
/// class.
pub(super) fn cells(kind: &Kind, object: &Value, now: Timestamp, default_name: Option<&str>) -> Vec<Value> {
    let row = RowContext { object, now };
    let (group, plural) = (kind.gvk.group.as_str(), kind.plural.as_str());
    workload::cells(group, plural, &row)
        .or_else(|| network::cells(group, plural, &row))
        .or_else(|| storage::cells(group, plural, &row, default_name))
        .or_else(|| cluster::cells(group, plural, &row))
        .unwrap_or_else(|| vec![row.name(), row.created_at()])
}

/// Returns the cells of a scale.
pub(super) fn scale(object: &Value, now: Timestamp) -> Vec<Value> {
    let row = RowContext { object, now };
    vec![row.name(), row.int("spec.replicas").into(), row.int("status.replicas").into(), row.age()]
}

/// Returns the row conditions, which let clients hide completed pods.
pub(super) fn conditions(kind: &Kind, object: &Value) -> Option<Value> {
    if !kind.gvk.group.is_empty() || kind.plural != "pods" {
        return None;
    }
    let (reason, message) = match object["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// Returns the storage class among `objects` that applies to claims without a class: the newest of those marked as default.
pub(super) fn default_name<'a>(kind: &Kind, objects: &'a [Value]) -> Option<&'a str> {
    // A single object is not compared with others, and not marked.
    if kind.plural != "storageclasses" || objects.len() < 2 {
        return None;
    }
    let marked = objects.iter().filter(|object| {
        let annotations = &object["metadata"]["annotations"];
        annotations["storageclass.kubernetes.io/is-default-class"] == "true"
            || annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
    });
    let created =
        |object: &Value| object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
    let name = |object: &'a Value| object["metadata"]["name"].as_str().unwrap_or_default();
    marked
        .max_by(|one, other| created(one).cmp(&created(other)).then_with(|| name(other).cmp(name(one))))
        .map(name)
}

/// An object and the time of the request.
struct RowContext<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl<'a> RowContext<'a> {
    /// Returns the value at a path of members.
    fn at(&self, path: &str) -> &'a Value {
        at(self.object, path)
    }

    /// Returns a string; empty if absent.
    fn text(&self, path: &str) -> &'a str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// Returns a string, or `absent`.
    fn or(&self, path: &str, absent: &str) -> Value {
        let text = self.text(path);
        if text.is_empty() { absent.into() } else { text.into() }
    }

    /// Returns an integer; 0 if absent.
    fn int(&self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    /// Returns the number of items or members.
    fn count(&self, path: &str) -> usize {
        count(self.at(path))
    }

    fn list(&self, path: &str) -> &'a [Value] {
        self.at(path).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn name(&self) -> Value {
        self.text("metadata.name").into()
    }

    fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    /// Returns the creation time, not the age.
    fn created_at(&self) -> Value {
        self.or("metadata.creationTimestamp", "0001-01-01T00:00:00Z")
    }

    fn since(&self, path: &str) -> String {
        age::since(self.at(path).as_str(), self.now)
    }

    fn is_deleting(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_string()
    }

    /// Returns the status of the condition of this type, if present.
    fn condition(&self, ty: &str) -> Option<&'a Value> {
        self.list("status.conditions").iter().find(|condition| condition["type"] == ty)
    }

    fn is_condition_true(&self, ty: &str) -> bool {
        self.condition(ty).is_some_and(|condition| condition["status"] == "True")
    }

    /// Returns the names and the images of the containers in the list at `path`.
    fn containers(&self, path: &str) -> [Value; 2] {
        let all =
            |member: &str| joined(self.list(path).iter().map(|container| at(container, member)), ",").into();
        [all("name"), all("image")]
    }

    /// Formats a label selector.
    fn selector(&self, path: &str) -> Value {
        none_if_empty(selector(self.at(path)))
    }

    /// Formats labels as a list.
    fn labels(&self, path: &str) -> Value {
        none_if_empty(labels(self.at(path)))
    }
}

fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, member| value.get(member).unwrap_or(&Value::Null))
}

fn count(value: &Value) -> usize {
    value.as_array().map(Vec::len).or_else(|| value.as_object().map(serde_json::Map::len)).unwrap_or(0)
}

fn none_if_empty(text: String) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

fn joined<'a>(values: impl Iterator<Item = &'a Value>, separator: &str) -> String {
    values.map(|value| value.as_str().unwrap_or_default()).collect::<Vec<_>>().join(separator)
}

fn labels(value: &Value) -> String {
    let mut pairs: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    pairs.join(",")
}

fn selector(value: &Value) -> String {
    let mut terms: Vec<(String, String)> = value["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in value["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        terms.push((
            key.to_owned(),
            match expression["operator"].as_str().unwrap_or_default() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            },
        ));
    }
    terms.sort_by(|one, other| one.0.cmp(&other.0));
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

/// Returns the first items of a list, and the number of further items.
fn first_few(all: &[String], limit: usize, separator: &str) -> String {
    let row = all.get(..limit.min(all.len())).unwrap_or_default().join(separator);
    if all.len() > limit { format!("{row} + {} more...", all.len() - limit) } else { row }
}
