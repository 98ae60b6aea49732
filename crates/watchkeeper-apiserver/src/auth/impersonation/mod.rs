//! Impersonation: a request that acts as another user.
//!
//! | module | content |
//! |---|---|
//! | [`headers`] | the user that the `Impersonate-*` headers describe |
//! | [`mode`] | the permissions that each way of impersonating needs |
//!
//! Impersonation happens after authentication and before authorization, so everything behind it sees only the
//! impersonated user.

mod headers;
mod mode;

use http::HeaderMap;

use self::mode::ImpersonationMode;
use super::{Authorizer, attributes::Attributes, user::User};
use crate::status::ApiError;

/// Returns the user that a request acts as: `requestor`, or the impersonated user.
///
/// `attributes` describe the request itself: constrained impersonation grants a user only for some requests.
///
/// # Errors
/// 400 for headers that name groups, a uid or extra values without a user, and 403 if no mode of impersonation is
/// permitted. The 403 is that of the first mode that applies, as upstream.
pub(crate) fn impersonate(
    authorizer: &Authorizer,
    requestor: User,
    headers: &HeaderMap,
    attributes: &Attributes,
) -> Result<User, ApiError> {
    let Some(requested) = headers::impersonated_user(headers)? else { return Ok(requestor) };
    let mut first_error = None;
    for mode in ImpersonationMode::ALL.into_iter().filter(|mode| mode.applies(&requested, &requestor)) {
        match mode.check(authorizer, &requestor, &requested, attributes) {
            Ok(user) => return Ok(user),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    // The legacy mode applies to every user, so there is always an error to report.
    Err(first_error.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
}

#[cfg(test)]
mod tests;
