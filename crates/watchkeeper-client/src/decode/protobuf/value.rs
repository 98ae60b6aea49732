//! Values of fields: scalars, objects, lists, maps, raw JSON, as their JSON would be.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserializer,
    de::{
        DeserializeSeed, Error as _, IntoDeserializer as _, MapAccess, SeqAccess, Visitor,
        value::{BorrowedStrDeserializer, MapAccessDeserializer},
    },
};
use watchkeeper_schema::Scalar;

use super::{
    super::frugal::Frugal,
    fault::{Cause, Fault},
    object::Members,
    time::Rfc3339,
    types::{Item, MessageId, Types},
    wire::{Fields, Wire},
};

/// The types, and the number of levels that may follow.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) types: &'static Types,
    pub(super) depth: usize,
}

impl Place {
    /// Returns the place of the parts of a value.
    #[inline]
    pub(super) fn below(self) -> Result<Self, Fault> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            None => Err(Fault::new(Cause::Depth)),
        }
    }
}

impl Item {
    /// Returns the wire form of the zero value.
    pub(super) fn zero(self) -> Wire<'static> {
        match self {
            Self::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Boolean) => Wire::Varint(0),
            Self::Scalar(Scalar::Number) => Wire::Fixed64(0),
            _ => Wire::Bytes(&[]),
        }
    }
}

/// A single value.
#[derive(Clone, Copy)]
pub(super) struct Value<'de> {
    pub(super) item: Item,
    pub(super) wire: Wire<'de>,
    pub(super) place: Place,
    /// A field of the message that is not presented.
    pub(super) skipped: Option<u32>,
}

/// The JSON form of a value that is not an object or a list.
enum Simple<'de> {
    Null,
    Bool(bool),
    Signed(i64),
    Float(f64),
    Text(&'de str),
    Owned(String),
    Time(Rfc3339),
}

impl<'de> Value<'de> {
    /// Presents a text, as any string of a message.
    pub(super) fn text(text: &'de str, place: Place) -> Self {
        Self { item: Item::Scalar(Scalar::String), wire: Wire::Bytes(text.as_bytes()), place, skipped: None }
    }

    fn members(self, id: MessageId, raw: &'de [u8]) -> Result<Members<'de>, Fault> {
        let place = self.place.below()?;
        Ok(Members::new(place.types.get(id), raw, place).skipping(self.skipped))
    }

    /// Reads a scalar.
    #[inline]
    fn simple(wire: Wire<'de>, scalar: Scalar) -> Result<Simple<'de>, Fault> {
        Ok(match scalar {
            Scalar::String => Simple::Text(wire.text()?),
            Scalar::Bytes => Simple::Owned(STANDARD.encode(wire.bytes()?)),
            Scalar::Int32 => Simple::Signed(wire.signed32()?.into()),
            Scalar::Int64 => Simple::Signed(wire.signed()?),
            Scalar::Boolean => Simple::Bool(wire.varint()? != 0),
            Scalar::Number => match wire {
                Wire::Fixed64(bits) => number(f64::from_bits(bits)),
                _ => return Err(Fault::new(Cause::Wire("a number has another wire type"))),
            },
            Scalar::IntOrString => int_or_string(wire.bytes()?)?,
            Scalar::Quantity => {
                let mut text = "";
                let mut fields = Fields::new(wire.bytes()?);
                while let Some((number, value)) = fields.next()? {
                    if number == 1 {
                        text = value.text()?;
                    }
                }
                Simple::Text(if text.is_empty() { "0" } else { text })
            }
            Scalar::Time | Scalar::MicroTime => {
                let message = wire.bytes()?;
                if message.is_empty() {
                    return Ok(Simple::Null);
                }
                Simple::Time(Rfc3339::read(message, scalar == Scalar::MicroTime)?)
            }
        })
    }

    /// Returns the value that a union consists of. `None` for null.
    fn alternative(self) -> Result<Option<Alternative<'de>>, Fault> {
        let (mut schema, mut text, mut list) = (None, false, false);
        let message = self.wire.bytes()?;
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match (self.item, number) {
                (Item::SchemaOrBool(_), 1) => text = value.varint()? != 0,
                (Item::SchemaOrBool(_), 2) | (Item::SchemaOrArray(_) | Item::SchemaOrStrings(_), 1) => {
                    schema = Some(value.bytes()?);
                }
                (Item::SchemaOrArray(_) | Item::SchemaOrStrings(_), 2) => list = true,
                _ => {}
            }
        }
        let (id, item) = match self.item {
            Item::SchemaOrBool(id) | Item::SchemaOrArray(id) => (id, Item::Message(id)),
            Item::SchemaOrStrings(id) => (id, Item::Scalar(Scalar::String)),
            _ => return Ok(None),
        };
        Ok(match (schema, self.item) {
            _ if list => Some(Alternative::List(List {
                item,
                run: Fields::new(message),
                number: Some(2),
                length: 0,
                place: self.place.below()?,
            })),
            (Some(schema), _) => Some(Alternative::Object(self.members(id, schema)?)),
            (None, Item::SchemaOrBool(_)) => Some(Alternative::Bool(text)),
            (None, _) => None,
        })
    }

