//! Single objects: cutting, probing, parsing.

use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource as _, TypeMeta};
use serde_json::{Value, json};

use crate::decode::{Decode, DecodeError, Json, ObjectMetadata, cut_managed_fields, probe};

#[test]
fn only_the_managed_fields_of_the_object_itself_are_cut() {
    let cut = |object: &str| {
        let mut scratch = Vec::new();
        String::from_utf8(cut_managed_fields(object.as_bytes(), &mut scratch).to_vec()).unwrap()
    };
    for (what, object, expected) in [
        (
            "last",
            r#"{"metadata":{"a":1,"managedFields":[{"f:x":{}}]},"s":1}"#,
            r#"{"metadata":{"a":1},"s":1}"#,
        ),
        ("first", r#"{"metadata":{"managedFields":[],"a":1}}"#, r#"{"metadata":{"a":1}}"#),
        (
            "middle",
            r#"{"metadata":{"a":1 , "managedFields" : null , "b":2}}"#,
            r#"{"metadata":{"a":1 , "b":2}}"#,
        ),
        ("alone", r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
        ("alone, with blanks", r#"{"metadata":{ "managedFields":[] }}"#, r#"{"metadata":{  }}"#),
        ("twice in a row", r#"{"metadata":{"managedFields":1,"managedFields":2}}"#, r#"{"metadata":{}}"#),
        (
            "twice around",
            r#"{"metadata":{"managedFields":1,"a":1,"managedFields":2}}"#,
            r#"{"metadata":{"a":1}}"#,
        ),
        (
            "twice behind",
            r#"{"metadata":{"a":1,"managedFields":1,"managedFields":2,"b":2}}"#,
            r#"{"metadata":{"a":1,"b":2}}"#,
        ),
        ("escaped", r#"{"metadata":{"a":1,"m\u0061nagedFields":1}}"#, r#"{"metadata":{"a":1}}"#),
        (
            "escaped metadata",
            r#"{"met\u0061data":{"a":1,"managedFields":1}}"#,
            r#"{"met\u0061data":{"a":1}}"#,
        ),
        (
            "in two metadata",
            r#"{"metadata":{"managedFields":1},"metadata":{"managedFields":1,"a":1}}"#,
            r#"{"metadata":{},"metadata":{"a":1}}"#,
        ),
        (
            "in a second metadata, escaped",
            r#"{"metadata":{},"metadata":{"m\u0061nagedFields":1,"a":1}}"#,
            r#"{"metadata":{},"metadata":{"a":1}}"#,
        ),
    ] {
        assert_eq!(cut(object), expected, "{what}");
    }
    for untouched in [
        r#"{"managedFields":[1]}"#,
        r#"{"metadata":{"annotations":{"managedFields":"x"}}}"#,
        r#"{"metadata":{"annotations":{"last":"{\"metadata\":{\"managedFields\":[]}}"}}}"#,
        r#"{"spec":{"template":{"metadata":{"managedFields":[1]}}},"metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a"},"spec":{"metadata":{"managedFields":[1]},"managedFields":1}}"#,
        r#"{"metadata":{"ManagedFields":1,"managedfields":2,"managedFields ":3}}"#,
        r#"{"metadata":"managedFields"}"#,
        r#"{"metadata":[{"managedFields":[1]}]}"#,
        r#"[{"metadata":{"managedFields":[1]}}]"#,
        // Malformed: left for the parser to reject.
        r#"{"metadata":{"managedFields":[1]"#,
        r#"{"metadata":{"managedFields":[1] "a":1}}"#,
        "",
    ] {
        assert_eq!(cut(untouched), untouched);
    }
}

#[test]
fn a_probe_stops_when_it_has_seen_enough() {
    let identity =
        probe(br#"{"metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"1", not JSON"#)
            .unwrap();
    assert_eq!(identity.key(), "b/a");
    let cluster_scoped =
        probe(br#"{"metadata":{"name":"node-1","uid":"c","resourceVersion":"1"}, not JSON"#).unwrap();
    assert_eq!((cluster_scoped.key(), cluster_scoped.namespace()), ("node-1", None));
    let late = probe(br#"{"spec":{"metadata":{"name":"no"}},"metadata":{"managedFields":[{"name":"no"}],"name":"\u0061"}}"#);
    assert_eq!(late.unwrap().name(), "a");
}

#[test]
fn a_probe_never_guesses() {
    for (object, expected) in [
        (r#"{"metadata":{"namespace":"b"}}"#, "`metadata.name` is missing"),
        (r#"{"metadata":{"name":""}}"#, "`metadata.name` is missing"),
        (r#"{"name":"a"}"#, "`metadata` is missing"),
        (r#"{"metadata":null}"#, "`metadata` at byte 12 must be an object"),
        (r#"{"metadata":{"name":7}}"#, "`metadata.name` at byte 20 must be a string"),
        (r#"{"metadata":{"name":"a","uid":{}}}"#, "`metadata.uid` at byte 30 must be a string"),
        ("[]", "expected an object"),
        (r#"{"metadata":{"name":"a"#, "ends at byte 22"),
        (r#"{"metadata":{"name":"\ud800"}}"#, "expected a valid escape"),
        (r#"{,"metadata":{"name":"a"}}"#, "at byte 1: expected a key"),
        (r#"{"metadata":{,"name":"a"}}"#, "at byte 13: expected a key"),
        (r#"{"a":1,,"metadata":{"name":"a"}}"#, "at byte 7: expected a key"),
        (r#"{"a":1 "metadata":{"name":"a"}}"#, "at byte 7: expected `,` or `}`"),
    ] {
        let error = probe(object.as_bytes()).expect_err(object).to_string();
        assert!(error.contains(expected), "{object}: {error}");
    }
    assert!(matches!(probe(b"{\"metadata\":{\"name\":\"a\xff\"}}"), Err(DecodeError::Utf8 { offset: 22 })));
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web-0", "namespace": "shop", "labels": { "a": "b" }, "managedFields": [{ "manager": "x" }] },
        "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
    })
}

#[test]
fn one_decoder_serves_typed_dynamic_metadata_and_narrow_types() {
    #[derive(serde::Deserialize)]
    struct Narrow {
        spec: NarrowSpec,
    }
    #[derive(serde::Deserialize)]
    struct NarrowSpec {
        containers: Vec<Value>,
    }
    let bytes = pod().to_string();
    let bytes = bytes.as_bytes();
    let typed: Pod = Json::new().decode(bytes).unwrap();
    assert_eq!(typed.metadata.managed_fields, None);
    assert_eq!(typed.spec.unwrap().containers[0].image.as_deref(), Some("web:1"));
    let dynamic: DynamicObject = Json::new().decode(bytes).unwrap();
    assert_eq!(dynamic.data["spec"], pod()["spec"]);
    let narrow: Narrow = Json::new().decode(bytes).unwrap();
    assert_eq!(narrow.spec.containers.len(), 1);
    let kept: Pod = Json::new().keep_managed_fields().decode(bytes).unwrap();
    assert_eq!(kept.metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("x"));
}

#[test]
fn object_metadata_equals_what_kube_decodes() {
    for object in [pod(), json!({ "metadata": { "name": "a" } })] {
        let bytes = object.to_string();
        let ours: ObjectMetadata = Json::new().keep_managed_fields().decode(bytes.as_bytes()).unwrap();
        let kube: PartialObjectMeta<Pod> = serde_json::from_str(&bytes).unwrap();
        assert_eq!((&ours.types, &ours.metadata), (&kube.types, &kube.metadata));
        assert_eq!(serde_json::to_value(&ours).unwrap(), serde_json::to_value(&kube).unwrap());
        let converted: PartialObjectMeta<Pod> = ours.clone().into();
        assert_eq!(converted.metadata, kube.metadata);
        assert_eq!(ObjectMetadata::from(converted), ours);
    }
    let types = Some(TypeMeta { api_version: "v1".to_owned(), kind: "Pod".to_owned() });
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    let object = ObjectMetadata { types, metadata };
    assert_eq!(
        serde_json::to_value(object).unwrap(),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } })
    );
}

#[test]
fn object_metadata_has_the_resource_of_its_dynamic_type() {
    let resource = ApiResource {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        plural: "deployments".to_owned(),
    };
    assert_eq!(ObjectMetadata::kind(&resource), "Deployment");
    assert_eq!(ObjectMetadata::group(&resource), "apps");
    assert_eq!(ObjectMetadata::version(&resource), "v1");
    assert_eq!(ObjectMetadata::api_version(&resource), "apps/v1");
    assert_eq!(ObjectMetadata::plural(&resource), "deployments");
    assert!(ObjectMetadata::metadata_api(), "only metadata is requested");
    let mut object = ObjectMetadata::default();
    object.meta_mut().name = Some("web".to_owned());
    assert_eq!(object.meta().name.as_deref(), Some("web"));
}

#[test]
fn a_rejected_object_is_located_in_the_bytes_that_came() {
    let bytes = r#"{"metadata":{"managedFields":[1,2,3],"name":"a"},"data":{"k":7}}"#;
    match Decode::<ConfigMap>::decode(&Json::new(), bytes.as_bytes()) {
        Err(DecodeError::Mismatch { reason, offset }) => {
            assert_eq!(reason, "invalid type: integer, expected a string");
            assert!((60..=62).contains(&offset), "{offset} is at the 7");
        }
        other => panic!("{other:?}"),
    }
    let not_utf8 = Decode::<ConfigMap>::decode(&Json::new(), b"{\"data\":{\"k\":\"\xff\"}}");
    assert!(matches!(not_utf8, Err(DecodeError::Utf8 { offset: 14 })));
}

#[test]
fn depth_is_bounded_for_a_single_object_too() {
    let nested = |deep: usize| format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let decode = |json: &Json, text: &str| Decode::<Value>::decode(json, text.as_bytes());
    for deep in [1, 127, 128] {
        assert!(decode(&Json::new(), &nested(deep)).is_ok(), "{deep}");
    }
    for deep in [129, 100_000] {
        let error = decode(&Json::new(), &nested(deep)).unwrap_err();
        assert!(matches!(error, DecodeError::TooDeep { limit: 128, offset: 128 }), "{deep}: {error}");
    }
    assert!(decode(&Json::new().max_depth(500), &nested(500)).is_ok());
    assert!(decode(&Json::new().max_depth(5), &nested(5)).is_ok());
    assert!(matches!(
        decode(&Json::new().max_depth(5), &nested(6)),
        Err(DecodeError::TooDeep { limit: 5, offset: 5 })
    ));
}
