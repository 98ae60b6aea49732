//! A credential source with its current value.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

use super::{
    Credential, CredentialError, CredentialSource,
    rotation::{CredentialStep, Lifetime, Rejected, Rotation},
};
use crate::transport::clock;

type State = Rotation<Credential, CredentialError>;

/// A driver of a [`Rotation`]: loads from the source when the rotation requires it, one load at a time, while
/// other requests use the current value.
pub(crate) struct Rotating {
    source: Arc<dyn CredentialSource>,
    state: Mutex<State>,
    /// Held during a load.
    loading: tokio::sync::Mutex<()>,
}

/// A value, with the version to report if a server rejects it.
pub(crate) struct Versioned {
    pub(crate) credential: Arc<Credential>,
    pub(crate) version: u64,
}

impl Rotating {
    pub(crate) fn new(source: Arc<dyn CredentialSource>) -> Self {
        Self { source, state: Mutex::new(Rotation::new()), loading: tokio::sync::Mutex::default() }
    }

    /// Records the outcome of a load done elsewhere, such as the first one during the creation of a client.
    pub(crate) fn record(
        &self,
        result: Result<Credential, CredentialError>,
    ) -> Result<Versioned, Arc<CredentialError>> {
        let now = clock::now();
        match result {
            Ok(credential) => {
                let lifetime = self.lifetime(&credential, now);
                let mut state = self.state();
                let credential = state.loaded(now, credential, lifetime, Credential::is_same_as);
                Ok(Versioned { credential, version: state.version() })
            }
            Err(error) => {
                let error = Arc::new(error);
                tracing::warn!(source = self.source.describe(), %error, "credential not loaded");
                self.state().failed(now, error.clone());
                Err(error)
            }
        }
    }

    /// Returns the value to use now, loading it if needed.
    pub(crate) async fn current(&self) -> Result<Versioned, Arc<CredentialError>> {
        if let Some(outcome) = self.without_loading() {
            return outcome;
        }
        let loading = match (self.loading.try_lock(), self.usable()) {
            (Ok(loading), _) => loading,
            // Another request is loading; this one can use the current value.
            (Err(_), Some(usable)) => return Ok(usable),
            (Err(_), None) => self.loading.lock().await,
        };
        // The previous holder of the lock may have loaded it.
        if let Some(outcome) = self.without_loading() {
            return outcome;
        }
        let outcome = self.record(self.source.load().await);
        drop(loading);
        outcome.or_else(|error| self.usable().ok_or(error))
    }

    /// Reloads after a server rejected `version`. Returns whether another value is available.
    pub(crate) async fn replace(&self, version: u64) -> bool {
        // Of many requests rejected at once, the first one loads; the others wait here for its result.
        let _loading = self.loading.lock().await;
        let rejected = self.state().rejected(clock::now(), version);
        match rejected {
            Rejected::AlreadyReplaced => true,
            Rejected::TooSoon => false,
            Rejected::Load => {
                self.record(self.source.load().await).is_ok_and(|fresh| fresh.version != version)
            }
        }
    }

    pub(crate) fn loads(&self) -> u64 {
        self.state().loads()
    }

    pub(crate) fn failures(&self) -> u64 {
        self.state().failures()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock, and the state is consistent after every call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn without_loading(&self) -> Option<Result<Versioned, Arc<CredentialError>>> {
        let state = self.state();
        match state.next(clock::now()) {
            CredentialStep::Use(credential) => Some(Ok(Versioned { credential, version: state.version() })),
            CredentialStep::Fail(error) => Some(Err(error)),
            CredentialStep::Load => None,
        }
    }

    fn usable(&self) -> Option<Versioned> {
        let state = self.state();
        let credential = state.usable(clock::now())?;
        Some(Versioned { credential, version: state.version() })
    }

    fn lifetime(&self, credential: &Credential, now: Instant) -> Lifetime {
        let Some(expires_at) = credential.expires_at else {
            return if credential.is_volatile { Lifetime::Recheck } else { Lifetime::UntilRejected };
        };
        let remaining = expires_at.duration_since(clock::wall_now());
        match std::time::Duration::try_from(remaining) {
            Ok(remaining) if !remaining.is_zero() => {
                // An expiry that is too distant for an `Instant` counts as none.
                now.checked_add(remaining).map_or(Lifetime::UntilRejected, Lifetime::Until)
            }
            _ => {
                tracing::warn!(
                    source = self.source.describe(),
                    %expires_at,
                    "credential already expired when loaded; check the clocks",
                );
                Lifetime::ExpiredOnArrival
            }
        }
    }
}

impl fmt::Debug for Rotating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rotating").field("source", &self.source.describe()).finish_non_exhaustive()
    }
}
