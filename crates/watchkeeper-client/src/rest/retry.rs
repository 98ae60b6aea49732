//! Retry policies and their backoff.

use std::time::Duration;

use super::retry_after::{MAX_RETRY_AFTER, from_status};
use crate::{
    Error,
    error::{ApiReason, TransportKind},
};

/// A retry policy: exponential backoff with jitter and a maximum number of attempts.
///
/// Nothing is retried unless a policy is passed to the call. No layer below retries, so attempts do not multiply. Waits
/// grow from `base` by `factor` up to `cap`. Each is extended by a random part of up to `jitter` times itself, so that
/// clients that failed together do not retry together. A wait requested by the server is the minimum.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_client::rest::Retry;
///
/// let mut waits = Retry::reads().seeded(7).backoff();
/// let first = waits.next_wait(None).unwrap();
/// assert!(first >= Duration::from_millis(100) && first <= Duration::from_millis(150));
/// assert!(waits.next_wait(Some(Duration::from_secs(2))).unwrap() >= Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[doc(alias = "RetryPolicy")]
pub struct Retry {
    /// The maximum number of attempts, including the first. 1 never retries.
    pub max_attempts: u32,
    /// The delay before the second attempt, before jitter.
    pub base: Duration,
    /// The factor between consecutive delays. Values below 1 count as 1.
    pub factor: f64,
    /// The longest delay, before jitter.
    pub cap: Duration,
    /// The maximum random extension of a delay, as a fraction of it between 0 and 1.
    pub jitter: f64,
    /// The seed of the jitter; `None` for a random one.
    pub seed: Option<u64>,
}

impl Retry {
    /// Returns the policy for reads: five attempts over about two seconds.
    pub fn reads() -> Self {
        Self {
            max_attempts: 5,
            base: Duration::from_millis(100),
            factor: 2.0,
            cap: Duration::from_secs(10),
            jitter: 0.5,
            seed: None,
        }
    }

    /// Returns the policy for conflicting writes: five attempts, 10 ms apart, as client-go's `DefaultRetry`.
    #[doc(alias = "DefaultRetry")]
    pub fn conflicts() -> Self {
        Self {
            max_attempts: 5,
            base: Duration::from_millis(10),
            factor: 1.0,
            cap: Duration::from_secs(1),
            jitter: 0.1,
            seed: None,
        }
    }

    /// Returns this policy with another number of attempts.
    #[must_use]
    pub fn attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Returns this policy with a fixed seed, so that waits are reproducible.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Returns the delays between the attempts of one operation.
    pub fn backoff(&self) -> Backoff {
        Backoff {
            attempts_left: self.retries(),
            wait: self.first_wait(),
            rng: self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            policy: self.clone(),
        }
    }

    fn retries(&self) -> u32 {
        self.max_attempts.saturating_sub(1)
    }

    fn first_wait(&self) -> Duration {
        self.base.min(self.cap)
    }
}

/// The successive delays between the attempts of one operation, created by [`Retry::backoff`].
///
/// A backoff only calculates delays. The caller waits for them.
#[derive(Debug, Clone)]
pub struct Backoff {
    policy: Retry,
    attempts_left: u32,
    wait: Duration,
    rng: fastrand::Rng,
}

impl Backoff {
    /// Restarts the backoff: the next delay is the first one, and all attempts are available again. Call this after progress.
    pub fn reset(&mut self) {
        self.attempts_left = self.policy.retries();
        self.wait = self.policy.first_wait();
    }

    /// Returns the wait before the next attempt, at least `retry_after`, or `None` if no attempts are left.
    pub fn next_wait(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        self.attempts_left = self.attempts_left.checked_sub(1)?;
        let jitter = self.policy.jitter.clamp(0.0, 1.0) * self.rng.f64();
        let wait = scaled(self.wait, 1.0 + jitter);
        self.wait = scaled(self.wait, self.policy.factor.max(1.0)).min(self.policy.cap);
        // The server's wait is jittered too, because the server sends the same value to all throttled clients.
        let requested = retry_after.map_or(Duration::ZERO, |requested| scaled(requested, 1.0 + jitter / 2.0));
        Some(wait.max(requested))
    }
}

