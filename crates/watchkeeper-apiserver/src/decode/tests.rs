use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kinds::Registry;

fn kind(group: &str, plural: &str) -> std::sync::Arc<Kind> {
    std::sync::Arc::clone(Registry::new().kinds().by_path(group, "v1", plural).unwrap())
}

fn body(
    content_type: Option<&str>,
    body: &[u8],
    kind: &Kind,
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    super::body(content_type, body, kind, &Registry::new().kinds(), validation)
}

fn read(content_type: &str, text: &str, validation: FieldValidation) -> Result<Decoded, ApiError> {
    body(Some(content_type), text.as_bytes(), &kind("", "configmaps"), validation)
}

fn json_body(text: &str, validation: FieldValidation) -> Result<Decoded, ApiError> {
    read("application/json; charset=utf-8", text, validation)
}

#[test]
fn kind_and_version_are_filled_in_from_the_path() {
    let decoded =
        json_body(r#"{"metadata": {"name": "a"}, "data": {"k": null}}"#, FieldValidation::Strict).unwrap();
    assert_eq!(
        decoded.object,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": ""}})
    );
}

#[test]
fn unknown_fields_are_dropped_and_reported() {
    let text = r#"{"metadata": {"name": "a", "nosuch": 1}, "dta": {"a": 1, "a": 2}}"#;
    let decoded = json_body(text, FieldValidation::Warn).unwrap();
    assert_eq!(decoded.object["metadata"], json!({"name": "a"}));
    let mut warnings = decoded.warnings;
    warnings.sort();
    assert_eq!(warnings, [r#"unknown field "dta""#, r#"unknown field "metadata.nosuch""#]);
    assert_eq!(json_body(text, FieldValidation::Ignore).unwrap().warnings, [""; 0]);
}

#[test]
fn strict_validation_rejects_unknown_and_duplicate_fields() {
    let text = r#"{"metadata": {"name": "a"}, "data": {"k": "1", "k": "2"}}"#;
    let error = json_body(text, FieldValidation::Strict).unwrap_err();
    assert_eq!((error.code, error.reason), (400, "BadRequest"));
    assert_eq!(
        error.message,
        r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.k""#
    );
}

#[test]
fn the_last_duplicate_value_is_used() {
    let text = r#"{"data": {"k": "1"}, "data": {"k": "2"}}"#;
    let decoded = json_body(text, FieldValidation::Warn).unwrap();
    assert_eq!(decoded.object["data"], json!({"k": "2"}));
    assert_eq!(decoded.warnings, [r#"duplicate field "data""#]);
}

#[test]
fn paths_of_list_items_contain_their_index() {
    let text = br#"{"spec": {"replcas": 1, "template": {"spec": {"containers": [{"name": "c"}, {"imagee": "x"}]}}}}"#;
    let decoded = body(None, text, &kind("apps", "deployments"), FieldValidation::Warn).unwrap();
    let mut warnings = decoded.warnings;
    warnings.sort();
    assert_eq!(
        warnings,
        [r#"unknown field "spec.replcas""#, r#"unknown field "spec.template.spec.containers[1].imagee""#]
    );
}

#[test]
fn bodies_of_another_kind_or_shape_are_rejected() {
    let refused = [
        ("application/json", ""),
        ("application/json", "{\"apiVersion\": \"v1\","),
        ("application/json", "[]"),
        ("application/json", "{\"kind\": 1}"),
        ("application/json", "{\"data\": {\"k\": 1}}"),
        ("application/json", "{\"data\": []}"),
        ("application/json", "{\"metadata\": {\"creationTimestamp\": \"soon\"}}"),
        ("application/json", "{\"binaryData\": {\"k\": \"%\"}}"),
        ("application/json", "{\"kind\": \"Secret\", \"apiVersion\": \"v1\"}"),
        ("application/json", "{\"kind\": \"ConfigMap\", \"apiVersion\": \"apps/v1\"}"),
        ("application/yaml", "a: [1"),
        ("application/yaml", "- 1"),
        ("application/vnd.kubernetes.protobuf", "junk"),
        ("application/vnd.kubernetes.protobuf", "k8s\0\u{7f}\u{7f}"),
    ];
    for (content_type, text) in refused {
        let error = read(content_type, text, FieldValidation::Ignore).unwrap_err();
        assert_eq!((error.code, error.reason), (400, "BadRequest"), "{content_type} {text}");
    }
    assert_eq!(read("text/plain", "{}", FieldValidation::Ignore).unwrap_err().code, 415);
}

#[test]
fn yaml_bodies_decode_like_json_bodies() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-yaml\ndata:\n  a: '1'\n  b: two\n";
    let decoded = read("application/yaml", text, FieldValidation::Strict).unwrap();
    assert_eq!(decoded.object["data"], json!({"a": "1", "b": "two"}));
    let twice = "data:\n  a: '1'\n  a: '2'\n";
    assert_eq!(read("application/yaml", twice, FieldValidation::Strict).unwrap_err().code, 400);
    let last = read("application/yaml", twice, FieldValidation::Warn).unwrap();
    assert_eq!((&last.object["data"], last.warnings.len()), (&json!({"a": "2"}), 1));
}

#[test]
fn times_are_normalized_to_the_format_of_the_server() {
    let text = br#"{"metadata": {"creationTimestamp": "2020-01-01T02:00:00.5+02:00"},
        "spec": {"renewTime": "2020-01-01T00:00:00.000001Z", "acquireTime": null}}"#;
    let lease =
        body(None, text, &kind("coordination.k8s.io", "leases"), FieldValidation::Strict).unwrap().object;
    assert_eq!(lease["metadata"]["creationTimestamp"], "2020-01-01T00:00:00Z");
    assert_eq!(lease["spec"], json!({"renewTime": "2020-01-01T00:00:00.000001Z"}));
    let coarse = br#"{"spec": {"renewTime": "2020-01-01T00:00:00Z"}}"#;
    let error =
        body(None, coarse, &kind("coordination.k8s.io", "leases"), FieldValidation::Ignore).unwrap_err();
    assert_eq!(error.code, 400);
}

#[test]
fn protobuf_bodies_are_decoded() {
    let sent = STANDARD
        .decode("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEh4KDAoCcGJaBgoBbBIBMRIGCgFhEgExEgYKAWISATIaACIA")
        .unwrap();
    let content_type = Some("application/vnd.kubernetes.protobuf");
    let decoded = body(content_type, &sent, &kind("", "configmaps"), FieldValidation::Strict).unwrap();
    assert_eq!(
        decoded.object,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pb", "labels": {"l": "1"}},
            "data": {"a": "1", "b": "2"}
        })
    );
    let options = STANDARD.decode("azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxIOCAAiCkJhY2tncm91bmQaACIA").unwrap();
    let options = delete_options(content_type, &options).unwrap();
    assert_eq!(
        (&options["propagationPolicy"], &options["gracePeriodSeconds"]),
        (&json!("Background"), &json!(0))
    );
}

#[test]
fn delete_options_may_be_absent_and_of_any_group() {
    assert_eq!(delete_options(None, b"").unwrap(), json!({}));
    let options = br#"{"apiVersion": "apps/v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}"#;
    assert_eq!(delete_options(None, options).unwrap()["propagationPolicy"], "Orphan");
    assert_eq!(delete_options(None, br#"{"kind": "Pod"}"#).unwrap_err().code, 400);
    assert_eq!(delete_options(None, br#"{"gracePeriodSeconds": "x"}"#).unwrap_err().code, 400);
}

/// Returns a pod that protobuf can encode and that has every shape of a schema.
fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p", "creationTimestamp": "2020-01-01T00:00:00Z", "labels": {"a": "1"}, "generation": -3,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true}],
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:data": {}}}]
        },
        "spec": {
            "containers": [{
                "name": "c", "image": "i", "args": ["a", ""],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 80}}
            }],
            "volumes": [{"name": "v", "configMap": {"name": "cm", "items": [{"key": "k", "path": "p"}]}}],
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists", "tolerationSeconds": 3}],
            "securityContext": {"supplementalGroups": [1, 2]}
        },
        "status": {"startTime": "2020-01-01T00:00:00Z"}
    })
}

