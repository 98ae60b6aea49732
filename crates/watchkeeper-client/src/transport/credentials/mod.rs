//! Credentials that rotate, by one mechanism.
//!
//! A [`CredentialSource`] says what to use, a rotation says when to ask it again, and [`Credentials`] lays the
//! answers of all sources over what is fixed in the configuration.

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
pub(crate) use input::Input;
pub(crate) use rotating::Rotating;

/// What a request is sent with, and what to say if it is rejected.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) credential: Credential,
    versions: Vec<u64>,
}

/// Everything a client authenticates itself and its server with.
#[derive(Debug)]
pub(crate) struct Credentials {
    fixed: Credential,
    rotating: Vec<Rotating>,
}

impl Credentials {
    pub(crate) fn new(fixed: Credential, rotating: Vec<Rotating>) -> Self {
        Self { fixed, rotating }
    }

    /// Whether a rejected request may be worth another try.
    pub(crate) fn can_change(&self) -> bool {
        !self.rotating.is_empty()
    }

    /// What to send the next request with.
    pub(crate) async fn session(&self) -> Result<Session, Arc<CredentialError>> {
        let mut credential = self.fixed.clone();
        let mut versions = Vec::with_capacity(self.rotating.len());
        for rotating in &self.rotating {
            match rotating.current().await {
                Ok(current) => {
                    credential = credential.overlaid_by(&current.credential);
                    versions.push(current.version);
                }
                // A token in the configuration stands in for a token file that has never been readable.
                Err(_) if self.fixed.authorization.is_some() => versions.push(0),
                Err(error) => return Err(error),
            }
        }
        Ok(Session { credential, versions })
    }

    /// After a 401 to `session`: asks every source again, at most once each, and says whether any has something
    /// new.
    pub(crate) async fn replace(&self, session: &Session) -> bool {
        let replaced =
            self.rotating.iter().zip(&session.versions).map(|(rotating, version)| rotating.replace(*version));
        join_all(replaced).await.contains(&true)
    }

    /// How often sources have answered, and how often they have failed, since the client was made.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.rotating
            .iter()
            .fold((0, 0), |(loads, failures), one| (loads + one.loads(), failures + one.failures()))
    }
}
