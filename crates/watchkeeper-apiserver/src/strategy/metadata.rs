//! Validation of the metadata of all objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    cursor::{Cursor, Errors},
    names::{self, NameRule},
};
use crate::field::{FieldError, FieldErrorKind};

/// The maximum size of all annotations of an object, keys and values, in bytes.
const ANNOTATIONS_SIZE: usize = 256 * 1024;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Validates the metadata of a new object.
pub(crate) fn validate_create(
    object: &Cursor<'_>,
    names: NameRule,
    is_namespaced: bool,
    errors: &mut Errors,
) {
    let metadata = object.at("metadata");
    let (name, prefix) = (metadata.at("name"), metadata.at("generateName"));
    if !prefix.is_empty() {
        errors.extend(names.check(prefix.text(), true).into_iter().map(|detail| prefix.invalid(detail)));
    }
    if name.is_empty() {
        errors.push(name.missing("name or generateName is required"));
    } else {
        errors.extend(names.check(name.text(), false).into_iter().map(|detail| name.invalid(detail)));
    }
    let namespace = metadata.at("namespace");
    if is_namespaced {
        namespace.required_format(names::dns_label, errors);
    } else if !namespace.is_empty() {
        errors.push(namespace.forbidden("not allowed on this type"));
    }
    validate(&metadata, errors);
    finalizers(&metadata.at("finalizers"), errors);
}

/// Validates changed metadata.
pub(crate) fn validate_update(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, old) = (object.at("metadata"), old.at("metadata"));
    if old.at("deletionTimestamp").is_set() {
        no_new_finalizers(&metadata.at("finalizers"), &old.at("finalizers"), errors);
    }
    let generation = metadata.at("generation");
    if generation.int().unwrap_or(0) < old.at("generation").int().unwrap_or(0) {
        errors.push(generation.invalid("must not be decremented"));
    }
    let constant =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for member in constant {
        metadata.at(member).immutable(&old.at(member), errors);
    }
    validate(&metadata, errors);
    finalizers(&metadata.at("finalizers"), errors);
}

/// Removes the namespace of a cluster-scoped object.
pub(crate) fn clear_namespace(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("namespace");
    }
}

fn validate(metadata: &Cursor<'_>, errors: &mut Errors) {
    metadata.at("generation").at_least(0, errors);
    labels(&metadata.at("labels"), errors);
    annotations(&metadata.at("annotations"), errors);
    owners(&metadata.at("ownerReferences"), errors);
}

/// Checks labels: qualified names with short values. Errors show the key or value under the path of the map.
pub(crate) fn labels(labels: &Cursor<'_>, errors: &mut Errors) {
    for (name, value) in labels.entries() {
        errors.extend(names::qualified(name).into_iter().map(|detail| invalid(labels, name, detail)));
        let text = value.text();
        errors.extend(names::label_value(text).into_iter().map(|detail| invalid(labels, text, detail)));
    }
}

/// Checks annotations: qualified names in any case, and a limited total size.
pub(crate) fn annotations(annotations: &Cursor<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (name, value) in annotations.entries() {
        size += name.len() + value.text().len();
        let wrong = names::qualified(&name.to_lowercase());
        errors.extend(wrong.into_iter().map(|detail| invalid(annotations, name, detail)));
    }
    if size > ANNOTATIONS_SIZE {
        errors.push(too_long(annotations, ANNOTATIONS_SIZE));
    }
}

/// Checks the metadata of a template for objects that get their names later: labels and annotations, and nothing else.
pub(crate) fn of_template(metadata: &Cursor<'_>, errors: &mut Errors) {
    annotations(&metadata.at("annotations"), errors);
    labels(&metadata.at("labels"), errors);
    let members = metadata.value.as_object().into_iter().flatten();
    for (name, _) in members.filter(|(name, _)| !matches!(name.as_str(), "labels" | "annotations")) {
        if !metadata.at(name).is_empty() {
            errors.push(metadata.at(name).forbidden("cannot be set"));
        }
    }
}

/// The text or the map here is longer than `length`.
pub(crate) fn too_long(at: &Cursor<'_>, length: usize) -> FieldError {
    let detail = format!("may not be more than {length} bytes");
    FieldError::new(FieldErrorKind::TooLong, at.path(), None, detail)
}

fn invalid(at: &Cursor<'_>, shown: &str, detail: String) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, at.path(), Some(shown.into()), detail)
}

fn owners(owners: &Cursor<'_>, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        let version = owner.at("apiVersion");
        if version.is_empty() {
            errors.push(version.missing("must not be empty"));
        } else if version.text().matches('/').count() > 1 || version.text().ends_with('/') {
            errors.push(version.invalid("must be <group>/<version> or <version>"));
        }
        for member in ["kind", "name", "uid"] {
            let member = owner.at(member);
            if member.is_empty() {
                errors.push(member.missing("must not be empty"));
            }
        }
        if version.text() == "v1" && owner.at("kind").text() == "Event" {
            errors.push(owner.invalid("/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner.at("controller").is_true() {
            let this = format!("{}/{}", owner.at("kind").text(), owner.at("name").text());
            match &controller {
                Some(first) => errors.push(owners.invalid(format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                ))),
                None => controller = Some(this),
            }
        }
    }
}