fn round_trip(object: &Value, kind: &Kind) -> Value {
    let raw = protobuf::write(object, &kind.ty);
    let api_version = kind.api_version();
    let sealed = Envelope { api_version: &api_version, kind: &kind.gvk.kind, raw: &raw }.seal();
    let content_type = Some("application/vnd.kubernetes.protobuf");
    body(content_type, &sealed, kind, FieldValidation::Strict).unwrap().object
}

#[test]
fn a_pod_survives_a_protobuf_round_trip() {
    assert_eq!(round_trip(&pod(), &kind("", "pods")), pod());
}

#[test]
fn union_types_of_json_schemas_survive_a_protobuf_round_trip() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "string"}, "maximum": 1.5, "enum": [1, "x"]},
            "b": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {"x": 1}},
            "c": {"type": "object", "additionalProperties": true, "x-kubernetes-preserve-unknown-fields": true},
            "d": {"items": [{"type": "string"}], "dependencies": {"x": ["y"], "z": {"type": "string"}}}
        }
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"},
        "spec": {
            "group": "g", "scope": "Namespaced", "names": {"plural": "x", "kind": "X"},
            "versions": [{
                "name": "v1", "served": true, "storage": false,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}
            }]
        }
    });
    let crds = kind("apiextensions.k8s.io", "customresourcedefinitions");
    assert_eq!(round_trip(&definition, &crds), definition);
}

