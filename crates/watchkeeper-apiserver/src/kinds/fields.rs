//! The field labels that field selectors may use, by kind, and the source of their values.

use serde_json::Value;

use super::Kind;

/// The source of the value of a field label.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// A string; empty if absent.
    Text,
    /// A boolean; false if absent.
    Flag,
    /// A number; 0 if absent.
    Count,
    /// Another label, of the kind that the object is stored as.
    Stored(&'static str),
    /// A label that is accepted and never has a value.
    Never,
}

/// A field label with the source and the path of its value. The path usually equals the label.
type Label = (&'static str, Source, &'static str);

const fn text(label: &'static str) -> Label {
    (label, Source::Text, label)
}

const fn stored(label: &'static str, as_label: &'static str) -> Label {
    (label, Source::Stored(as_label), label)
}

const PODS: &[Label] = &[
    text("metadata.namespace"),
    text("spec.nodeName"),
    text("spec.restartPolicy"),
    text("spec.schedulerName"),
    text("spec.serviceAccountName"),
    ("spec.hostNetwork", Source::Flag, "spec.hostNetwork"),
    text("status.phase"),
    ("status.podIP", Source::Text, "status.podIPs.0.ip"),
    ("status.podIPs", Source::Never, ""),
    text("status.nominatedNodeName"),
    // The name of the field in the first API versions.
    stored("spec.host", "spec.nodeName"),
];

const EVENTS: &[Label] = &[
    text("metadata.namespace"),
    text("involvedObject.kind"),
    text("involvedObject.namespace"),
    text("involvedObject.name"),
    text("involvedObject.uid"),
    text("involvedObject.apiVersion"),
    text("involvedObject.resourceVersion"),
    text("involvedObject.fieldPath"),
    text("reason"),
    text("reportingComponent"),
    ("source", Source::Text, "source.component|reportingComponent"),
    text("type"),
];

/// The labels of `events.k8s.io`. Its events are stored as core events, and selected by the stored fields.
const NEWER_EVENTS: &[Label] = &[
    text("metadata.namespace"),
    text("reason"),
    text("type"),
    stored("regarding.kind", "involvedObject.kind"),
    stored("regarding.namespace", "involvedObject.namespace"),
    stored("regarding.name", "involvedObject.name"),
    stored("regarding.uid", "involvedObject.uid"),
    stored("regarding.apiVersion", "involvedObject.apiVersion"),
    stored("regarding.resourceVersion", "involvedObject.resourceVersion"),
    stored("regarding.fieldPath", "involvedObject.fieldPath"),
    stored("reportingController", "reportingComponent"),
];

/// The kinds with specific labels, or without the label for the namespace.
const KINDS: [(&str, &str, &[Label]); 13] = [
    ("", "events", EVENTS),
    ("", "namespaces", &[text("status.phase")]),
    ("", "nodes", &[("spec.unschedulable", Source::Flag, "spec.unschedulable")]),
    ("", "pods", PODS),
    (
        "",
        "replicationcontrollers",
        &[text("metadata.namespace"), ("status.replicas", Source::Count, "status.replicas")],
    ),
    ("", "secrets", &[text("metadata.namespace"), text("type")]),
    ("", "services", &[text("metadata.namespace"), text("spec.clusterIP"), text("spec.type")]),
    ("events.k8s.io", "events", NEWER_EVENTS),
    (
        "batch",
        "jobs",
        &[text("metadata.namespace"), ("status.successful", Source::Count, "status.succeeded")],
    ),
    ("certificates.k8s.io", "certificatesigningrequests", &[text("spec.signerName")]),
    ("certificates.k8s.io", "clustertrustbundles", &[text("spec.signerName")]),
    (
        "certificates.k8s.io",
        "podcertificaterequests",
        &[text("metadata.namespace"), text("spec.nodeName"), text("spec.signerName")],
    ),
    ("resource.k8s.io", "resourceslices", &[text("spec.nodeName"), text("spec.driver")]),
];

