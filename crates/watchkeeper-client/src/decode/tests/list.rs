//! List bodies, including malformed ones.

use bytes::Bytes;
use serde_json::json;

use crate::{
    decode::{DecodeError, ListEnvelope, ListSplitter},
    limits::Limits,
};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Splits the list in one chunk and byte by byte; the results must be equal.
fn split_within(body: &[u8], limits: &Limits) -> Result<(Vec<String>, ListEnvelope), DecodeError> {
    let run = |chunk_bytes: usize| {
        let mut splitter = ListSplitter::new(limits);
        let mut items = Vec::new();
        for chunk in body.chunks(chunk_bytes) {
            let mut chunk = Bytes::copy_from_slice(chunk);
            while let Some(item) = splitter.next_item(&mut chunk)? {
                items.push(String::from_utf8_lossy(&item).into_owned());
            }
        }
        Ok((items, splitter.finish()?))
    };
    let dripped: Result<_, DecodeError> = run(1);
    let whole: Result<_, DecodeError> = run(body.len().max(1));
    match (&whole, &dripped) {
        (Ok(whole), Ok(dripped)) => assert_eq!(whole, dripped),
        (Err(whole), Err(dripped)) => {
            assert_eq!(std::mem::discriminant(whole), std::mem::discriminant(dripped), "{whole} / {dripped}");
        }
        _ => panic!("whole: {whole:?}, byte by byte: {dripped:?}"),
    }
    whole
}

fn split(body: &str) -> Result<(Vec<String>, ListEnvelope), DecodeError> {
    split_within(body.as_bytes(), &Limits::default())
}

