//! Tokens, client certificates and certificate authorities in files.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;

use super::{Credential, CredentialError, CredentialSource, InlineOrFile};
use crate::transport::tls::{ClientIdentity, Roots};

/// A credential source that reads files on each load.
#[derive(Debug, Clone)]
pub(crate) enum FileSource {
    Token(PathBuf),
    Identity { certificate: InlineOrFile, key: InlineOrFile },
    Roots(InlineOrFile),
}

impl FileSource {
    /// Reads the files on the current thread.
    pub(crate) fn read(&self) -> Result<Credential, CredentialError> {
        let credential = match self {
            Self::Token(path) => {
                let input = InlineOrFile::file(path);
                let bytes = input.read()?;
                let Ok(token) = std::str::from_utf8(bytes.expose_secret()) else {
                    return Err(CredentialError::BadToken { origin: input.to_string() });
                };
                Credential::bearer(token, &input.to_string())?
            }
            Self::Identity { certificate, key } => {
                let identity = ClientIdentity::from_pem(
                    certificate.read()?.expose_secret(),
                    key.read()?.expose_secret(),
                    &certificate.to_string(),
                    &key.to_string(),
                )?;
                Credential { identity: Some(identity), ..Credential::default() }
            }
            Self::Roots(input) => {
                let roots = Roots::from_pem(input.read()?.expose_secret(), &input.to_string())?;
                Credential { roots: Some(roots), ..Credential::default() }
            }
        };
        Ok(credential.volatile())
    }
}

impl CredentialSource for FileSource {
    fn describe(&self) -> String {
        match self {
            Self::Token(path) => format!("token file {}", path.display()),
            Self::Identity { certificate, key } => format!("client certificate {certificate} with {key}"),
            Self::Roots(input) => format!("certificate authority {input}"),
        }
    }

    fn load(&self) -> BoxFuture<'_, Result<Credential, CredentialError>> {
        let source = self.clone();
        Box::pin(async move {
            let origin = source.describe();
            // A file on a stalled network mount must not block the runtime.
            match tokio::task::spawn_blocking(move || source.read()).await {
                Ok(result) => result,
                Err(_) => Err(CredentialError::Abandoned { origin }),
            }
        })
    }
}
