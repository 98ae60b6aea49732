//! Regrouping of messages whose repeated fields are not contiguous.
//!
//! The protobuf format permits writers to interleave the occurrences of repeated fields, and to split a message into
//! several, which readers merge. API servers do neither, so the decoder presents fields as they come and fails otherwise.
//! Such an object is rewritten here and decoded again.

use super::{
    fault::Fault,
    types::{Item, Member, Message, Slot},
    value::Place,
    wire::{Fields, Wire, put, put_bytes},
};

/// Returns `raw` with contiguous repeated fields and merged messages. Unknown fields are removed.
pub(super) fn regrouped(message: &'static Message, raw: &[u8], place: Place) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(raw.len());
    regroup(message, 0, raw, place.below()?, &mut out)?;
    Ok(out)
}

/// Regroups the fields of one level of a message.
fn regroup(
    message: &'static Message,
    level: u8,
    raw: &[u8],
    place: Place,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut numbered = Vec::new();
    let mut fields = Fields::new(raw);
    while let Some((number, value)) = fields.next()? {
        let slot = message.slot(level, number);
        if slot != Slot::Unknown {
            numbered.push((number, slot, value));
        }
    }
    // Stable, so the occurrences of a field stay in order.
    numbered.sort_by_key(|(number, ..)| *number);
    for occurrences in numbered.chunk_by(|one, other| one.0 == other.0) {
        let [(number, slot, value), ..] = *occurrences else { continue };
        let merged = || -> Result<Vec<u8>, Fault> {
            let mut merged = Vec::new();
            for (_, _, value) in occurrences {
                merged.extend_from_slice(value.bytes()?);
            }
            Ok(merged)
        };
        let index = match slot {
            Slot::Unknown => continue,
            Slot::Level(nested) => {
                let mut inner = Vec::new();
                regroup(message, nested, &merged()?, place, &mut inner)?;
                put_bytes(out, number, &inner);
                continue;
            }
            Slot::Field(index) => index,
        };
        match message.field(index).map(|field| field.member) {
            Some(Member::One(item @ Item::Message(_))) => {
                put_item(number, item, Wire::Bytes(&merged()?), place, out)?;
            }
            Some(Member::One(item)) => {
                let value = occurrences.last().map_or(value, |(_, _, last)| *last);
                put_item(number, item, value, place, out)?;
            }
            Some(Member::List(item)) => {
                for (_, _, value) in occurrences {
                    put_item(number, item, *value, place.below()?, out)?;
                }
            }
            Some(Member::Map(item)) => {
                for (_, _, value) in occurrences {
                    put_parts(number, *value, place.below()?, out, |part| (part == 2).then_some(item))?;
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// Writes a value with regrouped parts.
fn put_item(number: u32, item: Item, value: Wire<'_>, place: Place, out: &mut Vec<u8>) -> Result<(), Fault> {
    match item {
        Item::Message(id) => {
            let inner = regrouped(place.types.get(id), value.bytes()?, place)?;
            put_bytes(out, number, &inner);
        }
        Item::SchemaOrBool(id) => {
            put_parts(number, value, place, out, |part| (part == 2).then_some(Item::Message(id)))?;
        }
        Item::SchemaOrArray(id) => {
            put_parts(number, value, place, out, |part| matches!(part, 1 | 2).then_some(Item::Message(id)))?;
        }
        Item::SchemaOrStrings(id) => {
            put_parts(number, value, place, out, |part| (part == 1).then_some(Item::Message(id)))?;
        }
        Item::Scalar(_) | Item::Strings | Item::Raw => put(out, number, value),
    }
    Ok(())
}

/// Writes a message, with the fields of which `item` returns a type regrouped.
fn put_parts(
    number: u32,
    value: Wire<'_>,
    place: Place,
    out: &mut Vec<u8>,
    item: impl Fn(u32) -> Option<Item>,
) -> Result<(), Fault> {
    let mut inner = Vec::new();
    let mut fields = Fields::new(value.bytes()?);
    while let Some((part, value)) = fields.next()? {
        match item(part) {
            Some(item) => put_item(part, item, value, place.below()?, &mut inner)?,
            None => put(&mut inner, part, value),
        }
    }
    put_bytes(out, number, &inner);
    Ok(())
}