#[test]
fn lists_come_in_every_legal_shape() {
    for (what, body, expected) in [
        ("compact", r#"{"kind":"L","items":[{"a":1},{"b":2}]}"#, &[r#"{"a":1}"#, r#"{"b":2}"#][..]),
        ("empty", r#"{"items":[]}"#, &[]),
        ("empty with blanks", " {\r\n\"items\" :\t[ \n ] } \n", &[]),
        ("null items", r#"{"items":null,"kind":"L"}"#, &[]),
        ("metadata last", r#"{"items":[{}],"metadata":{"resourceVersion":"9"}}"#, &["{}"]),
        ("escaped key", r#"{"item\u0073":[{"a":1}]}"#, &[r#"{"a":1}"#]),
        ("wholly escaped key", r#"{"\u0069\u0074\u0065\u006d\u0073":[1]}"#, &["1"]),
        (
            "a nested items before",
            r#"{"x":{"items":[1]},"items":[{"items":[2,[3]]}]}"#,
            &[r#"{"items":[2,[3]]}"#],
        ),
        (
            "a string that looks like items",
            r#"{"x":"\"items\":[{","items":["]}","\\\"]"]}"#,
            &[r#""]}""#, r#""\\\"]""#],
        ),
        (
            "pretty printed",
            "{\n  \"items\": [\n    {\n      \"a\": 1\n    },\n    2\n  ]\n}\n",
            &["{\n      \"a\": 1\n    }", "2"],
        ),
        (
            "scalars",
            r#"{"items":[ 1 ,-2.5e3,true,null,"s",[ ]]}"#,
            &["1", "-2.5e3", "true", "null", "\"s\"", "[ ]"],
        ),
        ("a very long key", &format!(r#"{{"{}":1,"items":[0]}}"#, "items".repeat(40)), &["0"]),
        (
            "a long key ending in an escaped quote",
            &format!(r#"{{"{}\"":1,"items":[0]}}"#, "x".repeat(59)),
            &["0"],
        ),
    ] {
        let (items, _) = split(body).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(items, expected, "{what}");
    }
}

#[test]
fn the_envelope_is_read_wherever_it_stands() {
    let metadata =
        r#""metadata":{"resourceVersion":"12","continue":"to\"ken","remainingItemCount":5,"x":[{}]}"#;
    for body in [
        format!(r#"{{"kind":"PodList","apiVersion":"v1",{metadata},"items":[{{}}]}}"#),
        format!(r#"{{"items":[{{}}],"apiVersion":"v1",{metadata},"kind":"PodList"}}"#),
    ] {
        let (_, envelope) = split(&body).unwrap();
        assert_eq!(envelope.kind.as_deref(), Some("PodList"));
        assert_eq!(envelope.api_version.as_deref(), Some("v1"));
        assert_eq!(envelope.resource_version.as_deref(), Some("12"));
        assert_eq!(envelope.continue_token.as_deref(), Some("to\"ken"));
        assert_eq!(envelope.remaining_item_count, Some(5));
        assert_eq!(envelope.items, 1);
    }
    let (_, envelope) = split(r#"{"metadata":{"continue":"","resourceVersion":""},"items":[]}"#).unwrap();
    assert_eq!((envelope.continue_token, envelope.resource_version), (None, None), "empty is absent");
}

#[test]
fn a_document_that_is_no_list_is_never_an_empty_one() {
    let refuse = |body: &str| split(body).map(|_| ()).expect_err(body);
    assert!(matches!(refuse(r#"{"kind":"Pod","metadata":{}}"#), DecodeError::NotAList));
    assert!(matches!(refuse("{}"), DecodeError::NotAList));
    assert!(matches!(refuse(r#"{"items":{}}"#), DecodeError::WrongType { field: "items", .. }));
    assert!(matches!(refuse(r#"{"items":"[]"}"#), DecodeError::WrongType { field: "items", .. }));
    assert!(matches!(refuse(r#"{"items":nil}"#), DecodeError::Syntax { .. }));
    assert!(matches!(refuse(r#"{"kind":"Table","rows":[{}],"items":[]}"#), DecodeError::Table { .. }));
    assert!(matches!(refuse(r#"{"rows":[{}],"kind":"T\u0061ble"}"#), DecodeError::Table { .. }));
    assert!(matches!(refuse(r#"{"items":[],"items":[]}"#), DecodeError::Duplicate { field: "items", .. }));
    assert!(matches!(refuse(r#"{"items":null,"items":[]}"#), DecodeError::Duplicate { field: "items", .. }));
    assert!(matches!(
        refuse(r#"{"metadata":{},"metadata":{},"items":[]}"#),
        DecodeError::Duplicate { field: "metadata", .. }
    ));
    assert!(matches!(
        refuse(r#"{"metadata":["7"],"items":[]}"#),
        DecodeError::WrongType { field: "metadata", .. }
    ));
    let status = json!({ "kind": "Status", "status": "Failure", "message": "gone", "reason": "Expired", "code": 410,
        "details": { "retryAfterSeconds": 1 } });
    match refuse(&status.to_string()) {
        DecodeError::Status { status, .. } => {
            assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn broken_lists_are_rejected_where_they_break() {
    for (body, expected) in [
        ("", "ends at byte 0"),
        ("[]", "at byte 0: expected `{`"),
        ("garbage", "at byte 0: expected `{`"),
        ("\u{feff}{}", "at byte 0: expected `{`"),
        (r#"{"items":[{"a":1},]}"#, "at byte 18: expected an item"),
        (r#"{"items":[{"a":1}{}]}"#, "at byte 17: expected `,` or `]`"),
        (r#"{"items":[,{}]}"#, "at byte 10: expected an item"),
        (r#"{"items":[]]}"#, "at byte 11: expected `,` or `}`"),
        (r#"{"items":[],}"#, "at byte 12: expected a key"),
        (r#"{"items" []}"#, "at byte 9: expected `:`"),
        (r#"{"items":}"#, "must be an array"),
        (r#"{"items":[]} {"#, "at byte 13: expected the end of the list"),
        (r#"{"items":[{"a":1}"#, "ends at byte 17, inside the items of a list"),
        (r#"{"items":[{"a":"}"#, "ends at byte 17, inside a list item"),
        (r#"{"items":[{"a":1}]"#, "ends at byte 18, inside a list"),
    ] {
        let error = split(body).map(|_| ()).expect_err(body).to_string();
        assert!(error.contains(expected), "{body}: {error}");
    }
}

#[test]
fn each_limit_of_a_list_is_named_when_it_is_hit() {
    let within = |body: &str, limits: &Limits| split_within(body.as_bytes(), limits).map(|_| ());
    let item = format!(r#"{{"a":"{}"}}"#, "x".repeat(92));
    let body = format!(r#"{{"items":[{item}]}}"#);
    assert_eq!(item.len(), 100);

    assert!(within(&body, &limits(|l| l.object_bytes = 100)).is_ok());
    let error = within(&body, &limits(|l| l.object_bytes = 99)).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { limit: "object_bytes", bytes: 99, .. }), "{error}");

    assert!(within(&body, &limits(|l| l.page_bytes = 1)).is_ok(), "the total size is not limited");

    let metadata = format!(r#"{{"metadata":{{"x":"{}"}},"items":[]}}"#, "x".repeat(200));
    let error = within(&metadata, &limits(|l| l.object_bytes = 150)).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { limit: "object_bytes", .. }), "{error}");

    let envelope = r#"{"kind":"PodList""#.len();
    let body = r#"{"kind":"PodList","items":[],"ignored":"................"}"#;
    assert!(within(body, &limits(|l| l.object_bytes = envelope)).is_ok());
    let error = within(body, &limits(|l| l.object_bytes = envelope - 1)).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { part: "the metadata of a list", .. }), "{error}");

    for (deep, is_ok) in [(128, true), (129, false), (10_000, false)] {
        for body in [
            format!(r#"{{"items":[{}{}]}}"#, "[".repeat(deep), "]".repeat(deep)),
            format!(r#"{{"other":{}{},"items":[]}}"#, "[".repeat(deep), "]".repeat(deep)),
        ] {
            match within(&body, &Limits::default()) {
                Ok(()) => assert!(is_ok, "{deep}"),
                Err(DecodeError::TooDeep { limit: 128, .. }) => assert!(!is_ok, "{deep}"),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn an_item_that_is_nested_too_deeply_is_located_at_the_bracket_that_is_too_deep() {
    let body = br#"{"items":[1, [[[0]]]]}"#;
    for chunk_bytes in 1..=body.len() {
        let mut splitter = ListSplitter::new(&limits(|l| l.json_depth = 2));
        let error = body.chunks(chunk_bytes).find_map(|chunk| {
            let mut chunk = Bytes::copy_from_slice(chunk);
            loop {
                match splitter.next_item(&mut chunk) {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(error) => return Some(error),
                }
            }
        });
        assert!(
            matches!(error, Some(DecodeError::TooDeep { limit: 2, offset: 15 })),
            "in chunks of {chunk_bytes}: {error:?}"
        );
    }
}

#[test]
fn an_item_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(br#"{"items":[{"a":1},{"b":2}]}"#);
    let mut rest = chunk.clone();
    let mut splitter = ListSplitter::new(&Limits::default());
    let item = splitter.next_item(&mut rest).unwrap().unwrap();
    assert_eq!(item.as_ptr(), chunk[10..].as_ptr());
}
