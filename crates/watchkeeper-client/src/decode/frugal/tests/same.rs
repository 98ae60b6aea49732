//! Parsing with and without the wrapper produces the same value or error.

use std::{collections::BTreeMap, fmt::Debug};

use k8s_openapi::api::core::v1::Pod;
use proptest::{prelude::*, sample::Index};
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, Visitor};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    Frugal, Outcome, frugal, plain, pod,
    types::{Everything, FITTING, Untagged, document},
};

#[test]
fn valid_documents_decode_to_the_same_value() {
    for turn in 0..12 {
        let text = document(FITTING.iter().map(|(_, texts)| Some(texts[turn % texts.len()])));
        let value: Outcome<Everything> = frugal(&text);
        assert!(value.is_ok(), "{text}: {value:?}");
        assert_eq!(value, plain(&text), "{text}");
    }
}

#[test]
fn a_struct_may_come_as_a_list() {
    let text = document(FITTING.iter().map(|(_, texts)| Some(texts[0])));
    let list = FITTING.iter().filter(|(name, _)| *name != "default").map(|(_, texts)| texts[0]);
    let list = format!("[{}]", list.collect::<Vec<_>>().join(","));
    assert_eq!(frugal::<Everything>(&list), plain(&list));
    assert_eq!(frugal::<Everything>(&list).unwrap(), plain(&text).unwrap());
}

#[test]
fn raw_values_keep_their_very_text() {
    let text = r#"{"a": [ 1.50 , {"b" : "\u0061"} ] , "c":null}"#;
    let raw: BTreeMap<String, Box<RawValue>> = frugal(text).unwrap();
    assert_eq!((raw["a"].get(), raw["c"].get()), (r#"[ 1.50 , {"b" : "\u0061"} ]"#, "null"));
}

#[test]
fn the_parser_stops_at_the_depth_it_stopped_at() {
    for depth in [1, 126, 127, 128, 129] {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let text = open.repeat(depth) + "0" + &close.repeat(depth);
            assert_eq!(frugal::<Value>(&text), plain::<Value>(&text), "{depth}");
            assert_eq!(frugal::<Value>(&text).is_ok(), depth < 128, "{depth}");
        }
    }
}

#[test]
fn is_human_readable_is_forwarded() {
    struct Binary;

    impl<'de> Deserializer<'de> for Binary {
        type Error = de::value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            visitor.visit_unit()
        }

        fn is_human_readable(&self) -> bool {
            false
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    assert!(!Frugal(Binary).is_human_readable());
    assert!(Frugal(json!(1)).is_human_readable());
}

fn text() -> BoxedStrategy<String> {
    prop_oneof!["[a-z]{0,8}", r#"[\\"{}\[\],:\n\t]{0,8}"#, any::<String>()].boxed()
}

fn leaf() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0..300_u16).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ]
    .boxed()
}

pub(in crate::decode) fn value() -> BoxedStrategy<Value> {
    leaf()
        .prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..6)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
        .boxed()
}

/// Generates documents of [`Everything`], of which about half are valid: any field may have any value, or be
/// absent.
pub(in crate::decode) fn everything() -> BoxedStrategy<String> {
    let field = |texts: &'static [&'static str]| {
        prop_oneof![
            60 => prop::sample::select(texts).prop_map(|text| Some(text.to_owned())),
            1 => value().prop_map(|value| Some(value.to_string())),
            1 => Just(None),
        ]
    };
    let fields: Vec<_> = FITTING.iter().map(|(_, texts)| field(texts)).collect();
    fields.prop_map(|texts| document(texts.iter().map(Option::as_deref))).boxed()
}

/// Replaces a character with `with`, or truncates the text there.
fn damaged(text: &str, at: Index, with: Option<&str>) -> String {
    let (start, character) = text.char_indices().nth(at.index(text.chars().count())).unwrap();
    match with {
        Some(with) => [&text[..start], with, &text[start + character.len_utf8()..]].concat(),
        None => text[..start].to_owned(),
    }
}

fn damage() -> impl Strategy<Value = Option<&'static str>> {
    let with = ["", "[", "]", "{", "}", ",", ":", "\"", "\\", "\n", " ", "0", "-", "null", "[1]"];
    prop::option::weighted(0.9, prop::sample::select(with.to_vec()))
}

fn assert_same<T: DeserializeOwned + Debug + PartialEq>(text: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(frugal::<T>(text), plain::<T>(text), "{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_document_gives_the_same_value(value in value(), is_pretty: bool, at: Index, with in damage()) {
        let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
        assert_same::<Value>(&text)?;
        assert_same::<Value>(&damaged(&text, at, with))?;
        assert_same::<Untagged>(&text)?;
        assert_same::<IgnoredAny>(&damaged(&text, at, with))?;
    }

    #[test]
    fn any_type_is_given_the_same_and_refuses_the_same(text in everything(), at: Index, with in damage()) {
        assert_same::<Everything>(&text)?;
        assert_same::<Everything>(&damaged(&text, at, with))?;
    }

    #[test]
    fn a_damaged_pod_is_rejected_with_the_same_message(count in 0..3_usize, at: Index, with in damage()) {
        assert_same::<Pod>(&damaged(&pod(count), at, with))?;
    }
}
