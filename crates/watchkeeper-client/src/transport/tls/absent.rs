//! The TLS interface in a build without TLS: everything that needs TLS is rejected, never silently skipped.

use super::{TlsMaterial, TlsSettings};
use crate::transport::{CredentialError, TransportError};

/// A client certificate, which cannot exist in this build.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientIdentity {}

/// Certificate authorities, which cannot exist in this build.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Roots {}

/// A server name, which cannot exist in this build.
#[derive(Debug, Clone)]
pub(crate) enum ServerName {}

impl ClientIdentity {
    pub(crate) fn from_pem(
        _certificate_pem: &[u8],
        _key_pem: &[u8],
        certificate_origin: &str,
        _key_origin: &str,
    ) -> Result<Self, CredentialError> {
        Err(CredentialError::TlsNotCompiledIn { origin: certificate_origin.to_owned() })
    }
}

impl Roots {
    pub(crate) fn from_pem(_pem: &[u8], origin: &str) -> Result<Self, CredentialError> {
        Err(CredentialError::TlsNotCompiledIn { origin: origin.to_owned() })
    }
}

pub(crate) fn server_name(_name: &str) -> Option<ServerName> {
    None
}

pub(crate) fn wrap<C>(
    _tcp: C,
    _settings: &TlsSettings,
    _material: &TlsMaterial,
    _is_http2: bool,
) -> Result<C, TransportError> {
    Err(TransportError::TlsSetup { reason: "TLS is not compiled in".to_owned() })
}