impl Kind {
    /// Returns the stored label for the `label` of a field selector.
    ///
    /// # Errors
    /// The message for a 400 if selectors of this kind do not support the label.
    pub(crate) fn field_label(&self, label: &str) -> Result<String, String> {
        if label == "metadata.name" {
            return Ok(label.to_owned());
        }
        if let Some(custom) = &self.custom {
            let is_known = (label == "metadata.namespace" && self.is_namespaced)
                || custom.selectable_fields.iter().any(|path| path.trim_start_matches('.') == label);
            return if is_known { Ok(label.to_owned()) } else { Err(not_supported(label)) };
        }
        match self.labels() {
            Some(labels) => match labels.iter().find(|(known, ..)| *known == label) {
                Some((_, Source::Stored(stored), _)) => Ok((*stored).to_owned()),
                Some(_) => Ok(label.to_owned()),
                None => Err(not_supported(label)),
            },
            None if label == "metadata.namespace" => Ok(label.to_owned()),
            None => Err(format!(
                "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )),
        }
    }

    /// Returns the values of the selectable labels, besides name and namespace.
    pub(crate) fn selectable_fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        if let Some(custom) = &self.custom {
            let label = |path: &String| {
                let label = path.trim_start_matches('.');
                (label.into(), shown(find(object, label)).into())
            };
            return custom.selectable_fields.iter().map(label).collect();
        }
        let Some(labels) = self.labels() else { return Vec::new() };
        let values = labels.iter().filter(|(label, ..)| *label != "metadata.namespace").filter_map(
            |(label, source, paths)| {
                let value =
                    paths.split('|').map(|path| shown(find(object, path))).find(|value| !value.is_empty());
                let value = match source {
                    Source::Text => value.unwrap_or_default(),
                    Source::Flag => value.unwrap_or_else(|| "false".to_owned()),
                    Source::Count => value.unwrap_or_else(|| "0".to_owned()),
                    Source::Stored(_) | Source::Never => return None,
                };
                Some(((*label).into(), value.into()))
            },
        );
        values.collect()
    }

    fn labels(&self) -> Option<&'static [Label]> {
        let found =
            KINDS.iter().find(|(group, plural, _)| *group == self.gvk.group && *plural == self.plural);
        found.map(|(_, _, labels)| *labels)
    }
}

fn not_supported(label: &str) -> String {
    format!("field label not supported: {label}")
}

fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::kinds::{Custom, Registry};

    fn kind(group: &str, plural: &str) -> Arc<Kind> {
        Arc::clone(Registry::new().kinds().by_path(group, "v1", plural).unwrap())
    }

    #[test]
    fn every_kind_of_the_table_is_served() {
        for (group, plural, labels) in KINDS {
            let kind = kind(group, plural);
            for (label, ..) in labels {
                assert!(kind.field_label(label).is_ok());
            }
            let names_namespace = labels.iter().any(|(label, ..)| *label == "metadata.namespace");
            assert_eq!(names_namespace, kind.is_namespaced, "{plural}");
        }
    }

    #[test]
    fn pod_field_selectors_match_spec_and_status_fields() {
        let pods = kind("", "pods");
        let pod = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]}});
        let fields = pods.selectable_fields(&pod);
        let value =
            |label: &str| fields.iter().find(|(known, _)| **known == *label).map(|(_, value)| &**value);
        assert_eq!(value("spec.nodeName"), Some("n"));
        assert_eq!(value("spec.hostNetwork"), Some("false"));
        assert_eq!(value("status.podIP"), Some("10.0.0.1"));
        assert_eq!(value("spec.restartPolicy"), Some(""));
        assert_eq!(
            pods.field_label("spec.containers").unwrap_err(),
            "field label not supported: spec.containers"
        );
    }

    #[test]
    fn events_k8s_io_events_are_selected_by_their_stored_fields() {
        assert_eq!(
            kind("events.k8s.io", "events").field_label("regarding.name").unwrap(),
            "involvedObject.name"
        );
        assert!(kind("", "events").field_label("regarding.name").is_err());
    }

    #[test]
    fn kinds_without_declared_field_labels_support_name_and_namespace() {
        let maps = kind("", "configmaps");
        assert!(maps.field_label("metadata.namespace").is_ok());
        assert_eq!(
            maps.field_label("spec.nodeName").unwrap_err(),
            "\"spec.nodeName\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
        assert!(maps.selectable_fields(&json!({})).is_empty());
    }

    #[test]
    fn a_custom_kind_supports_its_declared_selectable_fields() {
        let custom = Custom { selectable_fields: vec![".spec.on".into()], ..Custom::default() };
        let kind = Kind { custom: Some(Arc::new(custom)), ..Kind::clone(&kind("", "configmaps")) };
        assert_eq!(
            kind.selectable_fields(&json!({"spec": {"on": true}})),
            [("spec.on".into(), "true".into())]
        );
        assert_eq!(kind.selectable_fields(&json!({})), [("spec.on".into(), "".into())]);
        assert!(kind.field_label("spec.off").is_err());
    }
}
