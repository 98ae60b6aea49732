//! Algorithms whose run time is compared for two sizes of input.

use serde_json::{Value, json};

use super::assert_linear;
use crate::{
    decode::{self, FieldValidation},
    field::{FieldError, FieldErrorKind},
    kinds::{GroupVersionKind, Registry},
    patch::{Patch, PatchFormat},
    rest::errors,
    schema::TypeRef,
    selector::{FieldSelector, LabelSelector},
    storage::Content,
};

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("k{number:07}"))
}

#[test]
fn a_reply_with_many_field_errors_is_written_in_linear_time() {
    let input = |count| {
        numbered(count)
            .map(|key| {
                FieldError::new(FieldErrorKind::Invalid, format!("data[{key}]"), Some(key.into()), "bad")
            })
            .collect::<Vec<_>>()
    };
    assert_linear("field errors", 10_000, input, |found| errors::invalid_as("ConfigMap", "", "x", found));
}

fn review(count: usize) -> String {
    let twice: Vec<String> =
        numbered(count).map(|key| format!("\"d{key}\":\"1\",\"d{key}\":\"2\"")).collect();
    let unknown: Vec<String> = numbered(count).map(|key| format!("\"u{key}\":1")).collect();
    format!(
        "{{\"metadata\":{{\"name\":\"x\",\"annotations\":{{{}}}}},{}}}",
        twice.join(","),
        unknown.join(",")
    )
}

#[test]
fn duplicate_and_unknown_fields_are_found_in_linear_time() {
    let registry = Registry::new();
    let kinds = registry.kinds();
    let kind = kinds.by_gvk(&GroupVersionKind::new("", "v1", "ConfigMap")).unwrap();
    for validation in [FieldValidation::Strict, FieldValidation::Warn, FieldValidation::Ignore] {
        assert_linear("duplicate and unknown fields", 3_000, review, |body| {
            decode::body(None, body.as_bytes(), kind, &kinds, validation).is_ok()
        });
    }
}

#[test]
fn strategic_merge_of_long_lists_takes_linear_time() {
    let ty = TypeRef::builtin_named("io.k8s.api.core.v1.Pod");
    let pod = |count, image: &str| {
        let containers: Vec<Value> =
            numbered(count).map(|name| json!({"name": name, "image": image})).collect();
        json!({"spec": {"containers": containers}})
    };
    let input = |count| {
        let mut patch = pod(count, "b");
        patch["spec"]["containers"].as_array_mut().unwrap().reverse();
        (pod(count, "a"), Patch::read(PatchFormat::Strategic, patch).unwrap())
    };
    assert_linear("a strategic merge", 2_000, input, |(pod, patch)| patch.apply(pod, &ty).unwrap());
}

#[test]
fn matching_a_selector_of_many_terms_costs_as_much_as_the_labels_of_the_object() {
    let object = json!({"metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}});
    let content = Content::new(&object, Box::default()).unwrap();
    let labels = |count: usize| {
        let terms: Vec<String> =
            numbered(count).flat_map(|key| [format!("!{key}"), format!("a!={key}")]).collect();
        LabelSelector::parse(&terms.join(",")).unwrap()
    };
    let (few, many) = (labels(10), labels(4_000));
    let matches = |selector: &LabelSelector| (0..500).filter(|_| selector.matches(&content)).count();
    assert_eq!((matches(&few), matches(&many)), (500, 500));
    super::assert_no_growth("a label selector", || matches(&few), || matches(&many));

    let fields = |count: usize| {
        let terms: Vec<String> = numbered(count).map(|key| format!("metadata.name!={key}")).collect();
        FieldSelector::parse(&terms.join(",")).unwrap()
    };
    let (few, many) = (fields(10), fields(4_000));
    let matches = |selector: &FieldSelector| (0..500).filter(|_| selector.matches(&content)).count();
    assert_eq!((matches(&few), matches(&many)), (500, 500));
    super::assert_no_growth("a field selector", || matches(&few), || matches(&many));
}

#[test]
fn a_patch_that_moves_items_of_a_long_list_repeatedly_is_rejected() {
    let list: Value = (0..1_000_000).collect();
    let object = json!({"l": list});
    let ty = TypeRef::any();
    for operation in [
        json!({"op": "move", "from": "/l/0", "path": "/l/-"}),
        json!({"op": "add", "path": "/l/0", "value": 1}),
        json!({"op": "remove", "path": "/l/0"}),
    ] {
        let patch =
            |count| Patch::read(PatchFormat::Json, Value::Array(vec![operation.clone(); count])).unwrap();
        let error = patch(2_000).apply(&object, &ty).unwrap_err();
        assert_eq!(
            (error.code, error.message.contains("moves more items")),
            (422, true),
            "{}",
            error.message
        );
        assert!(patch(20).apply(&object, &ty).is_ok());
    }
}

#[test]
fn a_body_reports_at_most_a_hundred_problems() {
    let registry = Registry::new();
    let kinds = registry.kinds();
    let kind = kinds.by_gvk(&GroupVersionKind::new("", "v1", "ConfigMap")).unwrap();
    let body = review(1_000);
    let read = |validation| decode::body(None, body.as_bytes(), kind, &kinds, validation);
    assert_eq!(read(FieldValidation::Warn).unwrap().warnings.len(), 100);
    let error = read(FieldValidation::Strict).unwrap_err();
    assert_eq!(error.message.matches(" field \"").count(), 100);
    // Duplicate fields inside an unknown member are not reported.
    let hidden = numbered(500).map(|key| format!("\"{key}\":1,\"{key}\":2")).collect::<Vec<_>>().join(",");
    let body = format!("{{\"metadata\":{{\"name\":\"x\",\"name\":\"y\"}},\"u\":{{{hidden}}}}}");
    let read = decode::body(None, body.as_bytes(), kind, &kinds, FieldValidation::Warn).unwrap();
    assert_eq!(read.warnings, ["duplicate field \"metadata.name\"", "unknown field \"u\""]);
}

#[test]
fn a_reply_describes_a_bounded_number_of_field_errors() {
    let errors: Vec<_> = numbered(5_000)
        .map(|key| FieldError::new(FieldErrorKind::Invalid, key, Some("v".repeat(20_000).into()), "bad"))
        .collect();
    let error = errors::invalid_as("ConfigMap", "", "x", &errors);
    let status = error.to_status().to_string();
    assert!(status.len() < 2 * 1024 * 1024, "{} bytes", status.len());
    let errors: Vec<_> = numbered(5_000)
        .map(|key| FieldError::new(FieldErrorKind::Invalid, key, Some(1.into()), "bad"))
        .collect();
    let error = errors::invalid_as("ConfigMap", "", "x", &errors);
    assert_eq!(error.details.unwrap().causes.len(), 1_000);
    assert!(
        error.message.ends_with("... (4000 more errors)]"),
        "{}",
        &error.message[error.message.len() - 100..]
    );
}
