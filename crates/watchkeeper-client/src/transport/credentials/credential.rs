//! What a request is authenticated with.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::future::BoxFuture;
use http::HeaderValue;
use jiff::Timestamp;

use super::CredentialError;
use crate::transport::tls::{Identity, Roots};

/// What one source contributes to a connection: an `Authorization` header, a client certificate, the
/// authorities a server is checked against, or several of them.
///
/// Its `Debug` form says which, and nothing more.
#[derive(Clone, Default)]
#[must_use]
pub struct Credential {
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) identity: Option<Identity>,
    pub(crate) roots: Option<Roots>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) is_volatile: bool,
}

impl Credential {
    /// A bearer token. Whitespace around it is dropped, since token files end in a newline as often as not.
    ///
    /// # Errors
    /// If nothing is left, or if it holds anything but printable ASCII without spaces. `origin` is what the error names.
    pub fn bearer(token: &str, origin: &str) -> Result<Self, CredentialError> {
        let token = token.trim();
        if token.is_empty() {
            return Err(CredentialError::EmptyToken { origin: origin.to_owned() });
        }
        let is_printable = token.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::try_from(format!("Bearer {token}")).ok().filter(|_| is_printable);
        let Some(mut header) = header else {
            return Err(CredentialError::BadToken { origin: origin.to_owned() });
        };
        header.set_sensitive(true);
        Ok(Self { authorization: Some(header), ..Self::default() })
    }

    /// A user name and a password.
    pub(crate) fn basic(user: &str, password: &str, origin: &str) -> Result<Self, CredentialError> {
        let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
        let mut header = HeaderValue::try_from(format!("Basic {encoded}"))
            .map_err(|_| CredentialError::BadToken { origin: origin.to_owned() })?;
        header.set_sensitive(true);
        Ok(Self { authorization: Some(header), ..Self::default() })
    }

    /// Adds a client certificate, with its chain, and its private key, both PEM.
    ///
    /// # Errors
    /// If either cannot be parsed or if they are not a pair. `origin` is what the error names.
    pub fn with_client_certificate(
        mut self,
        certificate_pem: &[u8],
        key_pem: &[u8],
        origin: &str,
    ) -> Result<Self, CredentialError> {
        self.identity = Some(Identity::from_pem(certificate_pem, key_pem, origin, origin)?);
        Ok(self)
    }

    /// Says when it becomes useless, so that it is replaced before.
    pub fn with_expiry(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Says that it may be replaced at its source at any time, so that it is loaded again once a minute.
    /// Otherwise it is kept until it expires or until a server rejects it.
    pub fn volatile(mut self) -> Self {
        self.is_volatile = true;
        self
    }

    /// Whether a connection made with one could go on with the other.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.authorization == other.authorization
            && self.identity == other.identity
            && self.roots == other.roots
    }

    /// What `newer` has, over what `self` has.
    pub(crate) fn overlaid_by(mut self, newer: &Self) -> Self {
        self.authorization = newer.authorization.clone().or(self.authorization);
        self.identity = newer.identity.clone().or(self.identity);
        self.roots = newer.roots.clone().or(self.roots);
        self
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("authorization", &self.authorization.is_some())
            .field("identity", &self.identity.is_some())
            .field("roots", &self.roots.is_some())
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Where credentials come from, asked again whenever the last answer has run out or was rejected.
///
/// A source is asked on use: at most once a minute for what may change without notice
/// ([`Credential::volatile`]), before the expiry date of what has one, and at once after a 401, but not again
/// within five seconds. When it fails, the last good credential is used until it expires.
///
/// Implement it to get tokens from a cloud provider's library instead of an exec plugin.
pub trait CredentialSource: Send + Sync + 'static {
    /// What errors and logs call the source. Nothing secret.
    fn describe(&self) -> String;

    /// Gets a credential. Dropping the future abandons the attempt.
    fn load(&self) -> BoxFuture<'_, Result<Credential, CredentialError>>;
}
