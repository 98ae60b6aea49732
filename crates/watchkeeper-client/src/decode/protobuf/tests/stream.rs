//! Lists and watches, chunk by chunk.

use bytes::Bytes;
use proptest::prelude::*;

use super::{
    super::{
        super::{DecodeError, ListEnvelope, WatchEventType},
        MessageFrames, MessageList, bookmark_of_message,
        envelope::MAGIC,
        split_message, status_of_message,
        wire::{Wire, put},
    },
    field, of, sealed,
};
use crate::limits::Limits;

fn number(number: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, number, Wire::Varint(value));
    out
}

/// Returns an envelope with a message, as a server sends it.
fn body(kind: &str, message: &[u8]) -> Vec<u8> {
    let kind = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &kind), field(2, message), field(3, b""), field(4, b"")].concat()
}

/// Returns the message of a list with metadata, items and unknown fields.
fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let metadata = [field(1, b""), field(2, b"7"), field(3, b"next"), number(4, 12)].concat();
    let mut message = field(1, &metadata);
    for item in items {
        message.extend(field(2, item));
        put(&mut message, 900, Wire::Fixed64(1));
        message.extend(number(901, u64::MAX));
        message.extend(field(902, &[0; 200]));
        message.extend([0xb5, 0x38, 1, 2, 3, 4]);
    }
    message
}

type Read = Result<(Vec<Bytes>, ListEnvelope), DecodeError>;

fn read(limits: &Limits, chunks: &[&[u8]]) -> Read {
    let mut splitter = MessageList::new(limits);
    let mut items = Vec::new();
    for chunk in chunks {
        let mut chunk = Bytes::copy_from_slice(chunk);
        while let Some(item) = splitter.next_item(&mut chunk)? {
            items.push(item);
        }
        assert!(chunk.is_empty(), "a chunk is used up");
    }
    splitter.finish().map(|envelope| (items, envelope))
}

fn read_whole(body: &[u8]) -> Read {
    read(&Limits::default(), &[body])
}

fn items() -> Vec<Vec<u8>> {
    vec![field(1, b"metadata"), Vec::new(), field(1, &[7; 300]), field(1, b"x")]
}

