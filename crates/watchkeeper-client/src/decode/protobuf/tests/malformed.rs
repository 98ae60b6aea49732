//! Malformed messages are errors, and never panic.

use k8s_openapi::{
    api::core::v1::Pod, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    super::{
        super::{Decode, DecodeError, Json, Protobuf},
        object::LEVELS,
        types::types,
        wire::{Wire, put},
    },
    field,
    generate::{Generator, Order},
    kinds, of, protobuf, sealed,
};

fn pod(bytes: &[u8]) -> Result<Value, DecodeError> {
    protobuf(&of("", "Pod").0).decode(bytes)
}

/// Reads everything that can be read of an object.
fn read_all(decoder: &Protobuf, bytes: &[u8]) {
    let value: Result<Value, _> = decoder.decode(bytes);
    let _: Result<Pod, _> = decoder.decode(bytes);
    let of_pods: &dyn Decode<Pod> = decoder;
    let _ = of_pods.identify(bytes, "Pod");
    let _ = of_pods.header(bytes);
    let mut kept = Vec::new();
    if of_pods.retain(bytes, &mut kept).is_ok()
        && let Ok(value) = value
    {
        let again: Value = decoder.decode(&kept).unwrap();
        assert_eq!(again, value);
    }
}

#[test]
fn no_type_has_more_members_or_levels_than_the_reader_supports() {
    for id in
        types().schemas().iter().filter_map(|(_, ty)| ty.name.as_deref()).filter_map(|n| types().named(n))
    {
        let message = types().get(id);
        assert!(message.len() <= 128);
        assert!(message.depth() <= LEVELS);
    }
}

#[test]
fn a_message_that_ends_at_any_byte_is_read_or_rejected() {
    for order in [Order::Contiguous, Order::Scattered] {
        let (kind, ty) = of("", "Pod");
        let (_, message) = Generator::new(3, order).object(&ty, 9);
        for bytes in [sealed(&kind, &message), message] {
            for end in 0..bytes.len() {
                read_all(&protobuf(&kind), &bytes[..end]);
            }
        }
    }
}

#[test]
fn errors_state_the_place_and_quote_nothing() {
    let name = |text: &[u8]| field(1, &field(1, text));
    match pod(&name(b"hun\xff")) {
        Err(DecodeError::Utf8 { offset }) => assert_eq!(offset, 7),
        other => panic!("{other:?}"),
    }
    match pod(&[0x0a, 5, 0x0a, 9]) {
        Err(DecodeError::Truncated { offset, .. }) => assert_eq!(offset, 4),
        other => panic!("{other:?}"),
    }
    // The name as a number.
    match pod(&field(1, &[0x08, 1])) {
        Err(DecodeError::Protobuf { offset, .. }) => assert!(offset <= 4),
        other => panic!("{other:?}"),
    }
    // A group, which proto3 does not have.
    assert!(matches!(pod(&[0x0b]), Err(DecodeError::Protobuf { offset: 0, .. })));
    assert!(matches!(pod(&[0x00]), Err(DecodeError::Protobuf { offset: 0, .. })));
    let wrong: Result<std::collections::BTreeMap<String, u8>, _> =
        protobuf(&of("", "ConfigMap").0).decode(&field(2, &[field(1, b"k"), field(2, b"hunter2")].concat()));
    match wrong {
        Err(DecodeError::Mismatch { reason, .. }) => {
            assert_eq!(reason, "invalid type: map, expected u8");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_time_outside_of_the_calendar_and_a_raw_member_that_is_not_json_are_rejected() {
    let mut time = Vec::new();
    put(&mut time, 1, Wire::Varint(u64::MAX >> 1));
    assert!(matches!(pod(&field(1, &field(9, &time))), Err(DecodeError::Protobuf { .. })));
    let revision = protobuf(&of("apps", "ControllerRevision").0);
    let data = |raw: &[u8]| -> Result<Value, _> { revision.decode(&field(2, &field(1, raw))) };
    assert!(data(b"{\"a\":1}").is_ok());
    assert!(matches!(data(b"{\"a\":"), Err(DecodeError::Protobuf { .. })));
    assert!(matches!(data(b"1 2"), Err(DecodeError::Protobuf { .. })));
    let deep = "[".repeat(5000);
    assert!(matches!(data(deep.as_bytes()), Err(DecodeError::Protobuf { .. })));
}

#[test]
fn nesting_is_limited_as_in_json() {
    let (kind, _) = of("apiextensions.k8s.io", "CustomResourceDefinition");
    // A schema of `levels` schemas within each other, in spec.versions[0].schema.openAPIV3Schema.
    let definition = |levels: usize| {
        let mut schema = Vec::new();
        for _ in 0..levels {
            // The field `not`.
            schema = field(28, &schema);
        }
        field(2, &field(7, &field(4, &field(1, &schema))))
    };
    let json = |levels: usize| {
        let (open, close) = ("{\"not\":".repeat(levels), "}".repeat(levels));
        format!("{{\"spec\":{{\"versions\":[{{\"schema\":{{\"openAPIV3Schema\":{open}{{}}{close}}}}}]}}}}")
    };
    let nested = |value: &Value| {
        let mut schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let mut levels = 0;
        while let Some(not) = schema.get("not") {
            (schema, levels) = (not, levels + 1);
        }
        levels
    };
    for limit in [20, 50, 127] {
        let decoder = protobuf(&kind).max_depth(limit);
        // The object, spec, the list, its item, schema, and the outermost schema.
        let fits = limit - 6;
        let value: Value = decoder.decode(&definition(fits)).unwrap();
        assert_eq!(nested(&value), fits);
        assert!(Decode::<Value>::decode(&Json::new().max_depth(limit), json(fits).as_bytes()).is_ok());
        let too_deep = definition(fits + 1);
        let value: Result<Value, _> = decoder.decode(&too_deep);
        assert!(matches!(value, Err(DecodeError::TooDeep { limit: l, .. }) if l == limit));
        assert!(Decode::<Value>::decode(&Json::new().max_depth(limit), json(fits + 1).as_bytes()).is_err());
    }
    let endless: Result<CustomResourceDefinition, _> = protobuf(&kind).decode(&definition(5000));
    assert!(matches!(endless, Err(DecodeError::TooDeep { .. })));
}

#[test]
fn scattered_messages_are_limited_in_depth_too() {
    let (kind, _) = of("apiextensions.k8s.io", "CustomResourceDefinition");
    let mut schema = Vec::new();
    for _ in 0..3000 {
        schema = field(28, &schema);
    }
    let version = field(7, &field(4, &field(1, &schema)));
    // The versions are scattered: one before and one after the group.
    let spec = [version.clone(), field(1, b"group"), version].concat();
    let value: Result<Value, _> = protobuf(&kind).decode(&field(2, &spec));
    assert!(matches!(value, Err(DecodeError::TooDeep { .. })), "{value:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn corrupted_messages_do_not_panic(
        seed: u64,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let kinds = kinds();
        let mut generator = Generator::new(seed, Order::Contiguous);
        let (kind, ty) = &kinds[usize::try_from(seed % kinds.len() as u64).unwrap()];
        let (_, message) = generator.object(ty, 6);
        let mut bytes = sealed(kind, &message);
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&protobuf(kind), &bytes);
    }

    #[test]
    fn random_bytes_are_no_objects_that_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        read_all(&protobuf(&of("", "Pod").0), &bytes);
        read_all(&Protobuf::metadata_only(), &[b"k8s\0", &bytes[..]].concat());
    }
}
