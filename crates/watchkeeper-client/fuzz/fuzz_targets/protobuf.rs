//! An object in protobuf is read or rejected, and the bytes kept of it decode to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use watchkeeper_client::decode::{Decode, Protobuf};

fuzz_target!(|object: &[u8]| {
    for kind in ["Pod", "ConfigMap", "Event"] {
        let decoder = Protobuf::for_kind("", "v1", kind).expect("a built-in kind");
        let decoder: &dyn Decode<Value> = &decoder;
        let decoded = decoder.decode(object);
        let mut kept = Vec::new();
        if decoder.retain(object, &mut kept).is_ok()
            && let Ok(decoded) = decoded
        {
            assert_eq!(decoder.decode(&kept).expect("the kept bytes decode"), decoded);
        }
        let _ = decoder.identify(object, kind);
        let _ = decoder.header(object);
    }
});
