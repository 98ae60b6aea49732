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

pub use self::{
    json::{JsonPatch, MAX_COPIED_BYTES, MAX_DEPTH, MAX_OPERATIONS, json_patch},
    merge::merge,
    strategic::strategic,
};
use crate::status::{ApiError, Details};

/// The body of a merge patch or strategic merge patch.
///
/// # Errors
/// 400 when it is not a JSON object.
pub fn object_body(body: &[u8]) -> Result<Value, ApiError> {
    let patch: Value =
        serde_json::from_slice(body).map_err(|_| ApiError::bad_request("invalid JSON patch"))?;
    if patch.is_object() {
        Ok(patch)
    } else {
        Err(ApiError::bad_request(
            "error decoding patch: the body of this kind of patch must be a JSON object",
        ))
    }
}

/// 422 as a server answers patches that cannot be applied. Upstream says no more than the first half.
fn unprocessable(why: &str) -> ApiError {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    ApiError::new(422, "Invalid", message).with_details(Details::default())
}
