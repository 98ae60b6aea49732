//! The code that derived views have in common. Only generated code may use this module.

use std::{fmt, marker::PhantomData};

pub use std::borrow::Cow;

pub use kube_core::{ObjectMeta, Resource};
pub use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess},
    ser::{SerializeMap, SerializeSeq},
};

use serde::{
    de::{DeserializeSeed, Error, IgnoredAny, Visitor},
    forward_to_deserialize_any,
};

/// The members of an object that are read.
pub trait Members {
    /// The values that have been read.
    type Slots;

    /// The names of the members.
    const NAMES: &'static [&'static str];

    /// Reads the value of the member at this position of [`NAMES`](Self::NAMES), or skips it if there is no
    /// such position.
    ///
    /// # Errors
    /// Returns an error if the value does not match its type.
    fn read<'de, A: MapAccess<'de>>(
        slots: &mut Self::Slots,
        member: usize,
        members: &mut A,
    ) -> Result<(), A::Error>;
}

/// The items of a list that are read.
pub trait Items {
    /// The values that have been read.
    type Slots;

    /// Reads the next item. Returns false at the end of the list.
    ///
    /// # Errors
    /// Returns an error if the item does not match its type.
    fn read<'de, A: SeqAccess<'de>>(slots: &mut Self::Slots, items: &mut A) -> Result<bool, A::Error>;
}

/// Reads a document.
///
/// # Errors
/// Returns an error if the document does not match the types of the view.
pub fn read_object<'de, N: Members, D: Deserializer<'de>>(
    slots: &mut N::Slots,
    deserializer: D,
) -> Result<(), D::Error> {
    Object::<N>(slots).deserialize(deserializer)
}

/// Reads the value of a member that is an object.
///
/// # Errors
/// Returns an error if the value does not match the types of the view.
pub fn read_object_member<'de, N: Members, A: MapAccess<'de>>(
    slots: &mut N::Slots,
    members: &mut A,
) -> Result<(), A::Error> {
    members.next_value_seed(Nullable(Object::<N>(slots)))
}

/// Reads the value of a member that is a list.
///
/// # Errors
/// Returns an error if the value does not match the types of the view.
pub fn read_list_member<'de, N: Items, A: MapAccess<'de>>(
    slots: &mut N::Slots,
    members: &mut A,
) -> Result<(), A::Error> {
    members.next_value_seed(Nullable(List::<N>(slots)))
}

/// Reads an item that is an object.
///
/// # Errors
/// Returns an error if the item does not match the types of the view.
pub fn read_object_item<'de, N: Members, A: SeqAccess<'de>>(
    slots: &mut N::Slots,
    items: &mut A,
) -> Result<bool, A::Error> {
    Ok(items.next_element_seed(Nullable(Object::<N>(slots)))?.is_some())
}

/// Reads an item that is a list.
///
/// # Errors
/// Returns an error if the item does not match the types of the view.
pub fn read_list_item<'de, N: Items, A: SeqAccess<'de>>(
    slots: &mut N::Slots,
    items: &mut A,
) -> Result<bool, A::Error> {
    Ok(items.next_element_seed(Nullable(List::<N>(slots)))?.is_some())
}

/// Reads an item that is stored.
///
/// # Errors
/// Returns an error if the item does not match its type.
pub fn read_item<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
    values: &mut Vec<T>,
    items: &mut A,
) -> Result<bool, A::Error> {
    let Some(value) = items.next_element()? else { return Ok(false) };
    push(values, value);
    Ok(true)
}

/// Reads the value of a member of an item.
///
/// # Errors
/// Returns an error if the value does not match its type.
pub fn read_item_member<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    values: &mut Vec<T>,
    members: &mut A,
) -> Result<(), A::Error> {
    push(values, members.next_value()?);
    Ok(())
}

/// Adds a value unless it is absent. Most lists have one item, so the first one allocates the capacity of one.
fn push<T>(values: &mut Vec<T>, value: Option<T>) {
    if values.is_empty() && value.is_some() {
        values.reserve_exact(1);
    }
    values.extend(value);
}

/// Skips the value of a member.
///
/// # Errors
/// Returns an error if the value is malformed.
pub fn skip_member<'de, A: MapAccess<'de>>(members: &mut A) -> Result<(), A::Error> {
    members.next_value::<IgnoredAny>()?;
    Ok(())
}

/// Returns the value at `path`, or the value that its type has for an absent one.
///
/// # Errors
/// Returns an error with the path if the type has no such value.
pub fn required<'de, T: Deserialize<'de>, E: Error>(value: Option<T>, path: &'static str) -> Result<T, E> {
    value.map_or_else(|| T::deserialize(Absent { path, error: PhantomData }), Ok)
}

/// The value of a missing member: `None` for options, empty for lists and maps.
struct Absent<E> {
    path: &'static str,
    error: PhantomData<E>,
}

impl<'de, E: Error> Deserializer<'de> for Absent<E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, E> {
        Err(E::missing_field(self.path))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_none()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_seq(serde::de::value::SeqDeserializer::new(std::iter::empty::<()>()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_map(serde::de::value::MapDeserializer::new(std::iter::empty::<((), ())>()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct tuple tuple_struct struct enum identifier ignored_any
    }
}

/// Reads a value, or nothing where the document has `null`.
struct Nullable<S>(S);

impl<'de, S: DeserializeSeed<'de, Value = ()>> DeserializeSeed<'de> for Nullable<S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> Visitor<'de> for Nullable<S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, a list or null")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.deserialize(deserializer)
    }
}

/// Reads an object.
struct Object<'a, N: Members>(&'a mut N::Slots);

impl<'de, N: Members> DeserializeSeed<'de> for Object<'_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_struct("", N::NAMES, self)
    }
}

impl<'de, N: Members> Visitor<'de> for Object<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        const { assert!(N::NAMES.len() <= 64, "a view reads at most 64 members of an object") };
        let mut seen = 0_u64;
        while let Some(member) = members.next_key_seed(Name(N::NAMES))? {
            let bit = 1_u64.checked_shl(u32::try_from(member).unwrap_or(u32::MAX)).unwrap_or(0);
            if seen & bit != 0 {
                return Err(Error::duplicate_field(N::NAMES.get(member).copied().unwrap_or_default()));
            }
            seen |= bit;
            N::read(self.0, member, &mut members)?;
        }
        Ok(())
    }
}

/// Reads a list.
struct List<'a, N: Items>(&'a mut N::Slots);

impl<'de, N: Items> DeserializeSeed<'de> for List<'_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, N: Items> Visitor<'de> for List<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while N::read(self.0, &mut items)? {}
        Ok(())
    }
}

/// Reads the name of a member. Returns its position among the known names, or a number beyond them.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        self.visit_bytes(name.as_bytes())
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<usize, E> {
        Ok(self.0.iter().position(|known| known.as_bytes() == name).unwrap_or(usize::MAX))
    }
}
