//! The certificate authorities that verify a server.

use std::{fmt, sync::Arc};

use rustls::RootCertStore;

use super::identity::certificates;
use crate::transport::credentials::CredentialError;

/// Certificate authorities that replace those of the system.
#[derive(Clone)]
pub(crate) struct Roots {
    pem: Arc<[u8]>,
    store: Arc<RootCertStore>,
}

impl Roots {
    pub(crate) fn from_pem(pem: &[u8], origin: &str) -> Result<Self, CredentialError> {
        let mut store = RootCertStore::empty();
        for certificate in certificates(pem, origin)? {
            store.add(certificate).map_err(|_| CredentialError::BadCertificate {
                origin: origin.to_owned(),
                problem: "a certificate is malformed",
            })?;
        }
        Ok(Self { pem: pem.into(), store: Arc::new(store) })
    }

    pub(super) fn store(&self) -> Arc<RootCertStore> {
        self.store.clone()
    }
}

impl PartialEq for Roots {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store) || self.pem == other.pem
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").field("certificates", &self.store.len()).finish_non_exhaustive()
    }
}
