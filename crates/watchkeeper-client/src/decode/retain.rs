//! The part of a document that a type reads, as compact JSON.
//!
//! A cache that keeps its objects encoded needs only what their type reads. [`decode_retaining`] decodes a value and
//! at the same time writes what the value was decoded from, without a macro and for any deserializer: [`Retain`]
//! wraps every level between the parser and the type, as `Frugal` does, and writes what the type is passed.
//!
//! A value that the type ignores is not written. Its absence must not be noticed when the written document is
//! decoded, so what is written instead depends on the place:
//!
//! | ignored value | written |
//! |---|---|
//! | of a member whose name is an identifier unknown to the type | nothing, nor the name |
//! | of any other member, such as a map's | the name, and `null` |
//! | an item of a list | `null`, so that the others keep their positions |
//! | inside `Some` | `0`, because `null` would be `None` |
//!
//! Types that deserialize into a buffer first (untagged and internally tagged enums, flattened structs) read, and
//! therefore retain, everything in it.

use std::{fmt, mem};

use serde::{
    Serialize,
    de::{
        Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
        Visitor,
    },
};

#[cfg(test)]
mod tests;

/// Decodes a value, and appends compact JSON that decodes to the same value to `out`. After an error, `out` is
/// as before.
///
/// The JSON is meant for the decoders of this crate. The arbitrary precision of numbers, a feature of `serde_json`
/// that this workspace does not enable, is not supported.
pub(crate) fn decode_retaining<'de, K: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    out: &mut Vec<u8>,
) -> Result<K, D::Error> {
    let start = out.len();
    let mut output = Output { bytes: mem::take(out), ..Output::default() };
    let result = K::deserialize(Retain::<D, VALUE>::new(deserializer, &mut output));
    output.or_else_write(start, b"null");
    *out = output.bytes;
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// The document that is being written.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// Whether the last name was requested as an identifier.
    is_identifier: bool,
    /// Whether the last name was requested as an identifier and is none of those that the type expects.
    is_unknown: bool,
    /// The start of a member whose name is written and whose value has not been requested.
    begun: Option<usize>,
}

impl Output {
    fn write<T: Serialize + ?Sized, E: Error>(&mut self, value: &T) -> Result<(), E> {
        serde_json::to_writer(&mut self.bytes, value).map_err(E::custom)
    }

    /// Writes `otherwise` if nothing was written since the length was `start`.
    fn or_else_write(&mut self, start: usize, otherwise: &[u8]) {
        if self.bytes.len() == start {
            self.bytes.extend_from_slice(otherwise);
        }
    }
}

/// The form of a value.
const VALUE: u8 = 0;
/// The form of the name of a member or variant: numbers are quoted too.
const NAME: u8 = 1;
/// The form of a `serde_json::value::RawValue`: a map of one string, which is the text of the value.
const RAW: u8 = 2;

/// The name by which `RawValue` requests the text of a value from `serde_json`.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// The message of the error for a name that JSON cannot represent.
const NOT_A_STRING: &str = "the name of a member is not a string";

/// A wrapper around any participant in a deserialization that writes the values that pass through.
struct Retain<'o, T, const FORM: u8> {
    inner: T,
    out: &'o mut Output,
    /// The names that the type expects in this place: members, or variants.
    names: &'static [&'static str],
}

impl<'o, T, const FORM: u8> Retain<'o, T, FORM> {
    fn new(inner: T, out: &'o mut Output) -> Self {
        Self { inner, out, names: &[] }
    }

    /// Writes a number or a boolean.
    fn write<V: Serialize, E: Error>(&mut self, value: V) -> Result<(), E> {
        if FORM != NAME {
            return self.out.write(&value);
        }
        self.out.bytes.push(b'"');
        self.out.write(&value)?;
        self.out.bytes.push(b'"');
        Ok(())
    }

    fn write_float<E: Error>(&mut self, value: f64) -> Result<(), E> {
        if !value.is_finite() {
            return Err(E::custom("a number that JSON cannot represent"));
        }
        self.write(value)
    }

    fn write_str<E: Error>(&mut self, value: &str) -> Result<(), E> {
        if FORM == RAW {
            self.out.bytes.extend_from_slice(value.as_bytes());
            return Ok(());
        }
        if FORM == NAME && self.out.is_identifier {
            self.out.is_unknown = !self.names.contains(&value);
        }
        self.out.write(value)
    }

    /// Writes an unsigned number. As an identifier it is the position of a name.
    fn write_unsigned<E: Error>(&mut self, value: u64) -> Result<(), E> {
        if FORM == NAME && self.out.is_identifier {
            let position = usize::try_from(value).unwrap_or(usize::MAX);
            let name = self.names.get(position).copied().unwrap_or_default();
            return self.write_str(name);
        }
        self.write(value)
    }