#[test]
fn a_list_is_the_same_in_any_two_chunks_and_byte_by_byte() {
    let body = body("PodList", &list(&items()));
    let (found, envelope) = read_whole(&body).unwrap();
    assert_eq!(found, items());
    assert_eq!(envelope.kind.as_deref(), Some("PodList"));
    assert_eq!(envelope.api_version.as_deref(), Some("v1"));
    assert_eq!(envelope.resource_version.as_deref(), Some("7"));
    assert_eq!(envelope.continue_token.as_deref(), Some("next"));
    assert_eq!((envelope.remaining_item_count, envelope.items), (Some(12), 4));
    for at in 0..=body.len() {
        let (one, other) = body.split_at(at);
        assert_eq!(read(&Limits::default(), &[one, other]).unwrap(), (found.clone(), envelope.clone()));
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(read(&Limits::default(), &bytes).unwrap(), (found, envelope));
}

#[test]
fn a_list_that_ends_early_is_truncated_unless_only_trailing_fields_are_missing() {
    let body = body("PodList", &list(&items()));
    let complete = body.len() - 4;
    for end in 0..body.len() {
        let is_complete = end == complete || end == complete + 2;
        match read_whole(&body[..end]) {
            Ok((found, _)) => assert!(is_complete && found == items(), "{end} of {}", body.len()),
            Err(DecodeError::Truncated { offset, .. }) => assert!(!is_complete && offset == end as u64),
            // Before the message of the list.
            Err(DecodeError::NotAList) => assert!(end < 30, "{end}"),
            Err(other) => panic!("{end}: {other}"),
        }
    }
}

#[test]
fn an_item_within_a_chunk_is_not_copied() {
    let body = Bytes::from(body("PodList", &list(&items())));
    let mut chunk = body.clone();
    let item = MessageList::new(&Limits::default()).next_item(&mut chunk).unwrap().unwrap();
    assert!(body.as_ptr_range().contains(&item.as_ptr()));
}

#[test]
fn an_empty_list_has_no_items() {
    let (found, envelope) = read_whole(&body("PodList", &field(1, &field(2, b"7")))).unwrap();
    assert!(found.is_empty() && envelope.resource_version.as_deref() == Some("7"));
    let (found, envelope) = read_whole(&body("PodList", &[])).unwrap();
    assert!(found.is_empty() && envelope.resource_version.is_none());
}

#[test]
fn a_body_that_is_not_a_list_is_an_error() {
    let status = [field(3, b"it failed"), field(4, b"Expired"), number(6, 410)].concat();
    match read_whole(&body("Status", &status)) {
        Err(DecodeError::Status { status, .. }) => {
            assert_eq!((status.message.as_str(), status.reason.as_str()), ("it failed", "Expired"));
            assert_eq!(status.code, 410);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(read_whole(&body("Table", &[])), Err(DecodeError::Table { .. })));
    assert!(matches!(read_whole(&body("Pod", &list(&items()))), Err(DecodeError::NotAList)));
    assert!(matches!(read_whole(b"{\"kind\":\"PodList\"}"), Err(DecodeError::Protobuf { .. })));
    let untyped = [MAGIC.to_vec(), field(2, &list(&items()))].concat();
    assert!(matches!(read_whole(&untyped), Err(DecodeError::Missing { field: "kind" })));
    let twice = [body("PodList", &list(&items())), field(2, &list(&items()))].concat();
    assert!(matches!(read_whole(&twice), Err(DecodeError::Duplicate { .. })));
}

#[test]
fn a_field_that_exceeds_its_list_is_an_error() {
    let mut message = field(1, &field(2, b"7"));
    // Field 2 with ten bytes, of which the list has two.
    message.extend([0x12, 10, 1, 2]);
    let body = [body("PodList", &message), vec![0; 20]].concat();
    assert!(matches!(read_whole(&body), Err(DecodeError::Protobuf { .. })));
    // A tag whose second byte is outside.
    let cut = [MAGIC.to_vec(), field(1, &field(2, b"PodList")), field(2, &[0x80]), vec![1; 9]].concat();
    assert!(matches!(read_whole(&cut), Err(DecodeError::Protobuf { .. })));
}

#[test]
fn a_huge_length_is_rejected_before_its_bytes_arrive() {
    let limits = Limits { object_bytes: 1000, ..Limits::default() };
    let head = [MAGIC.to_vec(), field(1, &field(2, b"PodList")), vec![0x12]].concat();
    let varint = |value: u64| number(1, value)[1..].to_vec();
    for (length, is_accepted) in [(1000, true), (1001, false), (u64::from(u32::MAX), false)] {
        let body = [head.clone(), varint(u64::MAX / 2), vec![0x12], varint(length)].concat();
        match read(&limits, &[&body]) {
            Err(DecodeError::Truncated { .. }) => assert!(is_accepted, "{length}"),
            Err(DecodeError::TooLarge { limit: "object_bytes", .. }) => assert!(!is_accepted, "{length}"),
            other => panic!("{length}: {other:?}"),
        }
    }
    // Longer than 64 bits.
    let body = [head, vec![0xff; 10], vec![1]].concat();
    assert!(matches!(read(&limits, &[&body]), Err(DecodeError::Protobuf { .. })));
}

fn frame(message: &[u8]) -> Vec<u8> {
    [u32::try_from(message.len()).unwrap().to_be_bytes().to_vec(), message.to_vec()].concat()
}

fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    [field(1, kind.as_bytes()), field(2, &field(1, object))].concat()
}

fn frames(limits: &Limits, chunks: &[&[u8]]) -> Result<Vec<Bytes>, DecodeError> {
    let mut splitter = MessageFrames::new(limits);
    let mut found = Vec::new();
    for chunk in chunks {
        let mut chunk = Bytes::copy_from_slice(chunk);
        while let Some(frame) = splitter.next_frame(&mut chunk)? {
            found.push(frame);
        }
    }
    splitter.finish().map(|()| found)
}

#[test]
fn frames_are_the_same_in_any_chunks_and_a_cut_one_is_truncated() {
    let messages = [event("ADDED", b"one"), event("MODIFIED", &[7; 300]), event("BOOKMARK", b"")];
    let body: Vec<u8> = messages.iter().flat_map(|message| frame(message)).collect();
    let ends: Vec<usize> =
        (0..=messages.len()).map(|count| messages[..count].iter().map(|m| m.len() + 4).sum()).collect();
    let limits = Limits::default();
    for at in 0..=body.len() {
        let (one, other) = body.split_at(at);
        assert_eq!(frames(&limits, &[one, other]).unwrap(), messages);
        match frames(&limits, &[one]) {
            Ok(found) => assert_eq!(ends.get(found.len()), Some(&at)),
            Err(DecodeError::Truncated { offset, .. }) => assert!(!ends.contains(&at) && offset == at as u64),
            Err(other) => panic!("{at}: {other}"),
        }
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(frames(&limits, &bytes).unwrap(), messages);
    assert_eq!(frames(&limits, &[&[0; 4], &frame(&messages[0])]).unwrap(), messages[..1]);
}

#[test]
fn a_frame_above_the_limit_is_rejected_at_its_length() {
    let limits = Limits { event_bytes: 100, ..Limits::default() };
    assert_eq!(frames(&limits, &[&frame(&[1; 100])]).unwrap().len(), 1);
    let too_large = frames(&limits, &[&101_u32.to_be_bytes()]);
    assert!(matches!(too_large, Err(DecodeError::TooLarge { limit: "event_bytes", .. })));
    let too_large = frames(&limits, &[&u32::MAX.to_be_bytes()]);
    assert!(matches!(too_large, Err(DecodeError::TooLarge { limit: "event_bytes", .. })));
}

#[test]
fn a_frame_has_a_known_type_and_an_object() {
    let split = |message: Vec<u8>| split_message(&message.into());
    for (name, expected) in [
        ("ADDED", WatchEventType::Added),
        ("MODIFIED", WatchEventType::Modified),
        ("DELETED", WatchEventType::Deleted),
        ("BOOKMARK", WatchEventType::Bookmark),
        ("ERROR", WatchEventType::Error),
    ] {
        let found = split([field(9, b"unknown"), event(name, b"object")].concat()).unwrap();
        assert_eq!((found.event_type, &found.object[..]), (expected, &b"object"[..]));
    }
    assert!(matches!(split(event("OTHER", b"object")), Err(DecodeError::UnknownEventType { offset: 2 })));
    assert!(matches!(split(field(1, b"ADDED")), Err(DecodeError::Missing { field: "object" })));
    assert!(matches!(split(field(2, &field(1, b"x"))), Err(DecodeError::Missing { field: "type" })));
    assert!(matches!(split(vec![0x0a, 9, 1]), Err(DecodeError::Truncated { .. })));
}

#[test]
fn a_bookmark_has_a_version_and_tells_the_end_of_initial_events() {
    let (kind, _) = of("", "Pod");
    let annotation =
        |value: &[u8]| field(12, &[field(1, b"k8s.io/initial-events-end"), field(2, value)].concat());
    let bookmark = |metadata: Vec<u8>| bookmark_of_message(&sealed(&kind, &field(1, &metadata)));
    let end = bookmark([field(6, b"7"), annotation(b"true")].concat()).unwrap();
    assert_eq!((end.resource_version.as_str(), end.initial_events_end), ("7", true));
    assert!(!bookmark([field(6, b"7"), annotation(b"false")].concat()).unwrap().initial_events_end);
    assert!(!bookmark(field(6, b"7")).unwrap().initial_events_end);
    assert!(matches!(
        bookmark(field(6, b"")),
        Err(DecodeError::Missing { field: "metadata.resourceVersion" })
    ));
}

#[test]
fn the_object_of_an_error_event_is_a_status() {
    let status = status_of_message(&body("Status", &[field(4, b"Expired"), number(6, 410)].concat()));
    assert_eq!(status.unwrap().code, 410);
    let other = status_of_message(&body("Pod", &[]));
    assert!(matches!(other, Err(DecodeError::WrongKind { expected }) if expected == "Status"));
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..200_usize) {
        let head = [MAGIC.to_vec(), field(1, &field(2, b"PodList")), vec![0x12, 0x7f]].concat();
        let cut = cut.min(bytes.len());
        let (one, other) = bytes.split_at(cut);
        for head in [&head[..], MAGIC, b""] {
            let whole = [head, &bytes].concat();
            let in_parts = read(&Limits::default(), &[head, one, other]);
            prop_assert_eq!(read_whole(&whole).ok(), in_parts.ok());
        }
        let limits = Limits { event_bytes: 100, ..Limits::default() };
        let whole = frames(&limits, &[&bytes]);
        if let Ok(frames) = &whole {
            for frame in frames {
                let _ = split_message(frame);
            }
        }
        prop_assert_eq!(whole.ok(), frames(&limits, &[one, other]).ok());
        let _ = bookmark_of_message(&bytes);
        let _ = status_of_message(&bytes);
    }
}
