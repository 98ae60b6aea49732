//! The error of the protobuf reader, with the place where it occurred.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::super::{DecodeError, json::reason};

/// An error while reading a message. Boxed, because every value of a message passes a `Result`.
#[derive(Debug)]
pub(super) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    cause: Cause,
    /// The address of the byte at which the error occurred.
    address: Option<usize>,
}

/// The cause of a [`Fault`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The bytes end within a value.
    End,
    /// The bytes are not protobuf, or not of the type.
    Wire(&'static str),
    /// A string is not UTF-8.
    Utf8,
    /// Messages are nested too deeply.
    Depth,
    /// The type rejected a value. The message may quote the value.
    Mismatch(String),
    /// The occurrences of a field are not contiguous, so the message must be regrouped before decoding.
    Scattered,
}

impl Fault {
    /// Creates a fault whose place its caller adds.
    #[cold]
    pub(super) fn new(cause: Cause) -> Self {
        Self(Box::new(Inner { cause, address: None }))
    }

    /// Creates a fault at the start of `place`.
    #[cold]
    pub(super) fn at(cause: Cause, place: &[u8]) -> Self {
        Self(Box::new(Inner { cause, address: Some(place.as_ptr().addr()) }))
    }

    /// Adds the place of a fault that has none.
    #[cold]
    pub(super) fn or_at(mut self, place: &[u8]) -> Self {
        self.0.address.get_or_insert(place.as_ptr().addr());
        self
    }

    /// Returns whether the message must be regrouped before decoding.
    pub(super) fn is_scattered(&self) -> bool {
        self.0.cause == Cause::Scattered
    }

    /// Returns whether the fault may have its cause in a message that must be regrouped.
    pub(super) fn may_be_scattered(&self) -> bool {
        matches!(self.0.cause, Cause::Scattered | Cause::Mismatch(_))
    }

    /// Converts a fault of reading `object` with a maximum depth of `limit`.
    #[cold]
    pub(super) fn of_object(self, object: &[u8], limit: usize) -> DecodeError {
        let Inner { cause, address } = *self.0;
        let offset = address
            .and_then(|address| address.checked_sub(object.as_ptr().addr()))
            .filter(|&offset| offset <= object.len())
            .unwrap_or_default() as u64;
        match cause {
            Cause::End => DecodeError::Truncated { inside: "an object", offset },
            Cause::Wire(problem) => DecodeError::Protobuf { problem, offset },
            Cause::Utf8 => DecodeError::Utf8 { offset },
            Cause::Depth => DecodeError::TooDeep { limit, offset },
            Cause::Mismatch(message) => DecodeError::Mismatch { reason: reason(&message), offset },
            Cause::Scattered => {
                DecodeError::Protobuf { problem: "the occurrences of a field are not contiguous", offset }
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::End => f.write_str("the message is truncated"),
            Cause::Wire(problem) => f.write_str(problem),
            Cause::Utf8 => f.write_str("a string is not UTF-8"),
            Cause::Depth => f.write_str("the message is nested too deeply"),
            Cause::Mismatch(message) => f.write_str(message),
            Cause::Scattered => f.write_str("the occurrences of a field are not contiguous"),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Cause::Mismatch(message.to_string()))
    }

    /// An absent value is null, as in JSON.
    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Unit => Self::custom(format_args!("invalid type: null, expected {expected}")),
            _ => Self::custom(format_args!("invalid type: {found}, expected {expected}")),
        }
    }
}
