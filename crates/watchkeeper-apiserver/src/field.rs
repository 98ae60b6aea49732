//! What is wrong with one field of an object: the causes of a 422.

use serde_json::Value;

/// The kind of a [`FieldError`], named as the `reason` of a cause is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum FieldErrorKind {
    /// A value that must be given is missing.
    Required,
    /// A value that is malformed or must not be what it is (immutable fields too).
    Invalid,
    /// A value outside a fixed set.
    NotSupported,
    /// A value that occurs twice where it may occur once.
    Duplicate,
    /// A value that is allowed in general and not here.
    Forbidden,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A string or list that is too long.
    TooLong,
    /// A list or map with too many members.
    TooMany,
    /// A value that names something which does not exist.
    NotFound,
    /// The server could not check the value.
    Internal,
}

impl FieldErrorKind {
    /// The reason as clients know it, such as `FieldValueRequired`.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldError {
    /// What sort of mistake it is.
    pub kind: FieldErrorKind,
    /// Where, as `spec.containers[0].name` or `metadata.labels[a/b]`.
    pub path: String,
    /// What was given, where showing it helps.
    pub bad_value: Option<Value>,
    /// What would be right.
    pub detail: String,
}

impl FieldError {
    /// An error of `kind` at `path`.
    pub(crate) fn new(
        kind: FieldErrorKind,
        path: impl Into<String>,
        bad_value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, path: path.into(), bad_value, detail: detail.into() }
    }
}
