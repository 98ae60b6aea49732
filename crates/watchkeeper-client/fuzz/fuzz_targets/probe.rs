//! The probe reads the same values as serde_json.
#![no_main]

use std::fmt;

use libfuzzer_sys::fuzz_target;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use watchkeeper_client::decode::{DecodeError, probe};

/// The members of an object in their order, including duplicates.
struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// Returns the first member of the name, which is the one that counts.
    fn first(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

fuzz_target!(|object: &[u8]| {
    let found = probe(object);
    let Ok(members) = serde_json::from_slice::<Members>(object) else {
        return;
    };
    let Some(metadata) = members.first("metadata") else {
        assert!(matches!(found, Err(DecodeError::Missing { field: "metadata" })));
        return;
    };
    let Ok(metadata) = serde_json::from_str::<Members>(metadata.get()) else {
        // Not an object, or one whose keys serde_json cannot read; the probe may have stopped before them.
        return;
    };
    let fields = ["name", "namespace", "uid", "resourceVersion"].map(|name| metadata.first(name));
    // A string that serde_json skips but cannot read contains a lone surrogate.
    let Ok(fields) = fields
        .into_iter()
        .map(|raw| raw.map_or(Ok(Value::Null), |raw| serde_json::from_str(raw.get())))
        .collect::<Result<Vec<Value>, _>>()
    else {
        return;
    };
    let parts: Vec<_> = fields.iter().map(|value| value.as_str().filter(|text| !text.is_empty())).collect();
    match found {
        Ok(identity) => {
            let read =
                [Some(identity.name()), identity.namespace(), identity.uid(), identity.resource_version()];
            assert_eq!(read[..], parts[..]);
        }
        Err(DecodeError::Missing { field: "metadata.name" }) => assert_eq!(parts[0], None),
        Err(DecodeError::WrongType { .. }) => {
            assert!(fields.iter().any(|value| !value.is_null() && !value.is_string()));
        }
        Err(error) => panic!("a sound object was refused: {error}"),
    }
});
