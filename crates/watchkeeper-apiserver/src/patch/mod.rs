//! JSON patch, merge patch, strategic merge patch.
//!
//! All three are pure: the object as it is and the patch go in, the object as it should be comes out. What comes out is to
//! be decoded like any body: a patch can put unknown members and values of wrong types into an object.
//!
//! The semantics are those of the libraries a Kubernetes server is built with, which differ from the RFCs in places: a
//! JSON-patch `replace` of a missing member adds it, places in arrays may count from the end, a merge patch removes nulls
//! from the arrays it brings.

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

/// How a patch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A list of operations.
    Json,
    /// An object laid over the object.
    Merge,
    /// The same, with an eye on the types of what is in it.
    Strategic,
}

/// A patch that was read, to be applied to the object as often as that changes in between.
#[derive(Debug, Clone)]
pub(crate) enum Patch {
    /// A list of operations.
    Json(JsonPatch),
    /// An object laid over the object.
    Merge(Value),
    /// The same, with an eye on the types of what is in it.
    Strategic(Value),
}

impl Patch {
    /// Reads the body of a patch.
    ///
    /// # Errors
    /// 400 when it is not what the form takes; 413 when it has too many operations.
    pub(crate) fn read(form: Form, body: Value) -> Result<Self, ApiError> {
        match form {
            Form::Json => JsonPatch::read(body).map(Self::Json),
            _ if !body.is_object() => Err(ApiError::bad_request(
                "error decoding patch: the body of this kind of patch must be a JSON object",
            )),
            Form::Merge => Ok(Self::Merge(body)),
            Form::Strategic => Ok(Self::Strategic(body)),
        }
    }

    /// What strict field validation has against the patch itself.
    pub(crate) fn unknown_fields(&self) -> &[String] {
        if let Self::Json(patch) = self { patch.unknown_fields() } else { &[] }
    }

    /// The object, of type `ty`, after the patch.
    ///
    /// # Errors
    /// As [`JsonPatch::apply`] and [`strategic`].
    pub(crate) fn apply(&self, object: &Value, ty: &TypeRef) -> Result<Value, ApiError> {
        match self {
            Self::Json(patch) => patch.apply(object),
            Self::Merge(patch) => Ok(merge(object, patch.clone())),
            Self::Strategic(patch) => strategic(object, patch, ty),
        }
    }
}

/// 422 as a server answers patches that cannot be applied. Upstream says no more than the first half.
fn unprocessable(why: &str) -> ApiError {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    ApiError::new(422, "Invalid", message).with_details(Details::default())
}
