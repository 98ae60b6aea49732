//! Tests of the protobuf decoder.

mod equality;
mod generate;
mod malformed;
mod metadata;
mod stream;

use watchkeeper_schema::{GroupVersionKind, TypeRef, builtin};

use super::{Protobuf, envelope::Envelope, wire::put_bytes};

/// Returns all kinds of objects in the table with their types.
fn kinds() -> Vec<(GroupVersionKind, TypeRef)> {
    let kinds: Vec<_> = builtin()
        .kinds()
        .filter(|(kind, _)| Protobuf::for_kind(&kind.group, &kind.version, &kind.kind).is_some())
        .map(|(kind, id)| (kind.clone(), TypeRef::builtin(Some(id))))
        .collect();
    assert!(kinds.len() > 70, "{} kinds", kinds.len());
    kinds
}

fn protobuf(kind: &GroupVersionKind) -> Protobuf {
    Protobuf::for_kind(&kind.group, &kind.version, &kind.kind).unwrap()
}

fn of(group: &str, kind: &str) -> (GroupVersionKind, TypeRef) {
    let kind = GroupVersionKind::new(group, "v1", kind);
    let id = builtin().find_kind(&kind);
    (kind, TypeRef::builtin(id))
}

/// Encodes a field with bytes.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, bytes);
    out
}

/// Returns a message in its envelope.
fn sealed(kind: &GroupVersionKind, raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Envelope { api_version: &kind.api_version(), kind: &kind.kind, raw }.put_start(&mut out, raw.len());
    out.extend_from_slice(raw);
    out
}
