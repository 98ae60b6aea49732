//! Why a credential could not be had.

use std::{io::ErrorKind, path::PathBuf};

use super::ExecError;

/// Why a token, certificate, key or bundle of certificates could not be used.
///
/// Says which file, field or program, never what was in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// A file could not be read.
    #[error("file {}: cannot be read ({kind}); check that it exists and that this process may read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        kind: ErrorKind,
    },
    /// A file is larger than a credential can be.
    #[error("file {}: larger than {limit_bytes} bytes, which no credential is; check the path", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        limit_bytes: u64,
    },
    /// A token is empty, as a token file is for a moment when it is replaced without a rename.
    #[error("{origin}: the token is empty")]
    EmptyToken {
        /// The file, field or program it came from.
        origin: String,
    },
    /// A token holds something that cannot be part of one.
    #[error(
        "{origin}: the token holds spaces or characters other than printable ASCII; check that it is a token and not, for example, a certificate"
    )]
    BadToken {
        /// The file, field or program it came from.
        origin: String,
    },
    /// Certificates could not be parsed.
    #[error("{origin}: {problem}; expected PEM with at least one CERTIFICATE block")]
    BadCertificate {
        /// The file, field or program they came from.
        origin: String,
        /// What is wrong with them.
        problem: &'static str,
    },
    /// A private key could not be parsed.
    #[error("{origin}: {problem}; expected PEM with one unencrypted PKCS#8, PKCS#1 or SEC1 private key")]
    BadKey {
        /// The file, field or program it came from.
        origin: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A client certificate and a private key are not a pair.
    #[error(
        "{certificate} and {key}: the certificate is not the one of this private key; check that both come from the same request"
    )]
    KeyMismatch {
        /// Where the certificate came from.
        certificate: String,
        /// Where the key came from.
        key: String,
    },
    /// Certificates are configured, and this build has no TLS.
    #[error("{origin}: TLS is not compiled in; turn on the feature `rustls-tls` of watchkeeper-client")]
    TlsNotCompiledIn {
        /// What asked for it.
        origin: String,
    },
    /// An exec plugin gave no credential.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A source outside this crate gave no credential.
    #[error("credential source {origin}: {source}")]
    Source {
        /// What the source calls itself.
        origin: String,
        /// What it said. It is printed: a source keeps secrets out of its errors.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The runtime went away while a credential was being read.
    #[error("{origin}: reading was abandoned because the runtime is shutting down")]
    Abandoned {
        /// What was being read.
        origin: String,
    },
}
