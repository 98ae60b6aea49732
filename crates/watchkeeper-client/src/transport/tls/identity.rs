//! A client certificate and its key.

use std::{fmt, sync::Arc};

use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretSlice};

use super::connector::provider;
use crate::transport::credentials::CredentialError;

/// A client certificate with its chain and its private key, verified to belong together.
#[derive(Clone)]
pub(crate) struct ClientIdentity(Arc<Pair>);

struct Pair {
    certified: Arc<CertifiedKey>,
    /// Kept to detect a change of the key; the certificates are in `certified`.
    key_pem: SecretSlice<u8>,
}

impl ClientIdentity {
    pub(crate) fn from_pem(
        certificate_pem: &[u8],
        key_pem: &[u8],
        certificate_origin: &str,
        key_origin: &str,
    ) -> Result<Self, CredentialError> {
        let chain = certificates(certificate_pem, certificate_origin)?;
        // The parser's message quotes its input, so it is dropped.
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| CredentialError::BadKey {
            origin: key_origin.to_owned(),
            problem: "no private key found",
        })?;
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => CredentialError::KeyMismatch {
                certificate: certificate_origin.to_owned(),
                key: key_origin.to_owned(),
            },
            rustls::Error::InvalidCertificate(_) => CredentialError::BadCertificate {
                origin: certificate_origin.to_owned(),
                problem: "the certificate is malformed",
            },
            _ => CredentialError::BadKey {
                origin: key_origin.to_owned(),
                problem: "the private key is malformed or of an unsupported kind",
            },
        })?;
        let key_pem = SecretSlice::from(key_pem.to_vec());
        Ok(Self(Arc::new(Pair { certified: Arc::new(certified), key_pem })))
    }

    pub(super) fn certified_key(&self) -> Arc<CertifiedKey> {
        self.0.certified.clone()
    }
}

impl PartialEq for ClientIdentity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.certified.cert == other.0.certified.cert
                && self.0.key_pem.expose_secret() == other.0.key_pem.expose_secret())
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(..)")
    }
}

/// Parses the certificates of a PEM text, at least one.
pub(super) fn certificates(
    pem: &[u8],
    origin: &str,
) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let bad = |problem| CredentialError::BadCertificate { origin: origin.to_owned(), problem };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|_| bad("the PEM is malformed"))?;
    if found.is_empty() { Err(bad("no certificate found")) } else { Ok(found) }
}