    /// Writes bytes as a string, which deserializes as bytes too, or else as a list of numbers.
    fn write_bytes<E: Error>(&mut self, value: &[u8]) -> Result<(), E> {
        match std::str::from_utf8(value) {
            Ok(text) => self.write_str(text),
            Err(_) if FORM == VALUE => self.out.write(value),
            Err(_) => Err(E::custom(NOT_A_STRING)),
        }
    }
}

/// Forwards methods of a deserializer with the visitor wrapped.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*) $($names:ident)?;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let mut visitor = Retain::<V, FORM>::new(visitor, self.out);
            visitor.names = forward!(self $($names)?);
            self.inner.$method($($argument,)* visitor)
        }
    )*};
    ($self:ident) => { $self.names };
    ($self:ident $names:ident) => { $names };
}

impl<'de, D: Deserializer<'de>, const FORM: u8> Deserializer<'de> for Retain<'_, D, FORM> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64(); deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64();
        deserialize_char(); deserialize_str(); deserialize_string();
        deserialize_bytes(); deserialize_byte_buf();
        deserialize_option();
        deserialize_unit(); deserialize_unit_struct(name: &'static str);
        deserialize_seq(); deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) fields;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) variants;
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        if FORM == VALUE && name == RAW_VALUE {
            let visitor = Retain::<V, RAW>::new(visitor, self.out);
            return self.inner.deserialize_newtype_struct(name, visitor);
        }
        self.inner.deserialize_newtype_struct(name, Retain::<V, FORM>::new(visitor, self.out))
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.out.is_identifier = true;
        let visitor = Retain::<V, FORM> { inner: visitor, out: self.out, names: self.names };
        self.inner.deserialize_identifier(visitor)
    }

    /// Writes nothing: the caller decides what an ignored value is.
    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Writes values without parts, and forwards them.
macro_rules! visit {
    ($($method:ident($value:ident: $type:ty) $write:ident($written:expr);)*) => {$(
        #[inline]
        fn $method<E: Error>(mut self, $value: $type) -> Result<V::Value, E> {
            self.$write($written)?;
            self.inner.$method($value)
        }
    )*};
}

impl<'de, V: Visitor<'de>, const FORM: u8> Visitor<'de> for Retain<'_, V, FORM> {
    type Value = V::Value;

    #[inline]
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(value: bool) write(value);
        visit_i8(value: i8) write(value);
        visit_i16(value: i16) write(value);
        visit_i32(value: i32) write(value);
        visit_i64(value: i64) write(value);
        visit_i128(value: i128) write(value);
        visit_u8(value: u8) write_unsigned(value.into());
        visit_u16(value: u16) write_unsigned(value.into());
        visit_u32(value: u32) write_unsigned(value.into());
        visit_u64(value: u64) write_unsigned(value);
        visit_u128(value: u128) write(value);
        visit_f32(value: f32) write_float(value.into());
        visit_f64(value: f64) write_float(value);
        visit_char(value: char) write_str(value.encode_utf8(&mut [0; 4]));
        visit_str(value: &str) write_str(value);
        visit_borrowed_str(value: &'de str) write_str(value);
        visit_string(value: String) write_str(&value);
        visit_bytes(value: &[u8]) write_bytes(value);
        visit_borrowed_bytes(value: &'de [u8]) write_bytes(value);
        visit_byte_buf(value: Vec<u8>) write_bytes(&value);
    }

    #[inline]
    fn visit_none<E: Error>(mut self) -> Result<V::Value, E> {
        self.write(())?;
        self.inner.visit_none()
    }

    #[inline]
    fn visit_unit<E: Error>(mut self) -> Result<V::Value, E> {
        self.write(())?;
        self.inner.visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let start = self.out.bytes.len();
        let value = self.inner.visit_some(Retain::<D, FORM>::new(deserializer, self.out))?;
        self.out.or_else_write(start, if FORM == NAME { b"\"\"" } else { b"0" });
        Ok(value)
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = Retain::<D, FORM> { inner: deserializer, out: self.out, names: self.names };
        self.inner.visit_newtype_struct(deserializer)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if FORM == NAME {
            return Err(Error::custom(NOT_A_STRING));
        }
        self.out.bytes.push(b'[');
        let value = self.inner.visit_seq(Items { inner: items, out: self.out, is_first: true })?;
        self.out.bytes.push(b']');
        Ok(value)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        let Self { inner, out, names } = self;
        if FORM == RAW {
            return inner.visit_map(RawMembers { inner: members, out });
        }
        if FORM == NAME {
            return Err(Error::custom(NOT_A_STRING));
        }
        out.bytes.push(b'{');
        let members = Members { inner: members, out: &mut *out, names, is_first: true, is_unknown: false };
        let value = inner.visit_map(members)?;
        if let Some(start) = out.begun.take() {
            out.bytes.truncate(start);
        }
        out.bytes.push(b'}');
        Ok(value)
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Variants { data, out: self.out, names: self.names })
    }
}

