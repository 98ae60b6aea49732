//! Messages as maps: the members of an object, as its JSON has them.

use serde::{
    Deserializer,
    de::{DeserializeSeed, MapAccess, Visitor, value::BorrowedStrDeserializer},
};

use super::{
    envelope::Envelope,
    fault::{Cause, Fault},
    types::{Empty, Field, Item, Member, Message, MessageId, Slot, Types},
    value::{Entries, List, Null, Place, Value, deserialize_as},
    wire::{Fields, Wire},
};

/// The maximum number of messages within each other whose members JSON inlines.
pub(super) const LEVELS: usize = 4;

/// The number of managedFields in the metadata.
pub(super) const MANAGED_FIELDS: u32 = 17;

/// The members of a message. Fields are read while the visitor requests members.
pub(super) struct Members<'de> {
    message: &'static Message,
    place: Place,
    /// The type members of the envelope that have not been presented.
    types: [Option<(&'static str, &'de str)>; 2],
    /// The levels that are being read, innermost last.
    levels: [(u8, Fields<'de>); LEVELS],
    level: usize,
    /// The fields that have been presented, as a set of bits.
    seen: u128,
    pending: Pending<'de>,
    /// A field that is skipped.
    skipped: Option<u32>,
    /// The field to skip in `metadata`.
    skipped_in_metadata: Option<u32>,
}

/// The value of the key that was returned last.
enum Pending<'de> {
    None,
    /// The type member of an envelope.
    Text(&'de str),
    /// A single value.
    One(&'static Field, Item, Wire<'de>),
    /// The occurrences of a repeated field, and their number.
    List(Item, Fields<'de>, usize),
    /// The entries of a map.
    Map(Item, Fields<'de>),
    Null,
}

impl<'de> Members<'de> {
    pub(super) fn new(message: &'static Message, raw: &'de [u8], place: Place) -> Self {
        let nothing = (0, Fields::new(&[]));
        Self {
            message,
            place,
            types: [None, None],
            levels: [(0, Fields::new(raw)), nothing, nothing, nothing],
            level: 0,
            seen: 0,
            pending: Pending::None,
            skipped: None,
            skipped_in_metadata: None,
        }
    }

    /// Returns the field to present next. `None` at the end of the message.
    fn next_field(&mut self) -> Result<Option<&'static str>, Fault> {
        loop {
            let Some((level, fields)) = self.levels.get_mut(self.level) else { return Ok(None) };
            let level = *level;
            let before = fields.rest();
            let Some((number, value)) = fields.next()? else {
                if self.level == 0 {
                    return Ok(None);
                }
                self.level -= 1;
                continue;
            };
            let index = match self.message.slot(level, number) {
                Slot::Unknown => continue,
                Slot::Level(nested) => {
                    let nested = (nested, Fields::new(value.bytes().map_err(|fault| fault.or_at(before))?));
                    self.level += 1;
                    let Some(place) = self.levels.get_mut(self.level) else {
                        return Err(Fault::at(Cause::Depth, before));
                    };
                    *place = nested;
                    continue;
                }
                Slot::Field(index) => index,
            };
            let Some(field) = self.message.field(index) else { continue };
            if field.empty == Empty::Omitted && matches!(field.member, Member::One(_)) && value.is_zero()
                || self.skipped == Some(number)
            {
                continue;
            }
            let bit = 1 << index;
            if self.seen & bit != 0 {
                return Err(Fault::at(Cause::Scattered, before));
            }
            self.seen |= bit;
            self.pending = match field.member {
                Member::One(item) => Pending::One(field, item, value),
                Member::List(item) => {
                    let (run, length) = run(before, fields, number)?;
                    Pending::List(item, run, length)
                }
                Member::Map(item) => Pending::Map(item, run(before, fields, number)?.0),
            };
            return Ok(Some(field.name));
        }
    }

    /// Returns the next field that JSON contains although the message does not.
    fn next_missing(&mut self) -> Option<&'static str> {
        let index = self.message.missing(self.seen)?;
        self.seen |= 1 << index;
        let field = self.message.field(index)?;
        self.pending = match (field.empty, field.member) {
            (Empty::Zero, Member::One(item)) => Pending::One(field, item, item.zero()),
            _ => Pending::Null,
        };
        Some(field.name)
    }
}

/// Returns the contiguous occurrences of a repeated field, and their number. The first one has been read from `fields`.
#[inline]
fn run<'de>(before: &'de [u8], fields: &mut Fields<'de>, number: u32) -> Result<(Fields<'de>, usize), Fault> {
    let mut length = 1;
    while fields.peek() == Some(number) {
        fields.next()?;
        length += 1;
    }
    Ok((Fields::new(&before[..before.len() - fields.rest().len()]), length))
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Fault;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        for member in &mut self.types {
            if let Some((name, text)) = member.take() {
                self.pending = Pending::Text(text);
                return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some);
            }
        }
        let name = match self.next_field()? {
            Some(name) => Some(name),
            None => self.next_missing(),
        };
        name.map(|name| seed.deserialize(BorrowedStrDeserializer::new(name))).transpose()
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let place = self.place;
        match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::One(field, item, wire) => {
                let skipped = self.skipped_in_metadata.filter(|_| field.name == "metadata");
                let value = Value { item, wire, place, skipped };
                seed.deserialize(value).map_err(|fault| match wire {
                    Wire::Bytes(bytes) => fault.or_at(bytes),
                    _ => fault.or_at(self.levels[self.level].1.rest()),
                })
            }
            Pending::List(item, run, length) => seed
                .deserialize(List { item, run, number: None, length, place: place.below()? })
                .map_err(|fault| fault.or_at(run.rest())),
            Pending::Map(item, run) => seed
                .deserialize(Entries { item, run, place: place.below()?, value: None })
                .map_err(|fault| fault.or_at(run.rest())),
            Pending::Text(text) => seed.deserialize(Value::text(text, place)),
            Pending::Null | Pending::None => seed.deserialize(Null),
        }
    }
}

impl<'de> Members<'de> {
    /// Prepares a whole object, with the type members of its envelope. `skipped` is a field of the metadata that is not
    /// presented.
    pub(super) fn of_object(
        types: &'static Types,
        id: MessageId,
        envelope: &Envelope<'de>,
        max_depth: usize,
        skipped: Option<u32>,
    ) -> Result<Self, Fault> {
        let place = Place { types, depth: max_depth }.below()?;
        let mut members = Self::new(types.get(id), envelope.raw, place);
        let type_member = |name, text: &'de str| (!text.is_empty()).then_some((name, text));
        members.types = [type_member("apiVersion", envelope.api_version), type_member("kind", envelope.kind)];
        members.skipped_in_metadata = skipped;
        Ok(members)
    }

    /// Sets the number of a field that is not presented.
    pub(super) fn skipping(mut self, number: Option<u32>) -> Self {
        self.skipped = number;
        self
    }
}

impl<'de> Deserializer<'de> for Members<'de> {
    deserialize_as!(visit_map);
}
