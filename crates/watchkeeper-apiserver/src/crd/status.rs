//! The status of a definition: accepted names, and whether its kinds are served.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::strategy::edit;

/// The finalizer that keeps a definition until all its objects are deleted.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Updates the status of a stored definition after a write: the names that are accepted beside the `others` of the server,
/// and whether it is established. Returns whether anything changed. `now` is an RFC 3339 time.
///
/// A definition that is being deleted keeps its status.
pub(crate) fn status_after_write<'a>(
    definition: &mut Value,
    others: impl IntoIterator<Item = &'a Value>,
    now: &str,
) -> bool {
    if definition.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return false;
    }
    let before = definition.get("status").cloned();
    let names = names(definition, others);
    let is_accepted = names.conflict.is_none();
    let was_established = is_true(definition, "Established");
    let (reason, message) = match &names.conflict {
        Some((reason, message)) => (*reason, message.clone()),
        None => ("NoConflicts", "no conflicts found".to_owned()),
    };
    if let Some(status) = edit::object(definition, "status") {
        status.insert("acceptedNames".to_owned(), names.accepted);
    }
    set_condition(definition, "NamesAccepted", is_accepted, reason, &message, now);
    if is_accepted && !was_established {
        set_condition(
            definition,
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
            now,
        );
    } else if !is_accepted && !was_established {
        set_condition(definition, "Established", false, "NotAccepted", "not all names are accepted", now);
    }
    definition.get("status") != before.as_ref()
}

/// Marks a definition as being deleted: sets its deletionTimestamp, its finalizer and its condition. Has no effect on a
/// definition that is already marked.
pub(crate) fn begin_deletion(definition: &mut Value, now: &str) {
    let Some(metadata) = edit::object(definition, "metadata") else { return };
    if metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return;
    }
    metadata.insert("deletionTimestamp".to_owned(), now.into());
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|name| name == CLEANUP_FINALIZER)
    {
        finalizers.push(CLEANUP_FINALIZER.into());
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(definition, "Terminating", true, "InstanceDeletionPending", message, now);
}

/// Returns whether the kinds of a definition are served.
pub(crate) fn is_established(definition: &Value) -> bool {
    is_true(definition, "Established")
}

fn is_true(definition: &Value, kind: &str) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some(kind)
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

fn set_condition(definition: &mut Value, kind: &str, is_true: bool, reason: &str, message: &str, now: &str) {
    let Some(status) = edit::object(definition, "status") else { return };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let value = if is_true { "True" } else { "False" };
    let known =
        conditions.iter_mut().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind));
    match known {
        Some(condition) => {
            // The transition time changes with the status, not with the reason.
            if condition.get("status").and_then(Value::as_str) != Some(value) {
                condition["lastTransitionTime"] = now.into();
            }
            condition["status"] = value.into();
            condition["reason"] = reason.into();
            condition["message"] = message.into();
        }
        None => conditions.push(json!({
            "type": kind, "status": value, "lastTransitionTime": now, "reason": reason, "message": message,
        })),
    }
}

struct Names {
    accepted: Value,
    conflict: Option<(&'static str, String)>,
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => vec![text.clone()],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Accepts each name unless another definition of the group has it. The last conflict is reported.
fn names<'a>(definition: &Value, others: impl IntoIterator<Item = &'a Value>) -> Names {
    let group = definition.pointer("/spec/group");
    let name = definition.pointer("/metadata/name");
    let (mut resources, mut kinds) = (HashSet::new(), HashSet::new());
    for other in others {
        if other.pointer("/spec/group") != group || other.pointer("/metadata/name") == name {
            continue;
        }
        let Some(names) = other.pointer("/status/acceptedNames") else { continue };
        resources.extend(
            ["plural", "singular", "shortNames"].into_iter().flat_map(|member| texts(names.get(member))),
        );
        kinds.extend(["kind", "listKind"].into_iter().flat_map(|member| texts(names.get(member))));
    }
    let expected = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let mut accepted = definition.pointer("/status/acceptedNames").cloned().unwrap_or_else(|| json!({}));
    let mut conflict = None;
    let table = [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("shortNames", &resources, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ];
    for (member, taken, reason) in table {
        let mut clashes = texts(expected.get(member)).into_iter().filter(|name| taken.contains(name));
        match clashes.next() {
            Some(name) => conflict = Some((reason, format!("{name:?} is already in use"))),
            None => edit::take_from(&mut accepted, &expected, member),
        }
    }
    edit::take_from(&mut accepted, &expected, "categories");
    Names { accepted, conflict }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{begin_deletion, is_established, status_after_write};

    fn definition(plural: &str, kind: &str, short: &[&str]) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.g.example.com")},
            "spec": {"group": "g.example.com", "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"), "shortNames": short}},
            "status": {"acceptedNames": {"plural": "", "kind": ""}, "conditions": null, "storedVersions": ["v1"]},
        })
    }

    #[test]
    fn unused_names_are_accepted_and_the_definition_is_established() {
        let mut foos = definition("foos", "Foo", &["f"]);
        assert!(status_after_write(&mut foos, [], "2020-01-01T00:00:00Z"));
        assert_eq!(foos["status"]["acceptedNames"], foos["spec"]["names"]);
        assert!(is_established(&foos));
        assert!(!status_after_write(&mut foos, [], "2021-01-01T00:00:00Z"));
    }

    #[test]
    fn a_name_of_another_definition_is_rejected_until_it_is_released() {
        let mut foos = definition("foos", "Foo", &["f"]);
        status_after_write(&mut foos, [], "2020-01-01T00:00:00Z");
        let mut bars = definition("bars", "Bar", &["f"]);
        status_after_write(&mut bars, [&foos], "2020-01-01T00:00:00Z");
        assert!(!is_established(&bars));
        assert_eq!(bars["status"]["conditions"][0]["reason"], "ShortNamesConflict");
        assert_eq!(bars["status"]["acceptedNames"]["plural"], "bars");
        assert!(bars["status"]["acceptedNames"].get("shortNames").is_none());
        assert!(status_after_write(&mut bars, [], "2020-01-01T00:00:00Z"));
        assert!(is_established(&bars));
    }

    #[test]
    fn beginning_a_deletion_twice_changes_nothing() {
        let mut foos = definition("foos", "Foo", &[]);
        begin_deletion(&mut foos, "2020-01-01T00:00:00Z");
        let once = foos.clone();
        begin_deletion(&mut foos, "2021-01-01T00:00:00Z");
        assert_eq!(foos, once);
        assert!(!status_after_write(&mut foos, [], "2021-01-01T00:00:00Z"));
    }
}
