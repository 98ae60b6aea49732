//! Errors of loading a credential.

use std::{io::ErrorKind, path::PathBuf};

use super::ExecError;

/// The reason that a token, certificate, key or certificate bundle cannot be used.
///
/// The message names the file, field or program, and never contains its content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "AuthError")]
pub enum CredentialError {
    /// A file could not be read.
    #[error("file {}: cannot be read ({kind}); check that it exists and that this process may read it", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The kind of the operating system's error.
        kind: ErrorKind,
    },
    /// A file exceeds the size limit of credentials.
    #[error("file {}: larger than {limit_bytes} bytes, which no credential is; check the path", path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The size limit in bytes.
        limit_bytes: u64,
    },
    /// The token is empty, as a token file is for a moment when it is replaced without a rename.
    #[error("{origin}: the token is empty")]
    EmptyToken {
        /// The file, field or program that the token came from.
        origin: String,
    },
    /// The token contains characters that are not allowed.
    #[error(
        "{origin}: the token contains spaces or characters other than printable ASCII; check that it is a token and not, for example, a certificate"
    )]
    BadToken {
        /// The file, field or program that the token came from.
        origin: String,
    },
    /// Certificates could not be parsed.
    #[error("{origin}: {problem}; expected PEM with at least one CERTIFICATE block")]
    BadCertificate {
        /// The file, field or program that the certificates came from.
        origin: String,
        /// The problem with the certificates.
        problem: &'static str,
    },
    /// A private key could not be parsed.
    #[error("{origin}: {problem}; expected PEM with one unencrypted PKCS#8, PKCS#1 or SEC1 private key")]
    BadKey {
        /// The file, field or program that the key came from.
        origin: String,
        /// The problem with the key.
        problem: &'static str,
    },
    /// The client certificate and the private key do not belong together.
    #[error(
        "{certificate} and {key}: the certificate does not match the private key; check that both come from the same request"
    )]
    KeyMismatch {
        /// The origin of the certificate.
        certificate: String,
        /// The origin of the key.
        key: String,
    },
    /// Certificates are configured, but this build does not include TLS.
    #[error("{origin}: TLS is not compiled in; enable the feature `rustls-tls` of watchkeeper-client")]
    TlsNotCompiledIn {
        /// The configuration that requires TLS.
        origin: String,
    },
    /// An exec plugin failed to provide a credential.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A source outside this crate failed to provide a credential.
    #[error("credential source {origin}: {source}")]
    Source {
        /// The description of the source.
        origin: String,
        /// The error of the source. Its text is printed, so a source must keep secrets out of its errors.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The runtime shut down while a credential was being read.
    #[error("{origin}: reading was abandoned because the runtime is shutting down")]
    Abandoned {
        /// The source that was being read.
        origin: String,
    },
}
