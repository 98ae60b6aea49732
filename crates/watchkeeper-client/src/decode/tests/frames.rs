//! Watch frames and their envelopes, including malformed ones.

use bytes::Bytes;

use crate::{
    decode::{DecodeError, FrameSplitter, WatchEventType, split_event},
    limits::Limits,
};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[test]
fn a_frame_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"{}\n{}\n");
    let mut rest = chunk.clone();
    let mut frames = FrameSplitter::new(&Limits::default());
    assert_eq!(frames.next_frame(&mut rest).unwrap().unwrap().as_ptr(), chunk.as_ptr());
    assert_eq!(frames.next_frame(&mut rest).unwrap().unwrap().as_ptr(), chunk[3..].as_ptr());
    assert_eq!(frames.next_frame(&mut rest).unwrap(), None);
}

#[test]
fn the_longest_event_passes_and_one_byte_more_does_not() {
    let limits = limits(|limits| limits.event_bytes = 10);
    for end in ["\n", "\r\n"] {
        for chunk_bytes in [1, 3, 64] {
            let run = |len: usize| {
                let mut frames = FrameSplitter::new(&limits);
                let mut found = Vec::new();
                for chunk in format!("{}{end}", "x".repeat(len)).as_bytes().chunks(chunk_bytes) {
                    let mut chunk = Bytes::copy_from_slice(chunk);
                    while let Some(frame) = frames.next_frame(&mut chunk)? {
                        found.push(frame.len());
                    }
                }
                Ok::<_, DecodeError>(found)
            };
            assert_eq!(run(10).unwrap(), [10]);
            let error = run(11).unwrap_err();
            assert!(
                matches!(error, DecodeError::TooLarge { limit: "event_bytes", bytes: 10, .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn an_event_that_is_too_long_is_located_where_it_exceeds_the_limit() {
    let limits = limits(|limits| limits.event_bytes = 10);
    let frames_before = "{}\n\n{\"a\":1}\r\n";
    for (line, chunks, behind) in [
        // A line of two bytes more than the limit, detected as soon as it has arrived.
        ("x".repeat(12), 1, 12),
        ("x".repeat(12) + "\n", 1, 12),
        ("x".repeat(12), 2, 12),
        // One byte too long: detected only when its end shows that the last byte is not `\r`.
        ("x".repeat(11) + "\n", 1, 12),
    ] {
        let body = format!("{frames_before}{line}");
        let mut frames = FrameSplitter::new(&limits);
        let (head, tail) = body.split_at(if chunks == 2 { frames_before.len() + 6 } else { body.len() });
        let mut found = 0;
        let error = [head, tail].into_iter().find_map(|part| {
            let mut part = Bytes::copy_from_slice(part.as_bytes());
            loop {
                match frames.next_frame(&mut part) {
                    Ok(Some(_)) => found += 1,
                    Ok(None) => return None,
                    Err(error) => return Some(error),
                }
            }
        });
        assert_eq!(found, 2, "{line:?}");
        let expected = (frames_before.len() + behind) as u64;
        assert!(
            matches!(error, Some(DecodeError::TooLarge { offset, .. }) if offset == expected),
            "{line:?}: {error:?}, expected byte {expected}"
        );
    }
}

#[test]
fn a_line_that_never_ends_is_rejected_before_it_is_buffered() {
    let limits = limits(|limits| limits.event_bytes = 1 << 20);
    let mut frames = FrameSplitter::new(&limits);
    let chunk = Bytes::from(vec![b'x'; 64 << 10]);
    let fed = (0..100).find(|_| frames.next_frame(&mut chunk.clone()).is_err()).unwrap();
    assert_eq!(fed, 16, "the chunk that would exceed the limit is the one refused");
}

#[test]
fn events_are_typed_or_rejected() {
    let event = |frame: &str| split_event(&Bytes::from(frame.to_owned()), 128);
    let sound = event(r#" {"object":{"a":[1]},"type":"MODIFI\u0045D","x":0} "#).unwrap();
    assert_eq!((sound.event_type, &sound.object[..]), (WatchEventType::Modified, &br#"{"a":[1]}"#[..]));

    let refuse = |frame: &str| event(frame).expect_err(frame);
    assert!(matches!(
        refuse(r#"{"type":"CHANGED","object":{}}"#),
        DecodeError::UnknownEventType { offset: 8 }
    ));
    assert!(matches!(refuse(r#"{"type":1,"object":{}}"#), DecodeError::WrongType { field: "type", .. }));
    assert!(matches!(refuse(r#"{"object":{}}"#), DecodeError::Missing { field: "type" }));
    assert!(matches!(refuse(r#"{"type":"ADDED"}"#), DecodeError::Missing { field: "object" }));
    assert!(matches!(
        refuse(r#"{"type":"ADDED","object":{},"object":{}}"#),
        DecodeError::Duplicate { field: "object", .. }
    ));
    assert!(matches!(refuse(r#"{"type":"ADDED","object":{"a":1}"#), DecodeError::Truncated { .. }));
    assert!(matches!(refuse(r#"{"type":"ADDED","object":{}}}"#), DecodeError::Syntax { .. }));
    assert!(matches!(refuse("<html>"), DecodeError::Syntax { offset: 0, .. }));
    assert!(matches!(refuse(r#"{"kind":"Status","code":410,"message":"gone"}"#), DecodeError::Status { .. }));
    assert!(matches!(refuse(r#"{"kind":"Table","rows":[]}"#), DecodeError::Table { .. }));
    let deep = format!(r#"{{"type":"ADDED","object":{}{}}}"#, "[".repeat(129), "]".repeat(129));
    assert!(matches!(refuse(&deep), DecodeError::TooDeep { limit: 128, .. }));
}
