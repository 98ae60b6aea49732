//! Decoding errors.

use kube_core::response::Status;

/// The reason that bytes could not be decoded.
///
/// Every variant states what was being read and where: a byte offset from the start of the input of the
/// failed function. Where a limit was exceeded, the variant names it. No variant contains bytes of the body,
/// so errors can be logged for any object. The one exception is [`DecodeError::Status`], which contains the
/// `Status` that the server returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A part of the response exceeds its limit.
    #[error("{part} exceeds {bytes} bytes at byte {offset}: raise `Limits::{limit}` if the server is right")]
    TooLarge {
        /// The part that was being read.
        part: &'static str,
        /// The field of [`Limits`](crate::limits::Limits) that was exceeded.
        limit: &'static str,
        /// The value of that limit.
        bytes: u64,
        /// The position of the reader.
        offset: u64,
    },
    /// Arrays and objects are nested deeper than allowed.
    #[error("nested deeper than {limit} at byte {offset}: raise `Limits::json_depth` if the server is right")]
    TooDeep {
        /// The value of [`Limits::json_depth`](crate::limits::Limits::json_depth).
        limit: usize,
        /// The position of the first bracket beyond the limit.
        offset: u64,
    },
    /// A compressed body exceeds the decompression ratio: a decompression bomb, or a limit that is too low.
    #[error(
        "gzip body grew more than {ratio} times its compressed size after {compressed} compressed bytes: \
         raise `Limits::decompression_ratio` if the server is right"
    )]
    DecompressionRatio {
        /// The value of [`Limits::decompression_ratio`](crate::limits::Limits::decompression_ratio).
        ratio: u32,
        /// The number of compressed bytes read.
        compressed: u64,
    },
    /// The compressed body is not valid gzip.
    #[error("gzip body is corrupt near compressed byte {offset}")]
    Gzip {
        /// The number of compressed bytes read.
        offset: u64,
    },
    /// The body ended in the middle of a value.
    #[error("the body ends at byte {offset}, inside {inside}")]
    Truncated {
        /// The part that was being read.
        inside: &'static str,
        /// The number of bytes read.
        offset: u64,
    },
    /// The bytes are not valid JSON, as far as they were read.
    #[error("not valid JSON at byte {offset}: expected {expected}")]
    Syntax {
        /// The tokens that would have been valid.
        expected: &'static str,
        /// The position of the error.
        offset: u64,
    },
    /// The bytes are not valid protobuf, or not a message of the type.
    #[error("not valid protobuf at byte {offset}: {problem}")]
    Protobuf {
        /// The rule that the bytes violate.
        problem: &'static str,
        /// The position of the error.
        offset: u64,
    },
    /// A string is not UTF-8.
    #[error("not valid UTF-8 at byte {offset}")]
    Utf8 {
        /// The position of the first invalid byte.
        offset: u64,
    },
    /// The object is well-formed but does not match the requested type.
    #[error("the object does not fit the type at byte {offset}: {reason}")]
    Mismatch {
        /// The mismatch, without the offending value.
        reason: String,
        /// The end of the offending value.
        offset: u64,
    },
    /// A required field is missing.
    #[error("`{field}` is missing")]
    Missing {
        /// The path of the field.
        field: &'static str,
    },
    /// A field of the envelope occurs twice.
    #[error("`{field}` occurs twice, the second time before byte {offset}")]
    Duplicate {
        /// The path of the field.
        field: &'static str,
        /// The position of the reader.
        offset: u64,
    },
    /// A field has the wrong JSON type.
    #[error("`{field}` at byte {offset} must be {expected}")]
    WrongType {
        /// The path of the field.
        field: &'static str,
        /// The required type.
        expected: &'static str,
        /// The position of the value.
        offset: u64,
    },
    /// The object has a different kind than requested.
    #[error("an object of another kind than {expected}")]
    WrongKind {
        /// The required kind.
        expected: String,
    },
    /// A watch event is neither ADDED, MODIFIED, DELETED, BOOKMARK nor ERROR.
    #[error("unknown watch event type at byte {offset}")]
    UnknownEventType {
        /// The position of the type in the event.
        offset: u64,
    },
    /// The server returned a `Table` instead of objects.
    #[error(
        "the server returned a Table instead of {instead_of}: check the Accept header, or the aggregated server"
    )]
    Table {
        /// The expected response.
        instead_of: &'static str,
    },
    /// The document is valid but is not a list: it has no `items`.
    #[error("the response is not a list: it has no `items`")]
    NotAList,
    /// The server returned a `Status` instead of objects.
    #[error("the server returned a Status instead of {instead_of}: {} ({}, code {})", .status.message, .status.reason, .status.code)]
    Status {
        /// The expected response.
        instead_of: &'static str,
        /// The returned `Status`.
        status: Box<Status>,
    },
}

impl DecodeError {
    /// Shifts the offset by `by`, for a part of a document that was read separately.
    pub(super) fn moved(self, by: u64) -> Self {
        self.moved_behind(0, by)
    }

    /// Shifts the offset by `by` if it is at or after `from`, for a document that was read without a part of
    /// it.
    pub(super) fn moved_behind(mut self, from: u64, by: u64) -> Self {
        match &mut self {
            Self::TooLarge { offset, .. }
            | Self::TooDeep { offset, .. }
            | Self::Truncated { offset, .. }
            | Self::Syntax { offset, .. }
            | Self::Protobuf { offset, .. }
            | Self::Utf8 { offset }
            | Self::Mismatch { offset, .. }
            | Self::Duplicate { offset, .. }
            | Self::WrongType { offset, .. }
            | Self::UnknownEventType { offset }
                if *offset >= from =>
            {
                *offset += by;
            }
            _ => {}
        }
        self
    }
}
