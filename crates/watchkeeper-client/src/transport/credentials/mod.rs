//! Credential rotation.
//!
//! A [`CredentialSource`] provides a credential, a rotation decides when to load it again, and
//! [`Credentials`] combines the credentials of all sources with the fixed part of the configuration.

mod credential;
mod error;
mod exec;
mod file;
mod input;
mod rotating;
mod rotation;

use std::sync::Arc;

use futures_util::future::join_all;

pub use credential::{Credential, CredentialSource};
pub use error::CredentialError;
pub use exec::{ExecError, ExecPolicy};
pub(crate) use exec::{ExecPlugin, ExecRunner};
pub(crate) use file::FileSource;
pub(crate) use input::InlineOrFile;
pub(crate) use rotating::Rotating;

/// The credential of one request, with the versions to report if it is rejected.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) credential: Credential,
    versions: Vec<u64>,
}

/// All credentials of a client, including the authorities that verify its server.
#[derive(Debug)]
pub(crate) struct Credentials {
    fixed: Credential,
    rotating: Vec<Rotating>,
}

impl Credentials {
    pub(crate) fn new(fixed: Credential, rotating: Vec<Rotating>) -> Self {
        Self { fixed, rotating }
    }

    /// Returns whether a rejected request may succeed with a new credential.
    pub(crate) fn can_change(&self) -> bool {
        !self.rotating.is_empty()
    }

    /// Returns the credential for the next request.
    pub(crate) async fn session(&self) -> Result<Session, Arc<CredentialError>> {
        let mut credential = self.fixed.clone();
        let mut versions = Vec::with_capacity(self.rotating.len());
        for rotating in &self.rotating {
            match rotating.current().await {
                Ok(current) => {
                    credential = credential.overlaid_by(&current.credential);
                    versions.push(current.version);
                }
                // A token in the configuration is used while the token file has never been readable.
                Err(_) if self.fixed.authorization.is_some() => versions.push(0),
                Err(error) => return Err(error),
            }
        }
        Ok(Session { credential, versions })
    }

    /// Reloads every source after `session` received a 401, at most once each. Returns whether any has a new
    /// credential.
    pub(crate) async fn replace(&self, session: &Session) -> bool {
        let replaced =
            self.rotating.iter().zip(&session.versions).map(|(rotating, version)| rotating.replace(*version));
        join_all(replaced).await.contains(&true)
    }

    /// Returns how often sources have succeeded and failed since the client was created.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.rotating
            .iter()
            .fold((0, 0), |(loads, failures), one| (loads + one.loads(), failures + one.failures()))
    }
}
