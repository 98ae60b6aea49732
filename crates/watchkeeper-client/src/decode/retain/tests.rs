//! The written document decodes to the same value as the original.

use std::{collections::BTreeMap, ffi::CString, fmt::Debug};

use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;
use proptest::prelude::*;
use serde::{
    Deserialize,
    de::{
        DeserializeOwned, IgnoredAny, IntoDeserializer,
        value::{self, MapDeserializer},
    },
};
use serde_json::{Value, value::RawValue};

use super::decode_retaining;
use crate::{
    decode::{
        DecodeError, Json, ObjectMetadata,
        frugal::tests::{
            same::{everything, value},
            types::{Everything, FITTING, Untagged, document},
        },
    },
    narrow::tests::{PodView, pod},
};

/// Returns the value of a document and the written document.
fn retained<K: DeserializeOwned>(text: &str) -> Option<(K, String)> {
    let mut out = b"before".to_vec();
    let Ok(value) = decode_retaining(&mut serde_json::Deserializer::from_str(text), &mut out) else {
        assert_eq!(out, b"before", "an error leaves the output as before: {text}");
        return None;
    };
    Some((value, String::from_utf8(out.split_off("before".len())).unwrap()))
}

fn assert_same<K: DeserializeOwned + Debug + PartialEq>(text: &str) -> Result<(), TestCaseError> {
    let plain = K::deserialize(&mut serde_json::Deserializer::from_str(text));
    let Some((value, written)) = retained::<K>(text) else {
        prop_assert!(plain.is_err(), "only with the wrapper rejected: {text}");
        return Ok(());
    };
    prop_assert_eq!(&value, &plain.unwrap(), "{}", text);
    let again = serde_json::from_str::<K>(&written);
    prop_assert!(again.is_ok(), "{text} was written as {written}: {again:?}");
    prop_assert_eq!(&again.unwrap(), &value, "{} was written as {}", text, written);
    // What is written contains nothing that can be left out.
    prop_assert_eq!(retained::<K>(&written).unwrap().1, written);
    Ok(())
}

