//! Durations of leader election.

use std::time::Duration;

use thiserror::Error;

/// The durations of leader election. Defaults to those of Kubernetes components: 15 s, 10 s and 2 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// The reason that a combination of durations is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TimingError {
    /// The holder would still work when other replicas may acquire the lease.
    #[error(
        "leader election timing: lease duration {lease_duration:?} must be longer than renew deadline {renew_deadline:?}"
    )]
    LeaseNotLongerThanDeadline {
        /// The time that other replicas wait.
        lease_duration: Duration,
        /// The time that a holder continues without a renewal.
        renew_deadline: Duration,
    },
    /// The holder would have no time for a second attempt.
    #[error(
        "leader election timing: renew deadline {renew_deadline:?} must be longer than 1.2 times the retry period {retry_period:?}"
    )]
    DeadlineTooCloseToRetry {
        /// The time that a holder continues without a renewal.
        renew_deadline: Duration,
        /// The interval between attempts.
        retry_period: Duration,
    },
    /// The lease duration is under one second, or the retry period is zero.
    #[error(
        "leader election timing: lease duration must be at least one second, and retry period must be longer than zero"
    )]
    TooShort,
}

impl Timing {
    /// Creates a timing from three durations.
    ///
    /// # Errors
    /// Returns a [`TimingError`] that names the durations that cannot be combined.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        if lease_duration < Duration::from_secs(1) || retry_period.is_zero() {
            return Err(TimingError::TooShort);
        }
        if lease_duration <= renew_deadline {
            return Err(TimingError::LeaseNotLongerThanDeadline { lease_duration, renew_deadline });
        }
        if renew_deadline <= retry_period.saturating_mul(6) / 5 {
            return Err(TimingError::DeadlineTooCloseToRetry { renew_deadline, retry_period });
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// Returns the time for which a lease must be unchanged before another replica acquires it.
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// Returns the time for which a holder continues after sending its last successful renewal.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// Returns the interval between renewals of the holder, and between reads of the other replicas.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }
}

impl Default for Timing {
    /// Returns 15, 10 and 2 seconds.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { lease_duration: seconds(15), renew_deadline: seconds(10), retry_period: seconds(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_cannot_be_combined_are_rejected() {
        let seconds = Duration::from_secs;
        assert_eq!(Timing::new(seconds(15), seconds(10), seconds(2)), Ok(Timing::default()));
        assert!(matches!(
            Timing::new(seconds(10), seconds(10), seconds(2)),
            Err(TimingError::LeaseNotLongerThanDeadline { .. })
        ));
        assert!(matches!(
            Timing::new(seconds(10), seconds(6), seconds(5)),
            Err(TimingError::DeadlineTooCloseToRetry { .. })
        ));
        assert_eq!(
            Timing::new(Duration::from_millis(900), Duration::from_millis(500), Duration::from_millis(10)),
            Err(TimingError::TooShort)
        );
        assert_eq!(Timing::new(seconds(15), seconds(10), Duration::ZERO), Err(TimingError::TooShort));
    }
}
