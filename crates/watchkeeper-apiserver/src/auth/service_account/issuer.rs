//! The issuer of service account tokens.

use std::{fmt, sync::OnceLock};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    bound,
    claims::Claims,
    key::{self, ALGORITHM, SigningKey},
};
use crate::{auth::user::User, status::ApiError, storage::Storage};

/// The claim `iss` of tokens.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The audience of this API server.
pub(crate) const API_AUDIENCE: &str = ISSUER;

/// Why a token is not accepted. Reviews show it; clients that send the token get a 401 without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection(String);

impl Rejection {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Issues and verifies tokens with one key, which is generated on first use and never stored. Tokens are therefore valid
/// only as long as the server runs.
#[derive(Debug, Default)]
pub(crate) struct TokenIssuer {
    key: OnceLock<Option<SigningKey>>,
    /// The URL of the first address that the server listens on.
    url: OnceLock<String>,
}

impl TokenIssuer {
    /// Sets the URL under which the keys are published, if none is set.
    pub(crate) fn publish_at(&self, url: &str) {
        self.url.get_or_init(|| url.to_owned());
    }

    fn key(&self) -> Option<&SigningKey> {
        self.key.get_or_init(|| SigningKey::generate().ok()).as_ref()
    }

    /// Returns a signed token of `claims`.
    ///
    /// # Errors
    /// 500 if the system provides no randomness for the signature.
    pub(crate) fn issue(&self, claims: &Claims) -> Result<String, ApiError> {
        let failed = || ApiError::internal("failed to generate token");
        let key = self.key().ok_or_else(failed)?;
        let claims = serde_json::to_vec(claims).map_err(|_| failed())?;
        key.sign(&claims).map_err(|_| failed())
    }

    /// Verifies `token` for one of `audiences` at `now`, in seconds since 1970. Returns the user and the audiences that
    /// both sides name, or none if another issuer signed the token.
    ///
    /// # Errors
    /// If the token claims to be of this issuer and is not valid.
    pub(crate) fn verify(
        &self,
        token: &str,
        audiences: &[String],
        store: &dyn Storage,
        now: i64,
    ) -> Result<Option<(User, Vec<String>)>, Rejection> {
        #[derive(Deserialize)]
        struct Issued {
            iss: String,
        }
        let Some(payload) = key::unverified_claims(token) else { return Ok(None) };
        let is_ours = serde_json::from_slice::<Issued>(&payload).is_ok_and(|claims| claims.iss == ISSUER);
        if !is_ours {
            return Ok(None);
        }
        if !self.key().is_some_and(|key| key.has_signed(token)) {
            return Err(Rejection::new("invalid signature, no keys found"));
        }
        let claims: Claims = serde_json::from_slice(&payload)
            .map_err(|_| Rejection::new("service account token claims could not be validated"))?;
        let common = claims.check_audiences(audiences)?;
        claims.check_time(now)?;
        bound::check(&claims, store, now)?;
        Ok(Some((claims.user(), common)))
    }

    /// Returns the discovery document of `OpenID` Connect.
    pub(crate) fn to_configuration(&self) -> Value {
        let url = self.url.get().map_or(ISSUER, String::as_str);
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{url}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        })
    }

    /// Returns the public keys, as a JSON Web Key Set.
    pub(crate) fn to_key_set(&self) -> Value {
        json!({ "keys": self.key().map(SigningKey::to_jwk).into_iter().collect::<Vec<_>>() })
    }
}
