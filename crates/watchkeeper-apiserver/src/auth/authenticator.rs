//! Authentication of requests and tokens.

use http::HeaderValue;

use super::{
    service_account::{API_AUDIENCE, Rejection, TokenIssuer},
    tokens::Tokens,
    user::User,
};
use crate::{status::ApiError, storage::Storage};

/// The credentials that requests are checked against, at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Authenticator<'a> {
    /// The tokens of the token file.
    pub(crate) tokens: &'a Tokens,
    /// The issuer of service account tokens.
    pub(crate) issuer: &'a TokenIssuer,
    /// The objects that service account tokens depend on.
    pub(crate) store: &'a dyn Storage,
    /// The time, in seconds since 1970.
    pub(crate) now: i64,
}

impl Authenticator<'_> {
    /// Returns the service account whose token this `Authorization` header carries. None if the header carries no token that
    /// this server issued.
    ///
    /// # Errors
    /// 401 for a token of this server that is no longer valid. The response does not contain the reason.
    pub(crate) fn service_account(
        &self,
        authorization: Option<&HeaderValue>,
    ) -> Result<Option<User>, ApiError> {
        let Some(token) = authorization.and_then(|header| header.to_str().ok()).and_then(bearer) else {
            return Ok(None);
        };
        match self.issuer.verify(token, &[API_AUDIENCE.to_owned()], self.store, self.now) {
            Ok(verified) => Ok(verified.map(|(user, _)| user)),
            Err(rejection) => {
                tracing::debug!(%rejection, "service account token rejected");
                Err(ApiError::unauthorized())
            }
        }
    }

    /// Returns the user of `token` and those of `audiences` for which the token is valid. None if the token
    /// is unknown.
    ///
    /// # Errors
    /// If the token is a service account's and not valid.
    pub(crate) fn token(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<(User, Vec<String>)>, Rejection> {
        // Tokens of a file name no audience: they are valid for this server only.
        if let Some(user) = self.tokens.user_of(token) {
            let common: Vec<String> =
                audiences.iter().filter(|audience| *audience == API_AUDIENCE).take(1).cloned().collect();
            return Ok((!common.is_empty()).then(|| (user.clone(), common)));
        }
        self.issuer.verify(token, audiences, self.store, self.now)
    }
}

/// Returns the token of a `Bearer` header; none for other schemes and for an empty token.
fn bearer(header: &str) -> Option<&str> {
    let mut words = header.trim().split(' ');
    let scheme = words.next()?;
    words.next().filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}