fn finalizers(finalizers: &Cursor<'_>, errors: &mut Errors) {
    let mut policies = BTreeSet::new();
    for finalizer in finalizers.items() {
        let name = finalizer.text();
        errors.extend(names::qualified(name).into_iter().map(|detail| invalid(finalizers, name, detail)));
        if matches!(name, ORPHAN | FOREGROUND) {
            policies.insert(name.to_owned());
        }
    }
    if policies.len() > 1 {
        errors.push(finalizers.invalid(format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set")));
    }
}

fn no_new_finalizers(finalizers: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let known: BTreeSet<&str> =
        old.value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let new: BTreeSet<&str> =
        finalizers.value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let extra: Vec<&&str> = new.difference(&known).collect();
    if !extra.is_empty() {
        errors.push(finalizers.forbidden(format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers {extra:?}"
        )));
    }
}

/// Checks a label selector (`matchLabels` and `matchExpressions`).
pub(crate) fn label_selector(selector: &Cursor<'_>, errors: &mut Errors) {
    labels(&selector.at("matchLabels"), errors);
    for requirement in selector.at("matchExpressions").items() {
        let values = requirement.at("values");
        match requirement.at("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(values.missing("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => errors
                .push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(requirement.at("operator").invalid("not a valid selector operator")),
        }
        let key = requirement.at("key");
        errors.extend(names::qualified(key.text()).into_iter().map(|detail| key.invalid(detail)));
        for value in values.items() {
            errors.extend(names::label_value(value.text()).into_iter().map(|detail| value.invalid(detail)));
        }
    }
}

/// Returns whether a label selector matches an object with these labels. An empty selector matches everything.
pub(crate) fn selects(selector: &Cursor<'_>, labels: &Cursor<'_>) -> bool {
    let has = |name: &str, expected: &dyn Fn(Option<&str>) -> bool| {
        expected(labels.value.get(name).and_then(Value::as_str))
    };
    let all_labels = selector
        .at("matchLabels")
        .entries()
        .all(|(name, value)| has(name, &|given| given == Some(value.text())));
    all_labels
        && selector.at("matchExpressions").items().all(|requirement| {
            let values = requirement.at("values");
            let is_listed = |given: Option<&str>| {
                given.is_some_and(|given| values.items().any(|value| value.text() == given))
            };
            has(requirement.at("key").text(), &|given| match requirement.at("operator").text() {
                "In" => is_listed(given),
                "NotIn" => !is_listed(given),
                "Exists" => given.is_some(),
                _ => given.is_none(),
            })
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::names::NameRule, Cursor, selects, validate_create, validate_update};

    fn created(metadata: &Value) -> Vec<(String, &'static str)> {
        let object = json!({"metadata": metadata});
        let mut errors = Vec::new();
        validate_create(&Cursor::root(&object), NameRule::Subdomain, true, &mut errors);
        errors.into_iter().map(|error| (error.path, error.kind.reason())).collect()
    }

    #[test]
    fn metadata_of_a_new_object_is_validated_field_by_field() {
        let at = |path: &str, reason| vec![(path.to_owned(), reason)];
        let base = |extra: Value| {
            let mut metadata = json!({"name": "a", "namespace": "n"});
            for (name, value) in extra.as_object().unwrap() {
                metadata[name] = value.clone();
            }
            metadata
        };
        let owner = |extra: Value| json!({"ownerReferences": [extra]});
        let table = [
            (base(json!({})), Vec::new()),
            (base(json!({"name": ""})), at("metadata.name", "FieldValueRequired")),
            (base(json!({"name": "A_b"})), at("metadata.name", "FieldValueInvalid")),
            (base(json!({"generateName": "A"})), at("metadata.generateName", "FieldValueInvalid")),
            (base(json!({"namespace": ""})), at("metadata.namespace", "FieldValueRequired")),
            (base(json!({"labels": {"a b": "c"}})), at("metadata.labels", "FieldValueInvalid")),
            (base(json!({"labels": {"a": "c d"}})), at("metadata.labels", "FieldValueInvalid")),
            (base(json!({"annotations": {"A/B": "any text"}})), Vec::new()),
            (
                base(json!({"annotations": {"a": "x".repeat(262_144)}})),
                at("metadata.annotations", "FieldValueTooLong"),
            ),
            (base(json!({"finalizers": ["no good"]})), at("metadata.finalizers", "FieldValueInvalid")),
            (
                base(json!({"finalizers": ["orphan", "foregroundDeletion"]})),
                at("metadata.finalizers", "FieldValueInvalid"),
            ),
            (
                base(owner(json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}))),
                at("metadata.ownerReferences[0].uid", "FieldValueRequired"),
            ),
            (
                base(owner(json!({"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}))),
                at("metadata.ownerReferences[0]", "FieldValueInvalid"),
            ),
        ];
        for (metadata, expected) in table {
            assert_eq!(created(&metadata), expected, "{metadata}");
        }
    }

    #[test]
    fn an_object_that_is_being_deleted_takes_no_new_finalizers() {
        let old = json!({"metadata": {"name": "a", "deletionTimestamp": "t", "finalizers": ["x/a", "x/b"]}});
        let fewer = json!({"metadata": {"name": "a", "deletionTimestamp": "t", "finalizers": ["x/b"]}});
        let more = json!({"metadata": {"name": "a", "deletionTimestamp": "t", "finalizers": ["x/b", "x/c"]}});
        let mut errors = Vec::new();
        validate_update(&Cursor::root(&fewer), &Cursor::root(&old), &mut errors);
        assert_eq!(errors, []);
        validate_update(&Cursor::root(&more), &Cursor::root(&old), &mut errors);
        assert_eq!(errors[0].path, "metadata.finalizers");
    }

    #[test]
    fn a_label_selector_matches_labels_and_expressions() {
        let labels = json!({"a": "1", "b": "2"});
        let table = [
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "3"]}]}), true),
            (json!({"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["1"]}]}), true),
            (json!({"matchExpressions": [{"key": "c", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}), false),
        ];
        for (selector, expected) in table {
            assert_eq!(selects(&Cursor::root(&selector), &Cursor::root(&labels)), expected, "{selector}");
        }
    }
}
