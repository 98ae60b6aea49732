//! The credential of a request.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::future::BoxFuture;
use http::HeaderValue;
use jiff::Timestamp;

use super::CredentialError;
use crate::transport::tls::{ClientIdentity, Roots};

/// A credential from one source: an `Authorization` header, a client certificate, the certificate authorities
/// for server verification, or several of these.
///
/// Its `Debug` output states which of these are present, and nothing else.
#[derive(Clone, Default)]
#[must_use]
pub struct Credential {
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) identity: Option<ClientIdentity>,
    pub(crate) roots: Option<Roots>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) is_volatile: bool,
}

impl Credential {
    /// Creates a bearer token credential. Surrounding whitespace is removed, because token files often end
    /// with a newline.
    ///
    /// # Errors
    /// Returns a [`CredentialError`] if the token is empty or contains anything but printable ASCII without
    /// spaces. The error names `origin`.
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

    /// Creates a credential from a user name and a password.
    pub(crate) fn basic(user: &str, password: &str, origin: &str) -> Result<Self, CredentialError> {
        let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
        let mut header = HeaderValue::try_from(format!("Basic {encoded}"))
            .map_err(|_| CredentialError::BadToken { origin: origin.to_owned() })?;
        header.set_sensitive(true);
        Ok(Self { authorization: Some(header), ..Self::default() })
    }

    /// Adds a client certificate with its chain, and its private key, both in PEM.
    ///
    /// # Errors
    /// Returns a [`CredentialError`] if either cannot be parsed, or if they do not belong together. The error
    /// names `origin`.
    pub fn with_client_certificate(
        mut self,
        certificate_pem: &[u8],
        key_pem: &[u8],
        origin: &str,
    ) -> Result<Self, CredentialError> {
        self.identity = Some(ClientIdentity::from_pem(certificate_pem, key_pem, origin, origin)?);
        Ok(self)
    }

    /// Sets the expiry time. The credential is replaced before that.
    #[doc(alias = "valid_until")]
    pub fn with_expiry(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Marks the credential as one that may change at its source at any time. It is then reloaded once a
    /// minute; otherwise it is kept until it expires or a server rejects it.
    pub fn volatile(mut self) -> Self {
        self.is_volatile = true;
        self
    }

    /// Returns whether both credentials have the same content, so that connections can be kept.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.authorization == other.authorization
            && self.identity == other.identity
            && self.roots == other.roots
    }

    /// Returns `self` with the parts that `newer` has replaced.
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

/// A source of credentials, which is queried again when a credential has expired or was rejected.
///
/// Sources are queried on use: at most once a minute for a [volatile](Credential::volatile) credential,
/// before the expiry time of a credential that has one, and immediately after a 401, but not again within
/// five seconds. If a source fails, the last valid credential is used until it expires.
///
/// Implement this trait to obtain tokens from a cloud provider's library instead of an exec plugin.
pub trait CredentialSource: Send + Sync + 'static {
    /// Returns the name of the source for errors and logs. It must not contain secrets.
    fn describe(&self) -> String;

    /// Loads a credential. Dropping the future cancels the attempt.
    fn load(&self) -> BoxFuture<'_, Result<Credential, CredentialError>>;
}
