//! What can be wrong with bytes.

use kube_core::response::Status;

/// Why bytes did not become objects.
///
/// Every variant says what was being read and where (a byte offset from the start of what the function that
/// failed was given), and names the limit where one was hit. None carries anything of the body itself, so an
/// error can be logged whatever the object was; the one exception is [`DecodeError::Status`], which holds what
/// the server said about the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A part of the response is larger than its bound.
    #[error("{part} exceeds {bytes} bytes at byte {offset}: raise `Limits::{limit}` if the server is right")]
    TooLarge {
        /// What was being read.
        part: &'static str,
        /// The field of [`Limits`](crate::limits::Limits) that bounds it.
        limit: &'static str,
        /// The value of that limit.
        bytes: u64,
        /// How far reading had come.
        offset: u64,
    },
    /// Arrays and objects are nested deeper than allowed.
    #[error(
        "JSON nested deeper than {limit} at byte {offset}: raise `Limits::json_depth` if the server is right"
    )]
    TooDeep {
        /// The value of [`Limits::json_depth`](crate::limits::Limits::json_depth).
        limit: usize,
        /// Where the first bracket too many is.
        offset: u64,
    },
    /// A compressed body grows more than allowed: a decompression bomb, or a limit set too low.
    #[error(
        "gzip body grew more than {ratio} times its compressed size after {compressed} compressed bytes: \
         raise `Limits::decompression_ratio` if the server is right"
    )]
    DecompressionRatio {
        /// The value of [`Limits::decompression_ratio`](crate::limits::Limits::decompression_ratio).
        ratio: u32,
        /// How many compressed bytes had been read.
        compressed: u64,
    },
    /// The compressed body is not valid gzip.
    #[error("gzip body is corrupt near compressed byte {offset}")]
    Gzip {
        /// How many compressed bytes had been read.
        offset: u64,
    },
    /// The bytes end before what they began.
    #[error("the body ends at byte {offset}, inside {inside}")]
    Truncated {
        /// What was being read.
        inside: &'static str,
        /// How many bytes there were.
        offset: u64,
    },
    /// The bytes are not JSON, as far as they were looked at.
    #[error("not valid JSON at byte {offset}: expected {expected}")]
    Syntax {
        /// What would have been valid there.
        expected: &'static str,
        /// Where it went wrong.
        offset: u64,
    },
    /// A string is not UTF-8.
    #[error("not valid UTF-8 at byte {offset}")]
    Utf8 {
        /// The first byte that is not.
        offset: u64,
    },
    /// The JSON is sound, and the type asked for does not take it.
    #[error("the JSON does not fit the type at byte {offset}: {reason}")]
    Mismatch {
        /// What the type objected to, without the value it objected to.
        reason: String,
        /// Where the value ends that it objected to.
        offset: u64,
    },
    /// A field nothing can be done without is absent.
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
        /// How far reading had come.
        offset: u64,
    },
    /// A field has another JSON type than it must have.
    #[error("`{field}` at byte {offset} must be {expected}")]
    WrongType {
        /// The path of the field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
        /// Where its value is.
        offset: u64,
    },
    /// An object says that it is of another kind than was asked for.
    #[error("an object of another kind than {expected}")]
    WrongKind {
        /// The kind it must be.
        expected: String,
    },
    /// A watch event is neither ADDED, MODIFIED, DELETED, BOOKMARK nor ERROR.
    #[error("unknown watch event type at byte {offset}")]
    UnknownEventType {
        /// Where the type is in the event.
        offset: u64,
    },
    /// The server answered with a `Table` where objects were asked for.
    #[error(
        "the server answered with a Table instead of {instead_of}: check the Accept header, or the aggregated server"
    )]
    Table {
        /// What should have been there.
        instead_of: &'static str,
    },
    /// The document is sound, and is not a list: it has no `items`.
    #[error("the response is not a list: it has no `items`")]
    NotAList,
    /// The server answered with a `Status` where objects were asked for.
    #[error("the server answered with a Status instead of {instead_of}: {} ({}, code {})", .status.message, .status.reason, .status.code)]
    Status {
        /// What should have been there.
        instead_of: &'static str,
        /// What it said.
        status: Box<Status>,
    },
}

impl DecodeError {
    /// The same error, `by` bytes further on: for a part of a document that was read on its own.
    pub(super) fn moved(self, by: u64) -> Self {
        self.moved_behind(0, by)
    }

    /// The same error, `by` bytes further on if it lies at or behind `from`: for a document read without a part of it.
    pub(super) fn moved_behind(mut self, from: u64, by: u64) -> Self {
        match &mut self {
            Self::TooLarge { offset, .. }
            | Self::TooDeep { offset, .. }
            | Self::Truncated { offset, .. }
            | Self::Syntax { offset, .. }
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
