//! Types that use every method of deserialization, and texts that match them.

use std::{collections::BTreeMap, ffi::CString};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Number, Value};

/// A type with one field for each way of requesting a value.
#[derive(Debug, Deserialize, PartialEq)]
pub(in crate::decode) struct Everything {
    option: Option<Vec<u8>>,
    optional: Option<Box<External>>,
    external: Vec<External>,
    internal: Internal,
    adjacent: Adjacent,
    untagged: Untagged,
    newtype: Newtype,
    tuple: (i8, Vec<String>, Option<bool>),
    tuple_struct: Pair,
    array: [Vec<u16>; 2],
    unit: ((), Unit),
    wide: (i128, u128),
    float: (f32, f64),
    letter: char,
    bytes: CString,
    number: Number,
    map: BTreeMap<u16, Vec<bool>>,
    flat: Flat,
    boxed: Box<[Box<str>]>,
    ignored: IgnoredAny,
    #[serde(default)]
    default: Vec<i32>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(in crate::decode) struct Newtype(pub(in crate::decode) Vec<u8>);

#[derive(Debug, Deserialize, PartialEq)]
pub(in crate::decode) struct Pair(i64, Vec<i64>);

#[derive(Debug, Deserialize, PartialEq)]
pub(in crate::decode) struct Unit;

#[derive(Debug, Deserialize, PartialEq)]
pub(in crate::decode) enum External {
    Unit,
    Newtype(Vec<u8>),
    Tuple(u8, Vec<u8>),
    Struct { list: Vec<External> },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "type")]
pub(in crate::decode) enum Internal {
    Unit,
    Newtype(BTreeMap<String, Vec<u8>>),
    Struct { list: Vec<Internal> },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "type", content = "of")]
pub(in crate::decode) enum Adjacent {
    Unit,
    Newtype(Vec<u8>),
    Tuple(u8, Vec<u8>),
    Struct { list: Vec<Adjacent> },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub(in crate::decode) enum Untagged {
    Number(u8),
    List(Vec<Untagged>),
    Tuple(String, Vec<u8>),
    Struct { list: Vec<u8> },
    Unit,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(in crate::decode) struct Flat {
    list: Vec<u8>,
    #[serde(flatten)]
    named: Option<Named>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(in crate::decode) struct Named {
    name: Vec<String>,
}

/// Texts that match each field of [`Everything`].
pub(in crate::decode) const FITTING: [(&str, &[&str]); 21] = [
    ("option", &["null", "[]", "[1]", "[1,2]"]),
    ("optional", &["null", r#""Unit""#, r#"{"Newtype":[7]}"#]),
    (
        "external",
        &[
            "[]",
            r#"["Unit"]"#,
            r#"[{"Newtype":[1]},{"Tuple":[1,[2]]},{"Struct":{"list":["Unit"]}},{"Unit":null}]"#,
        ],
    ),
    (
        "internal",
        &[
            r#"{"type":"Unit"}"#,
            r#"{"type":"Newtype","a":[1]}"#,
            r#"{"list":[{"type":"Unit"}],"type":"Struct"}"#,
            r#"["Unit"]"#,
        ],
    ),
    (
        "adjacent",
        &[
            r#"{"type":"Unit"}"#,
            r#"{"type":"Newtype","of":[1]}"#,
            r#"{"of":[1,[2]],"type":"Tuple"}"#,
            r#"{"type":"Struct","of":{"list":[{"type":"Unit","of":null}]}}"#,
        ],
    ),
    ("untagged", &["3", "[]", "[1,[2,null]]", r#"["a",[1]]"#, r#"{"list":[1]}"#, "null"]),
    ("newtype", &["[]", "[1]", "[1,2,3]"]),
    ("tuple", &["[-1,[],null]", r#"[1,["a\n\"\u00e9"],true]"#]),
    ("tuple_struct", &["[1,[2]]", "[-9223372036854775808,[]]"]),
    ("array", &["[[],[1]]", "[[1,2],[3]]"]),
    ("unit", &["[null,null]"]),
    (
        "wide",
        &["[-170141183460469231731687303715884105728,340282366920938463463374607431768211455]", "[0,1]"],
    ),
    ("float", &["[0.5,-1e300]", "[1,2]"]),
    ("letter", &[r#""a""#, r#""\ud83d\ude00""#]),
    ("bytes", &[r#""text""#, "[1,2,3]"]),
    ("number", &["1", "-1", "1.5", "18446744073709551615"]),
    ("map", &["{}", r#"{"1":[true],"2":[]}"#]),
    (
        "flat",
        &[r#"{"list":[1]}"#, r#"{"name":["a"],"list":[],"more":[{"b":[1]}]}"#, r#"{"list":[],"name":1}"#],
    ),
    ("boxed", &["[]", r#"["a"]"#, r#"["a","b\\"]"#]),
    ("ignored", &["null", r#"{"a":[1,[2,{"b":"c"}]]}"#]),
    ("default", &["[]", "[-2147483648]"]),
];

/// Returns a document with these texts for the fields of [`Everything`]; fields without a text are omitted.
pub(in crate::decode) fn document<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let members =
        FITTING.iter().zip(texts).filter_map(|((name, _), text)| Some(format!("\"{name}\": {}", text?)));
    format!("{{\n{}\n}}", members.collect::<Vec<_>>().join(",\n"))
}