#[test]
fn a_map_of_string_lists_survives_a_protobuf_round_trip() {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
        "spec": {"user": "u", "extra": {"scopes": ["a", "b"]}}, "status": {"allowed": false}
    });
    assert_eq!(round_trip(&review, &kind("authorization.k8s.io", "subjectaccessreviews")), review);
}

/// Objects of all kinds with random content, encoded by Go in protobuf and in JSON.
const GO_OBJECTS: &str = include_str!("../../tests/go-objects/objects.tsv");

#[test]
fn protobuf_written_by_go_round_trips() {
    let kinds = Registry::new().kinds();
    let mut count = 0;
    for line in GO_OBJECTS.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [group, version, plural, message, text] = cells.as_slice() else { panic!("{line}") };
        let kind = kinds.by_path(group, version, plural).unwrap();
        let expected: Value = serde_json::from_str(text).unwrap();
        let written = |content_type: Option<&str>, bytes: &[u8]| {
            let mut object = body(content_type, bytes, kind, FieldValidation::Strict).unwrap().object;
            crate::schema::write_empty(&mut object, &kind.ty);
            object
        };
        let message = STANDARD.decode(message).unwrap();
        assert_eq!(
            written(Some("application/vnd.kubernetes.protobuf"), &message),
            expected,
            "{plural} in protobuf"
        );
        assert_eq!(written(None, text.as_bytes()), expected, "{plural} in JSON");
        let mut again = round_trip(&expected, kind);
        crate::schema::write_empty(&mut again, &kind.ty);
        assert_eq!(again, expected, "{plural} in our protobuf");
        count += 1;
    }
    // All kinds except those of the extension and aggregation servers.
    assert_eq!(count, 70);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn decoding_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), form in 0..3_usize) {
        let content_type = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"][form];
        let pods = kind("", "pods");
        let _ = body(Some(content_type), &bytes, &pods, FieldValidation::Strict);
        let mut magic = protobuf::MAGIC.to_vec();
        magic.extend(&bytes);
        let _ = body(Some("application/vnd.kubernetes.protobuf"), &magic, &pods, FieldValidation::Strict);
        let _ = delete_options(Some(content_type), &bytes);
    }

    #[test]
    fn decoding_a_corrupted_protobuf_message_does_not_panic(position in 0..400_usize, byte in any::<u8>()) {
        let pods = kind("", "pods");
        let mut raw = protobuf::write(&pod(), &pods.ty);
        if let Some(victim) = raw.get_mut(position) {
            *victim = byte;
        }
        let _ = protobuf::read(&raw, &pods.ty);
    }

    #[test]
    fn deeply_nested_bodies_are_rejected_without_stack_overflow(depth in 1..3000_usize) {
        let text = format!("{{\"metadata\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        prop_assert!(json_body(&text, FieldValidation::Ignore).is_err());
        prop_assert!(read("application/yaml", &text, FieldValidation::Ignore).is_err());
    }
}