/// Returns the product, or a long duration if the product is not a valid duration.
fn scaled(wait: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(2 * MAX_RETRY_AFTER)
}

/// Returns whether a failed read is likely to succeed when repeated.
fn is_transient(error: &Error) -> bool {
    match error {
        Error::Api { status, .. } => matches!(
            ApiReason::of(status),
            ApiReason::TooManyRequests
                | ApiReason::Timeout
                | ApiReason::Internal
                | ApiReason::BadGateway
                | ApiReason::Unavailable
        ),
        Error::Transport { kind, .. } => !matches!(kind, TransportKind::Tls | TransportKind::Credentials),
        Error::Deadline { .. } => true,
        _ => false,
    }
}

/// The attempts of one read.
pub(super) struct Attempts(pub(super) Option<Backoff>);

impl Attempts {
    /// Waits until the next attempt, or returns the error that is the last one.
    pub(super) async fn wait_or_fail(&mut self, error: Error) -> Result<(), Error> {
        let backoff = self.0.as_mut().filter(|_| is_transient(&error));
        match backoff.and_then(|backoff| backoff.next_wait(error.retry_after())) {
            Some(wait) => {
                tracing::debug!(%error, ?wait, "read failed; retrying");
                tokio::time::sleep(wait).await;
                Ok(())
            }
            None => Err(error),
        }
    }
}

/// An error that may be a conflict: a write based on an old version of the object.
pub trait ConflictError {
    /// Returns whether the error is a conflict.
    fn is_conflict(&self) -> bool;

    /// Returns the wait that the server requested.
    fn retry_after(&self) -> Option<Duration>;
}

impl ConflictError for Error {
    fn is_conflict(&self) -> bool {
        Self::is_conflict(self)
    }

    fn retry_after(&self) -> Option<Duration> {
        Self::retry_after(self)
    }
}

impl ConflictError for kube_client::Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(status) if ApiReason::of(status) == ApiReason::Conflict)
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(status) => from_status(status),
            _ => None,
        }
    }
}

/// Repeats `operation` while it fails with a conflict, at most [`Retry::max_attempts`] times.
///
/// The operation has to read the object, change it and write it each time; repeating the same write would
/// meet the same conflict. In a reconciler, returning the conflict is usually better: the key is reconciled again when the
/// cache shows the other write. [`Retry::conflicts`] is client-go's default.
///
/// # Errors
/// Returns the first error that is not a conflict, or the conflict of the last attempt.
///
/// ```no_run
/// # use watchkeeper_client::{Client, Error, rest::{Retry, retry_on_conflict}};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_core::params::PostParams;
/// # async fn example(client: Client) -> Result<(), Error> {
/// let maps = client.resource::<ConfigMap>().namespace("default");
/// retry_on_conflict(&Retry::conflicts(), || async {
///     let mut settings = maps.get("settings").await?;
///     settings.data.get_or_insert_default().insert("mode".into(), "fast".into());
///     maps.update(&PostParams::default(), &settings).await
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RetryOnConflict")]
#[doc(alias = "OnError")]
pub async fn retry_on_conflict<T, E, F, Fut>(policy: &Retry, mut operation: F) -> Result<T, E>
where
    E: ConflictError,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut backoff = policy.backoff();
    loop {
        let error = match operation().await {
            Err(error) if error.is_conflict() => error,
            result => return result,
        };
        match backoff.next_wait(error.retry_after()) {
            Some(wait) => {
                tracing::debug!(?wait, "write conflicted with another write; retrying");
                tokio::time::sleep(wait).await;
            }
            None => return Err(error),
        }
    }
}
