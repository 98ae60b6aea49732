//! JSON patch, merge patch and strategic merge patch.
//!
//! All three are pure functions of the current object and the patch. The result must be decoded like any body, because a
//! patch can add unknown members and values of wrong types.
//!
//! The semantics are those of the libraries in a Kubernetes API server, which differ from the RFCs in places: a JSON patch
//! `replace` of a missing member adds it, array indexes may be negative, and a merge patch removes nulls from the arrays in
//! it.

mod json;
mod merge;
mod pointer;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub(crate) use self::{json::JsonPatch, merge::merge, strategic::strategic};
use crate::{
    schema::TypeRef,
    status::{ApiError, Details},
};

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    /// A list of operations.
    Json,
    /// A JSON merge patch.
    Merge,
    /// A strategic merge patch, which depends on the types of the object.
    Strategic,
}

/// A parsed patch, which can be applied repeatedly if the object changes concurrently.
#[derive(Debug, Clone)]
pub(crate) enum Patch {
    /// A list of operations.
    Json(JsonPatch),
    /// A JSON merge patch.
    Merge(Value),
    /// A strategic merge patch, which depends on the types of the object.
    Strategic(Value),
}

impl Patch {
    /// Parses the body of a patch.
    ///
    /// # Errors
    /// 400 if the body does not match the format; 413 if it has too many operations.
    pub(crate) fn read(form: PatchFormat, body: Value) -> Result<Self, ApiError> {
        match form {
            PatchFormat::Json => JsonPatch::read(body).map(Self::Json),
            _ if !body.is_object() => Err(ApiError::bad_request(
                "error decoding patch: the body of this kind of patch must be a JSON object",
            )),
            PatchFormat::Merge => Ok(Self::Merge(body)),
            PatchFormat::Strategic => Ok(Self::Strategic(body)),
        }
    }

    /// Returns the unknown fields of the patch itself, for strict field validation.
    pub(crate) fn unknown_fields(&self) -> &[String] {
        if let Self::Json(patch) = self { patch.unknown_fields() } else { &[] }
    }

    /// Returns the object, of type `ty`, after the patch.
    ///
    /// # Errors
    /// Returns the errors of [`JsonPatch::apply`] and [`strategic()`].
    pub(crate) fn apply(&self, object: &Value, ty: &TypeRef) -> Result<Value, ApiError> {
        match self {
            Self::Json(patch) => patch.apply(object),
            Self::Merge(patch) => Ok(merge(object, patch.clone())),
            Self::Strategic(patch) => strategic(object, patch, ty),
        }
    }
}

/// Returns the 422 of a patch that cannot be applied. The message of upstream ends after the first half.
fn unprocessable(why: &str) -> ApiError {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    ApiError::new(422, "Invalid", message).with_details(Details::default())
}