impl<'de, S: DeserializeSeed<'de>, const FORM: u8> DeserializeSeed<'de> for Retain<'_, S, FORM> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = Retain::<D, FORM> { inner: deserializer, out: self.out, names: self.names };
        self.inner.deserialize(deserializer)
    }
}

/// The items of a list.
struct Items<'o, A> {
    inner: A,
    out: &'o mut Output,
    is_first: bool,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let end = self.out.bytes.len();
        if !mem::take(&mut self.is_first) {
            self.out.bytes.push(b',');
        }
        let start = self.out.bytes.len();
        let item = self.inner.next_element_seed(Retain::<S, VALUE>::new(seed, self.out))?;
        match item {
            Some(_) => self.out.or_else_write(start, b"null"),
            None => self.out.bytes.truncate(end),
        }
        Ok(item)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// The members of an object.
struct Members<'o, A> {
    inner: A,
    out: &'o mut Output,
    names: &'static [&'static str],
    is_first: bool,
    is_unknown: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, key: K) -> Result<Option<K::Value>, A::Error> {
        let member_start = self.out.begun.take().unwrap_or(self.out.bytes.len());
        self.out.bytes.truncate(member_start);
        if !self.is_first {
            self.out.bytes.push(b',');
        }
        let name_start = self.out.bytes.len();
        (self.out.is_identifier, self.out.is_unknown) = (false, false);
        let key =
            self.inner.next_key_seed(Retain::<K, NAME> { inner: key, out: self.out, names: self.names })?;
        if key.is_none() {
            self.out.bytes.truncate(member_start);
            return Ok(key);
        }
        self.is_unknown = self.out.is_unknown;
        self.out.or_else_write(name_start, b"\"\"");
        self.out.bytes.push(b':');
        self.out.begun = Some(member_start);
        Ok(key)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, value: S) -> Result<S::Value, A::Error> {
        let member_start = self.out.begun.take();
        let start = self.out.bytes.len();
        let value = self.inner.next_value_seed(Retain::<S, VALUE>::new(value, self.out))?;
        match member_start {
            Some(member_start) if self.is_unknown && self.out.bytes.len() == start => {
                self.out.bytes.truncate(member_start);
            }
            _ => {
                self.out.or_else_write(start, b"null");
                self.is_first = false;
            }
        }
        Ok(value)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// The one member of a raw value, of which only the text is written.
struct RawMembers<'o, A> {
    inner: A,
    out: &'o mut Output,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for RawMembers<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, key: K) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, value: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Retain::<S, RAW>::new(value, self.out))
    }
}

/// A variant whose name has not been read.
struct Variants<'o, A> {
    data: A,
    out: &'o mut Output,
    names: &'static [&'static str],
}

impl<'de, 'o, A: EnumAccess<'de>> EnumAccess<'de> for Variants<'o, A> {
    type Error = A::Error;
    type Variant = Variant<'o, A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, name: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let start = self.out.bytes.len();
        self.out.is_identifier = false;
        let seed = Retain::<S, NAME> { inner: name, out: &mut *self.out, names: self.names };
        let (name, content) = self.data.variant_seed(seed)?;
        // The variant is known, even by a name that is not among `names`.
        self.out.is_unknown = false;
        Ok((name, Variant { content, out: self.out, start }))
    }
}

/// A variant whose name has been written.
struct Variant<'o, A> {
    content: A,
    out: &'o mut Output,
    /// The start of the name.
    start: usize,
}

impl<A> Variant<'_, A> {
    /// Turns the name into that of the one member of an object, writes the value and closes the object.
    fn member<T, E>(self, write: impl FnOnce(A, &mut Output) -> Result<T, E>) -> Result<T, E> {
        self.out.bytes.insert(self.start, b'{');
        self.out.bytes.push(b':');
        let start = self.out.bytes.len();
        let value = write(self.content, self.out)?;
        self.out.or_else_write(start, b"null");
        self.out.bytes.push(b'}');
        Ok(value)
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Variant<'_, A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.content.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.member(|content, out| content.newtype_variant_seed(Retain::<S, VALUE>::new(seed, out)))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.member(|content, out| content.tuple_variant(len, Retain::<V, VALUE>::new(visitor, out)))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.member(|content, out| {
            content.struct_variant(fields, Retain::<V, VALUE> { inner: visitor, out, names: fields })
        })
    }
}
