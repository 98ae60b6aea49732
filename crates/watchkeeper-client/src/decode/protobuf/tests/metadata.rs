//! Metadata without decoding, and objects without managedFields.

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};
use watchkeeper_schema::GroupVersionKind;

use super::{
    super::super::{Decode, DecodeError, Header, Json, ObjectMetadata, OwnerHeader, Protobuf, probe},
    field,
    generate::{Generator, Order},
    kinds, of, protobuf, sealed,
};

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the header of an object's JSON.
fn header_of(object: &Value) -> Header {
    let metadata = &object["metadata"];
    let list = |name: &str| metadata[name].as_array().cloned().unwrap_or_default();
    let map = |name: &str| metadata[name].as_object().cloned().unwrap_or_default();
    let mut header = Header {
        generation: metadata["generation"].as_i64(),
        is_being_deleted: metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null()),
        labels: map("labels")
            .iter()
            .map(|(key, value)| (key.as_str().into(), text(value, "").into()))
            .collect(),
        finalizers: list("finalizers").iter().map(|name| text(name, "").into()).collect(),
        owners: list("ownerReferences")
            .iter()
            .map(|owner| OwnerHeader {
                api_version: text(owner, "/apiVersion").into(),
                kind: text(owner, "/kind").into(),
                name: text(owner, "/name").into(),
                uid: text(owner, "/uid").into(),
                is_controller: owner["controller"] == true,
            })
            .collect(),
        annotations: 0,
    };
    header.labels.sort();
    for (key, value) in map("annotations") {
        header.add_annotation(&key, text(&value, ""));
    }
    header
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn identity_header_and_retained_bytes_are_those_of_the_object(seed: u64) {
        let mut generator = Generator::new(seed, Order::Contiguous);
        for (kind, ty) in kinds() {
            let (json, message) = generator.object(&ty, 7);
            let json = Value::Object(json);
            let decoder = protobuf(&kind);
            let decoder: &dyn Decode<Value> = &decoder;
            let from_json = probe(json.to_string().as_bytes());
            let before: Value = decoder.decode(&message).unwrap();
            for bytes in [sealed(&kind, &message), message] {
                match (decoder.identify(&bytes, &kind.kind), &from_json) {
                    (Ok(one), Ok(other)) => prop_assert_eq!(&one, other),
                    (Err(DecodeError::Missing { .. }), Err(DecodeError::Missing { .. })) => {}
                    (one, other) => prop_assert!(false, "{:?} and {:?}", one, other),
                }
                prop_assert_eq!(decoder.header(&bytes).unwrap(), header_of(&json));

                let mut kept = b"before".to_vec();
                decoder.retain(&bytes, &mut kept).unwrap();
                let kept = kept.strip_prefix(b"before").unwrap();
                prop_assert!(kept.len() <= bytes.len());
                let decoded: Value = decoder.decode(&bytes).unwrap();
                prop_assert_eq!(decoder.decode(kept).unwrap(), decoded);
                let whole: Value = protobuf(&kind).keep_managed_fields().decode(kept).unwrap();
                prop_assert_eq!(&whole["metadata"], &before["metadata"]);

                let mut whole = Vec::new();
                let keeping = protobuf(&kind).keep_managed_fields();
                Decode::<Value>::retain(&keeping, &bytes, &mut whole).unwrap();
                prop_assert_eq!(whole, bytes);
            }
        }
    }
}

#[test]
fn the_kind_of_an_envelope_is_checked() {
    let (pod, _) = of("", "Pod");
    let decoder = protobuf(&pod);
    let decoder: &dyn Decode<Pod> = &decoder;
    let message = field(1, &field(1, b"a"));
    let identify = |kind: &str, expected: &str| {
        let (of, _) = of("", kind);
        decoder.identify(&sealed(&of, &message), expected)
    };
    assert_eq!(identify("Pod", "Pod").unwrap().key(), "a");
    assert_eq!(identify("Pod", "").unwrap().key(), "a");
    assert_eq!(decoder.identify(&message, "Pod").unwrap().key(), "a");
    assert!(
        matches!(identify("Pod", "Node"), Err(DecodeError::WrongKind { expected }) if expected == "Node")
    );
    assert!(matches!(identify("Table", ""), Err(DecodeError::Table { .. })));
    assert!(matches!(decoder.identify(&[], "Pod"), Err(DecodeError::Missing { field: "metadata.name" })));
}

#[test]
fn labels_are_sorted_and_the_last_of_equal_keys_counts() {
    let label =
        |key: &str, value: &str| field(11, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat());
    let metadata = [label("b", "1"), label("a", "1"), label("b", "2"), label("a", "3")].concat();
    let decoder = protobuf(&of("", "Pod").0);
    let decoder: &dyn Decode<Pod> = &decoder;
    let header = decoder.header(&field(1, &metadata)).unwrap();
    let labels: Vec<_> = header.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(labels, [("a", "3"), ("b", "2")]);
}

#[test]
fn a_custom_decoder_keeps_no_encoded_objects() {
    struct Custom;
    impl Decode<Value> for Custom {
        fn decode(&self, object: &[u8]) -> Result<Value, DecodeError> {
            Json::new().decode(object)
        }
    }
    assert!(!Custom.can_retain());
    let mut kept = Vec::new();
    Custom.retain(b"{}", &mut kept).unwrap();
    assert_eq!(kept, b"{}");
    assert_eq!(Custom.identify(br#"{"metadata":{"name":"a"}}"#, "Pod").unwrap().key(), "a");
    assert_eq!(Custom.decode(b"{}").unwrap(), json!({}));
}

#[test]
fn objects_reduced_to_their_metadata_are_retained_by_what_their_type_reads() {
    let labels = [field(1, b"app"), field(2, b"web")].concat();
    let metadata =
        [field(1, b"web-0"), field(3, b"shop"), field(5, b"u"), field(6, b"7"), field(11, &labels)].concat();
    let kind = GroupVersionKind::new("meta.k8s.io", "v1", "PartialObjectMetadata");
    for bytes in [sealed(&kind, &field(1, &metadata)), field(1, &metadata)] {
        let decoder: &dyn Decode<ObjectMetadata> = &Protobuf::metadata_only();
        let object = decoder.decode(&bytes).unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("web-0"));
        let mut json = Vec::new();
        assert_eq!(decoder.decode_retaining(&bytes, &mut json).unwrap(), object);
        assert_eq!(Json::new().decode(&json).ok(), Some(object), "{}", String::from_utf8_lossy(&json));
    }
}
