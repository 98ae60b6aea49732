//! Keys and versions: what they are made of, and what they refuse.

use std::{cmp::Ordering, collections::BTreeMap};

use super::objects::{at, object};
use proptest::prelude::*;
use watchkeeper_client::decode::Identity;
use watchkeeper_informer::{KeyError, Object, ObjectKey, ResourceVersion};

#[test]
fn a_key_is_namespace_and_name_or_the_name_alone() {
    for (text, namespace, name) in [("shop/web-0", Some("shop"), "web-0"), ("node-1", None, "node-1")] {
        let key: ObjectKey = text.parse().unwrap();
        assert_eq!((key.namespace(), key.name(), key.as_str()), (namespace, name, text));
        assert_eq!(key.to_string(), text);
        assert_eq!(ObjectKey::new(namespace, name), Ok(key.clone()));
        assert_eq!(object(text).object_key(), Ok(key.clone()));
        let identity = Identity::new(namespace.unwrap_or_default(), name, "uid", "7");
        assert_eq!(ObjectKey::try_from(&identity), Ok(key));
    }
    assert_eq!(ObjectKey::new(Some(""), "node-1"), "node-1".parse(), "an empty namespace is none");
}

#[test]
fn an_invalid_key_is_rejected_and_quoted_in_the_error() {
    for (text, expected) in [
        ("", KeyError::NoName),
        ("shop/", KeyError::NoName),
        ("/web-0", KeyError::Malformed { text: "/web-0".to_owned() }),
        ("a/b/c", KeyError::Malformed { text: "a/b/c".to_owned() }),
    ] {
        assert_eq!(text.parse::<ObjectKey>(), Err(expected), "{text:?}");
    }
    assert_eq!(ObjectKey::new(Some("a/b"), "c"), Err(KeyError::Malformed { text: "a/b/c".to_owned() }));
    assert_eq!(ObjectKey::new(None, "a/b"), Err(KeyError::Malformed { text: "/a/b".to_owned() }));
    let unnamed = k8s_openapi::api::core::v1::ConfigMap::default();
    assert_eq!(unnamed.object_key(), Err(KeyError::NoName));
}

#[test]
fn a_map_of_keys_is_searched_by_text() {
    let map: BTreeMap<ObjectKey, u8> = [("shop/web-0".parse().unwrap(), 1)].into();
    assert_eq!((map.get("shop/web-0"), map.get("shop/web-1")), (Some(&1), None));
    let map: std::collections::HashMap<ObjectKey, u8> = [("shop/web-0".parse().unwrap(), 1)].into();
    assert_eq!((map.get("shop/web-0"), map.get("shop/web-1")), (Some(&1), None));
}

#[test]
fn empty_metadata_counts_as_absent() {
    let mut named = object("a");
    (named.metadata.uid, named.metadata.resource_version) = (Some(String::new()), Some(String::new()));
    assert_eq!((named.object_uid(), named.object_version()), (None, None));
    named.metadata.uid = Some("u".to_owned());
    assert_eq!(named.object_uid(), Some("u"));
    assert_eq!(at("a", "7").object_version(), ResourceVersion::new("7"));
}

#[test]
fn versions_have_an_order_where_both_are_plain_decimal_numbers() {
    use Ordering::{Equal, Greater, Less};
    let long = "184467440737095516151844674407370955161";
    for (one, other, expected) in [
        ("1", "1", Some(Equal)),
        ("9", "10", Some(Less)),
        ("100", "99", Some(Greater)),
        (long, "18446744073709551615", Some(Greater)),
        ("abc", "abc", Some(Equal)),
        ("abc", "abd", None),
        ("1", "a1", None),
        ("01", "1", None),
        ("0", "1", None),
        ("0", "0", Some(Equal)),
        ("-1", "1", None),
        ("1.5", "2", None),
        ("\u{0661}", "2", None),
    ] {
        let (one, other) = (ResourceVersion::new(one).unwrap(), ResourceVersion::new(other).unwrap());
        assert_eq!(one.partial_cmp(&other), expected, "{one} and {other}");
        assert_eq!(other.partial_cmp(&one), expected.map(Ordering::reverse), "{other} and {one}");
    }
    assert_eq!(ResourceVersion::new(""), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_compare_as_numbers(one in 1..u128::MAX, other in 1..u128::MAX) {
        let version = |number: u128| ResourceVersion::new(&number.to_string()).unwrap();
        prop_assert_eq!(version(one).partial_cmp(&version(other)), Some(one.cmp(&other)));
    }

    #[test]
    fn a_key_parses_back_to_its_parts(namespace in "[a-z/]{0,3}", name in "[a-z./]{0,3}") {
        if let Ok(key) = ObjectKey::new(Some(&namespace), &name) {
            prop_assert_eq!(key.namespace().unwrap_or_default(), namespace);
            prop_assert_eq!(key.name(), name);
            prop_assert_eq!(key.as_str().parse(), Ok(key.clone()));
        } else {
            prop_assert!(name.is_empty() || name.contains('/') || namespace.contains('/'));
        }
    }
}
