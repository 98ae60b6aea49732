//! The cut removes exactly the field that serde_json reads as metadata.managedFields.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use watchkeeper_client::decode::cut_managed_fields;

fuzz_target!(|object: &[u8]| {
    let mut scratch = Vec::new();
    let cut = cut_managed_fields(object, &mut scratch);
    assert!(cut.len() <= object.len());
    // Of a member that occurs twice, a `Value` keeps the last, before and after the cut.
    let Ok(mut expected) = serde_json::from_slice::<Value>(object) else {
        return;
    };
    if let Some(metadata) = expected.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let cut: Value = serde_json::from_slice(cut).expect("cutting keeps a sound document sound");
    assert_eq!(cut, expected);
});