    /// Returns the JSON document of a raw value. `None` for null.
    fn raw(self) -> Result<Option<&'de str>, Fault> {
        let mut text = "";
        let mut fields = Fields::new(self.wire.bytes()?);
        while let Some((number, value)) = fields.next()? {
            if number == 1 {
                text = value.text()?;
            }
        }
        Ok(Some(text.trim_ascii()).filter(|text| !text.is_empty() && *text != "null"))
    }

    fn strings(self) -> Result<List<'de>, Fault> {
        let run = Fields::new(self.wire.bytes()?);
        let item = Item::Scalar(Scalar::String);
        Ok(List { item, run, number: Some(1), length: 0, place: self.place.below()? })
    }
}

/// The value of a union.
#[expect(clippy::large_enum_variant, reason = "passed on at once, and not stored")]
enum Alternative<'de> {
    Bool(bool),
    Object(Members<'de>),
    List(List<'de>),
}

fn int_or_string(message: &[u8]) -> Result<Simple<'_>, Fault> {
    let (mut is_text, mut whole, mut text) = (false, 0, "");
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => is_text = value.varint()? != 0,
            2 => whole = value.signed32()?,
            3 => text = value.text()?,
            _ => {}
        }
    }
    Ok(if is_text { Simple::Text(text) } else { Simple::Signed(whole.into()) })
}

/// Returns a number as Go writes it in JSON: without a fraction, if it has none.
#[expect(clippy::cast_possible_truncation, reason = "the value is in the range of the type")]
fn number<'de>(value: f64) -> Simple<'de> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_whole =
        value.fract() == 0.0 && value.abs() <= EXACT && !(value == 0.0 && value.is_sign_negative());
    if is_whole { Simple::Signed(value as i64) } else { Simple::Float(value) }
}

impl<'de> Simple<'de> {
    #[inline]
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            // As a parser of JSON does.
            Self::Signed(value) => match u64::try_from(value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(value),
            },
            Self::Float(value) => visitor.visit_f64(value),
            Self::Text(text) => visitor.visit_borrowed_str(text),
            Self::Owned(text) => visitor.visit_string(text),
            Self::Time(time) => visitor.visit_str(time.text()),
        }
    }
}

