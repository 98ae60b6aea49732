//! Deserialization of lists with capacity for one element initially.
//!
//! JSON does not announce the length of a list, so `serde_json` gives no size hint, and a `Vec` without a
//! hint allocates capacity for four at its first element. Most lists in Kubernetes objects have one element:
//! ports, owners, addresses, container statuses (about 750 bytes each). A cache keeps the decoded object,
//! including the unused capacity. [`Frugal`] wraps every level between the parser and the type, and returns a
//! hint of one where the parser has none. Longer lists grow as usual: four, eight, and so forth.
//!
//! An empty list also allocates one element where it allocated none before: the hint is requested before the
//! first element, and serde cannot look ahead. API servers omit most empty lists.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

#[cfg(test)]
pub(super) mod tests;

/// A transparent wrapper around any participant in a deserialization. Everything that it passes on is wrapped
/// in turn, if it can contain a list. Values, errors and type names, by which some types are recognized, are
/// unchanged.
pub(super) struct Frugal<T>(pub(super) T);

/// Forwards methods for values that contain no lists: the visitor is passed on unwrapped.
macro_rules! forward {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(visitor)
        }
    )*};
}

/// Forwards methods for values that may contain lists: the visitor is wrapped.
macro_rules! forward_wrapped {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* Frugal(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Frugal<D> {
    type Error = D::Error;

    forward! {
        deserialize_bool
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_identifier
        deserialize_unit deserialize_ignored_any
    }

    forward_wrapped! {
        deserialize_any()
        deserialize_option()
        deserialize_seq()
        deserialize_map()
        // A list of numbers is accepted as bytes.
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Forwards visitor methods for values without parts.
macro_rules! forward_value {
    ($($method:ident($($value:ident: $type:ty)?))*) => {$(
        #[inline]
        fn $method<E: Error>(self, $($value: $type)?) -> Result<V::Value, E> {
            self.0.$method($($value)?)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Frugal<V> {
    type Value = V::Value;

    #[inline]
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    forward_value! {
        visit_bool(value: bool)
        visit_i8(value: i8) visit_i16(value: i16) visit_i32(value: i32) visit_i64(value: i64) visit_i128(value: i128)
        visit_u8(value: u8) visit_u16(value: u16) visit_u32(value: u32) visit_u64(value: u64) visit_u128(value: u128)
        visit_f32(value: f32) visit_f64(value: f64)
        visit_char(value: char)
        visit_str(value: &str) visit_borrowed_str(value: &'de str) visit_string(value: String)
        visit_bytes(value: &[u8]) visit_borrowed_bytes(value: &'de [u8]) visit_byte_buf(value: Vec<u8>)
        visit_none() visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Frugal(deserializer))
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Frugal(deserializer))
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(List { elements, is_begun: false })
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Frugal(members))
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Frugal(data))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Frugal<S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Frugal(deserializer))
    }
}

/// The elements of a list, with a size hint of one if the parser gives none.
struct List<A> {
    elements: A,
    is_begun: bool,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for List<A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.is_begun = true;
        self.elements.next_element_seed(Frugal(seed))
    }

    /// A guess that affects only the first allocation; a list that has begun may have any length.
    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.elements.size_hint().or((!self.is_begun).then_some(1))
    }
}

/// Keys are strings, so only values are wrapped.
impl<'de, A: MapAccess<'de>> MapAccess<'de> for Frugal<A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, key: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(key)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, value: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Frugal(value))
    }

    #[inline]
    fn next_entry_seed<K: DeserializeSeed<'de>, S: DeserializeSeed<'de>>(
        &mut self,
        key: K,
        value: S,
    ) -> Result<Option<(K::Value, S::Value)>, A::Error> {
        self.0.next_entry_seed(key, Frugal(value))
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

/// The name of a variant is a string, so only its content is wrapped.
impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Frugal<A> {
    type Error = A::Error;
    type Variant = Frugal<A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, name: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, variant) = self.0.variant_seed(name)?;
        Ok((name, Frugal(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Frugal<A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Frugal(seed))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Frugal(visitor))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Frugal(visitor))
    }
}
