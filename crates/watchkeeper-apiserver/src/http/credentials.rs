//! Credentials in the head of a request.

use http::{HeaderMap, header};

use crate::status::ApiError;

/// The scheme of bearer tokens, with the space after it.
const BEARER: &[u8] = b"bearer ";

/// Returns the credentials of a request.
///
/// # Errors
/// 401 for a bearer token with characters that tokens cannot contain.
pub(super) fn authorization(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let scheme = value.as_bytes().trim_ascii_start().get(..BEARER.len());
    match value.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(BEARER)) => {
            Err(ApiError::unauthorized())
        }
        Err(_) => Ok(None),
    }
}
