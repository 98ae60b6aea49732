//! The list splitter finds exactly the items that serde_json finds, for any chunks.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde_json::value::RawValue;
use watchkeeper_client::{
    decode::{DecodeError, ListSplitter},
    limits::Limits,
};

#[derive(Deserialize)]
struct List {
    items: Option<Vec<Box<RawValue>>>,
}

fuzz_target!(|input: &[u8]| {
    let Some((&chunk_bytes, body)) = input.split_first() else {
        return;
    };
    let mut splitter = ListSplitter::new(&Limits::default());
    let mut split = || {
        let mut items = Vec::new();
        for chunk in body.chunks(usize::from(chunk_bytes).max(1)) {
            let mut chunk = Bytes::copy_from_slice(chunk);
            while let Some(item) = splitter.next_item(&mut chunk)? {
                items.push(item);
            }
        }
        Ok::<_, DecodeError>(items)
    };
    let found = split().and_then(|items| splitter.finish().map(|envelope| (items, envelope)));

    // As text: over bytes, serde_json skips strings that are not UTF-8 in members it does not read.
    let Ok(text) = std::str::from_utf8(body) else {
        return;
    };
    // Serde also accepts an array for a struct.
    if !text.trim_start().starts_with('{') {
        return;
    }
    let Ok(list) = serde_json::from_str::<List>(text) else {
        return;
    };
    match found {
        Ok((items, envelope)) => {
            let expected = list.items.unwrap_or_default();
            assert_eq!(items.len(), expected.len());
            assert_eq!(envelope.items, items.len() as u64);
            for (item, expected) in items.iter().zip(expected) {
                assert_eq!(item, expected.get().as_bytes());
            }
        }
        // Documents that serde_json accepts here but that are not a valid list.
        Err(
            DecodeError::Duplicate { .. }
            | DecodeError::TooDeep { .. }
            | DecodeError::Status { .. }
            | DecodeError::Table { .. }
            | DecodeError::NotAList
            | DecodeError::Mismatch { .. }
            | DecodeError::WrongType { field: "metadata", .. },
        ) => {}
        // A member that serde_json skipped here but parsed there: numbers out of range and lone surrogates.
        Err(DecodeError::Syntax { expected: "well-formed JSON", .. }) => {}
        Err(error) => panic!("a sound list was refused: {error}"),
    }
});