/// Reads a JSON document with the parser of JSON.
fn parse<'de, T>(
    text: &'de str,
    read: impl FnOnce(
        Frugal<&mut serde_json::Deserializer<serde_json::de::StrRead<'de>>>,
    ) -> serde_json::Result<T>,
) -> Result<T, Fault> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = read(Frugal(&mut parser)).and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| {
        if error.is_data() {
            Fault::custom(error)
        } else {
            Fault::at(Cause::Wire("a raw member is not JSON"), text.as_bytes())
        }
    })
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Fault;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.item {
            Item::Scalar(scalar) => Self::simple(self.wire, scalar)?.visit(visitor),
            Item::Message(id) => visitor.visit_map(self.members(id, self.wire.bytes()?)?),
            Item::Strings => visitor.visit_seq(self.strings()?),
            Item::Raw => match self.raw()? {
                Some(text) => parse(text, |parser| parser.deserialize_any(visitor)),
                None => visitor.visit_unit(),
            },
            Item::SchemaOrBool(_) | Item::SchemaOrArray(_) | Item::SchemaOrStrings(_) => {
                match self.alternative()? {
                    Some(Alternative::Bool(value)) => visitor.visit_bool(value),
                    Some(Alternative::Object(members)) => visitor.visit_map(members),
                    Some(Alternative::List(list)) => visitor.visit_seq(list),
                    None => visitor.visit_unit(),
                }
            }
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let is_null = match self.item {
            Item::Scalar(Scalar::Time | Scalar::MicroTime) => self.wire.is_zero(),
            Item::Raw => self.raw()?.is_none(),
            Item::SchemaOrArray(_) | Item::SchemaOrStrings(_) => self.alternative()?.is_none(),
            _ => false,
        };
        if is_null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.item {
            Item::Message(id) => {
                let members = self.members(id, self.wire.bytes()?)?;
                visitor.visit_enum(MapAccessDeserializer::new(members))
            }
            Item::Scalar(scalar) => match Self::simple(self.wire, scalar)? {
                Simple::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
                Simple::Owned(text) => visitor.visit_enum(text.into_deserializer()),
                Simple::Time(time) => visitor.visit_enum(time.text().into_deserializer()),
                other => other.visit(visitor),
            },
            Item::Raw => match self.raw()? {
                Some(text) => parse(text, |parser| parser.deserialize_enum(name, variants, visitor)),
                None => visitor.visit_unit(),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    /// Bytes of JSON are those of a string or of a list of numbers.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.item {
            Item::Scalar(scalar) => match Self::simple(self.wire, scalar)? {
                Simple::Text(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
                Simple::Owned(text) => visitor.visit_byte_buf(text.into_bytes()),
                other => other.visit(visitor),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple tuple_struct map
        struct identifier
    }
}

/// A member without a value.
pub(super) struct Null;

impl<'de> Deserializer<'de> for Null {
    type Error = Fault;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_none()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The deserialization of a value that is never null and consists of others.
macro_rules! deserialize_as {
    ($method:ident) => {
        type Error = Fault;

        #[inline]
        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.$method(self)
        }

        #[inline]
        fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.visit_some(self)
        }

        #[inline]
        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _name: &'static str,
            visitor: V,
        ) -> Result<V::Value, Fault> {
            visitor.visit_newtype_struct(self)
        }

        #[inline]
        fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.visit_unit()
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
            tuple tuple_struct map struct enum identifier
        }
    };
}

pub(super) use deserialize_as;

/// The occurrences of a repeated field.
#[derive(Clone, Copy)]
pub(super) struct List<'de> {
    pub(super) item: Item,
    pub(super) run: Fields<'de>,
    /// The number of the field. `None` if `run` has no other fields.
    pub(super) number: Option<u32>,
    /// The number of items that follow; 0 if it is unknown.
    pub(super) length: usize,
    pub(super) place: Place,
}

impl<'de> Deserializer<'de> for List<'de> {
    deserialize_as!(visit_seq);
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Fault;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        loop {
            let before = self.run.rest();
            let Some((number, wire)) = self.run.next()? else { return Ok(None) };
            if self.number.is_some_and(|only| only != number) {
                continue;
            }
            self.length = self.length.saturating_sub(1);
            let value = Value { item: self.item, wire, place: self.place, skipped: None };
            return seed.deserialize(value).map(Some).map_err(|fault| fault.or_at(before));
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        (self.length > 0).then_some(self.length)
    }
}

/// The entries of a map, each of which is a message with a key and a value.
#[derive(Clone, Copy)]
pub(super) struct Entries<'de> {
    pub(super) item: Item,
    pub(super) run: Fields<'de>,
    pub(super) place: Place,
    /// The value of the key that was returned last.
    pub(super) value: Option<Wire<'de>>,
}

impl<'de> Deserializer<'de> for Entries<'de> {
    deserialize_as!(visit_map);
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((_, wire)) = self.run.next()? else { return Ok(None) };
        let (mut key, mut value) = ("", None);
        let mut fields = Fields::new(wire.bytes()?);
        while let Some((number, part)) = fields.next()? {
            match number {
                1 => key = part.text()?,
                2 => value = Some(part),
                _ => {}
            }
        }
        self.value = Some(value.unwrap_or(self.item.zero()));
        seed.deserialize(Value::text(key, self.place)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let wire = self.value.take().unwrap_or(self.item.zero());
        let value = Value { item: self.item, wire, place: self.place, skipped: None };
        seed.deserialize(value).map_err(|fault| match wire {
            Wire::Bytes(bytes) => fault.or_at(bytes),
            _ => fault,
        })
    }
}
