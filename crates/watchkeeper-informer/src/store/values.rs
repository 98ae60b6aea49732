//! What an index function may return.

use std::{collections::BTreeSet, fmt};

/// What an index function may return: the values of an object, or why it has none to offer.
///
/// | returned | means |
/// |---|---|
/// | `Option<String>` | one value or none |
/// | `String`, `&'static str` | one value |
/// | `Vec<String>`, an array, a `BTreeSet` | several; the same one twice counts once |
/// | [`EachOf`] an iterator | the same, without collecting first |
/// | `Result` of any of these | the object is not in this index, and the index reports the error |
///
/// Each element may be anything that turns into a `String`.
pub trait IndexValues {
    /// Hands each value to `take`.
    ///
    /// # Errors
    /// In the function's own words, when the object's values cannot be told.
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String>;
}

/// Any iterator of values, as what an index function returns.
#[derive(Debug, Clone)]
pub struct EachOf<I>(pub I);

impl<I: IntoIterator<Item: Into<String>>> IndexValues for EachOf<I> {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        self.0.into_iter().for_each(|value| take(value.into()));
        Ok(())
    }
}

impl<V: Into<String>> IndexValues for Option<V> {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(take)
    }
}

impl<V: Into<String>> IndexValues for Vec<V> {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(take)
    }
}

impl<V: Into<String>, const N: usize> IndexValues for [V; N] {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(take)
    }
}

impl<V: Into<String>> IndexValues for BTreeSet<V> {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        EachOf(self).each(take)
    }
}

impl IndexValues for String {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        take(self);
        Ok(())
    }
}

impl IndexValues for &str {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        take(self.to_owned());
        Ok(())
    }
}

impl<V: IndexValues, E: fmt::Display> IndexValues for Result<V, E> {
    fn each(self, take: &mut dyn FnMut(String)) -> Result<(), String> {
        self.map_err(|error| error.to_string())?.each(take)
    }
}

/// The values of one object in one index: each once, several of them in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Values {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
}

impl Values {
    pub(crate) fn of(values: impl IndexValues) -> Result<Self, String> {
        let mut all = Self::None;
        values.each(&mut |value| match &mut all {
            Self::None => all = Self::One(value),
            Self::One(first) => all = Self::Several(vec![std::mem::take(first), value]),
            Self::Several(more) => more.push(value),
        })?;
        if let Self::Several(more) = &mut all {
            more.sort_unstable();
            more.dedup();
            if more.len() == 1 {
                all = more.pop().map_or(Self::None, Self::One);
            }
        }
        Ok(all)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let values = match self {
            Self::None => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values.as_slice(),
        };
        values.iter().map(String::as_str)
    }
}