#[derive(Debug, Deserialize, PartialEq)]
struct Narrow {
    name: Option<String>,
    #[serde(default)]
    items: Vec<Item>,
    marker: Option<IgnoredAny>,
    // `IgnoredAny`s are equal, so these show only whether a value was there.
    #[serde(default)]
    ignored_items: Vec<IgnoredAny>,
    #[serde(default)]
    #[expect(clippy::zero_sized_map_values, reason = "the names are read, the values are not")]
    ignored_members: BTreeMap<String, IgnoredAny>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Item {
    #[serde(alias = "other")]
    value: Option<f64>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Strict {
    ignored: IgnoredAny,
    value: Option<Value>,
}

#[derive(Debug, Deserialize, PartialEq)]
enum Choice {
    #[serde(alias = "none")]
    Nothing,
    Ignored(IgnoredAny),
    Fields {
        a: Option<u8>,
    },
}

#[derive(Debug, Deserialize, PartialEq, PartialOrd, Eq, Ord)]
enum Level {
    High,
}

fn written<K: DeserializeOwned>(text: &str) -> String {
    retained::<K>(text).unwrap().1
}

#[test]
fn ignored_values_are_left_out_or_replaced_by_the_smallest_value_that_reads_the_same() {
    type Case = (fn(&str) -> String, &'static str, &'static str);
    let cases: [Case; 13] = [
        (
            written::<Narrow>,
            r#"{"name": "a", "rest": {"b": [1, 2]}, "items": []}"#,
            r#"{"name":"a","items":[]}"#,
        ),
        (
            written::<Narrow>,
            r#"{"rest": 1, "items": [{"x": 1}, {"other": 2}]}"#,
            r#"{"items":[{},{"other":2}]}"#,
        ),
        (written::<Narrow>, r#"{"marker": {"a": 1}}"#, r#"{"marker":0}"#),
        (written::<Narrow>, r#"{"marker": null}"#, r#"{"marker":null}"#),
        (written::<Narrow>, r#"{"ignored_items": [1, {}, "a"]}"#, r#"{"ignored_items":[null,null,null]}"#),
        (written::<Narrow>, r#"{"ignored_members": {"a": 1}}"#, r#"{"ignored_members":{"a":null}}"#),
        (written::<Narrow>, r#"{"rest": 1}"#, "{}"),
        (written::<Strict>, r#"{"ignored": [1]}"#, r#"{"ignored":null}"#),
        (written::<IgnoredAny>, r#"{"a": 1}"#, "null"),
        (written::<Choice>, r#"{"Ignored": [1]}"#, r#"{"Ignored":null}"#),
        (written::<Choice>, r#"{"Fields": {"b": 1, "a": 2}}"#, r#"{"Fields":{"a":2}}"#),
        (written::<Choice>, r#"{"none": null}"#, r#""none""#),
        (written::<(u8, IgnoredAny, u8)>, "[1, [2, 3], 4]", "[1,null,4]"),
    ];
    for (written, text, expected) in cases {
        assert_eq!(written(text), expected, "{text}");
    }
}

#[test]
fn values_are_written_without_loss() {
    type Case = (fn(&str) -> String, &'static str, &'static str);
    let cases: [Case; 11] = [
        (
            written::<Value>,
            "[18446744073709551615, -9223372036854775808]",
            "[18446744073709551615,-9223372036854775808]",
        ),
        (written::<Value>, "[1.0, 1e300, -0.0, 0.1]", "[1.0,1e+300,-0.0,0.1]"),
        (written::<Value>, r#" "a\"\\\u0001\u00e9\n" "#, "\"a\\\"\\\\\\u0001é\\n\""),
        (
            written::<u128>,
            "340282366920938463463374607431768211455",
            "340282366920938463463374607431768211455",
        ),
        (written::<f32>, "0.1", "0.10000000149011612"),
        (written::<BTreeMap<i8, bool>>, r#"{"-1": true, "2": false}"#, r#"{"-1":true,"2":false}"#),
        (written::<BTreeMap<bool, char>>, r#"{"true": "\u00e9"}"#, r#"{"true":"é"}"#),
        (written::<BTreeMap<Level, u8>>, r#"{"High": 1}"#, r#"{"High":1}"#),
        (written::<CString>, r#""text""#, r#""text""#),
        (written::<CString>, "[255, 1]", "[255,1]"),
        (written::<CString>, r#""\ud800""#, "[237,160,128]"),
    ];
    for (written, text, expected) in cases {
        assert_eq!(written(text), expected, "{text}");
    }
}

#[test]
fn a_raw_value_is_written_as_it_is() {
    let text = r#"{"a": [ 1.50 , {"b" : "\u0061"} ],"c":null,"$serde_json::private::RawValue":"x"}"#;
    let (raw, written) = retained::<BTreeMap<String, Box<RawValue>>>(text).unwrap();
    assert_eq!(raw["a"].get(), r#"[ 1.50 , {"b" : "\u0061"} ]"#);
    assert_eq!(written, text.replace("\": [", "\":["));
    // Only a type can request the text of a value, not a document.
    let text = r#"{"$serde_json::private::RawValue":"]"}"#;
    assert_eq!(retained::<BTreeMap<String, String>>(text).unwrap().1, text);
}

#[test]
fn names_given_as_positions_are_written_as_names() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct One {
        first: u8,
    }

    let members = [(0_u64, 5_u8.into_deserializer())];
    let mut out = Vec::new();
    let deserializer: MapDeserializer<'_, _, value::Error> = MapDeserializer::new(members.into_iter());
    assert_eq!(decode_retaining::<One, _>(deserializer, &mut out), Ok(One { first: 5 }));
    assert_eq!(out, br#"{"first":5}"#);
}

#[test]
fn a_number_that_json_cannot_represent_is_an_error() {
    let mut out = Vec::new();
    for number in [f64::NAN, f64::INFINITY] {
        let deserializer: value::F64Deserializer<value::Error> = number.into_deserializer();
        assert!(decode_retaining::<f64, _>(deserializer, &mut out).is_err());
    }
    assert_eq!(out, b"");
}

#[test]
fn the_decoder_retains_what_it_decodes() {
    let json = Json::new();
    let pod = br#"{"metadata":{"managedFields":[{"manager":"m"}],"name":"a"},"spec":{"nodeName":"n","volumes":[]}}"#;
    let mut retained = Vec::new();
    let view: PodView = json.decode_retaining(pod, &mut retained).unwrap();
    assert_eq!(retained, br#"{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}"#);
    assert_eq!(json.retained_bytes::<PodView>(pod).unwrap(), retained.len());
    assert_eq!(json.decode_retaining::<PodView>(&retained, &mut Vec::new()).unwrap(), view);
    // Bytes after the object are an error, which leaves the output as before.
    let error = json.decode_retaining::<PodView>(b"{} {}", &mut retained).unwrap_err();
    assert!(matches!(error, DecodeError::Syntax { .. }), "{error:?}");
    assert_eq!(retained, br#"{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}"#);
}

#[test]
fn valid_documents_of_all_kinds_of_types_are_retained() {
    for turn in 0..12 {
        let text = document(FITTING.iter().map(|(_, texts)| Some(texts[turn % texts.len()])));
        assert!(retained::<Everything>(&text).is_some());
        assert_same::<Everything>(&text).unwrap();
    }
}

fn narrow_document() -> impl Strategy<Value = String> {
    let names =
        ["name", "items", "marker", "ignored_items", "ignored_members", "ignored", "value", "\"", "é"];
    let names = prop::sample::select(names.to_vec());
    let value = prop_oneof![
        value(),
        any::<f64>().prop_map(|number| serde_json::json!([{"value": number}])),
        Just(serde_json::json!({"a": 1, "b": null})),
    ];
    prop::collection::btree_map(names, value, 0..6).prop_map(|members| serde_json::json!(members).to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_document_is_retained(value in value()) {
        let text = value.to_string();
        assert_same::<Value>(&text)?;
        assert_same::<Untagged>(&text)?;
        assert_same::<Choice>(&text)?;
        assert_same::<BTreeMap<String, f64>>(&text)?;
    }

    #[test]
    fn any_type_is_retained(text in everything()) {
        assert_same::<Everything>(&text)?;
    }

    #[test]
    fn the_fields_of_narrow_and_strict_types_are_retained(text in narrow_document()) {
        assert_same::<Narrow>(&text)?;
        assert_same::<Strict>(&text)?;
    }

    #[test]
    fn pods_are_retained_by_each_kind_of_type(text in pod()) {
        assert_same::<Pod>(&text)?;
        assert_same::<PodView>(&text)?;
        assert_same::<DynamicObject>(&text)?;
        assert_same::<ObjectMetadata>(&text)?;
    }
}
